"""Pods from binding to the end, in virtual time: the worker, its containers' runs, and what the API shows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podscaler.controlplane.kubelet.volumes import volume_files

Make = Callable[..., dict[str, Any]]


async def test_a_crash_loop(played: Any, container: Make) -> None:
    """A container that ends at once starts at 0, 0, 10, 30, 70 and 150 s, and waits in CrashLoopBackOff between."""
    await played.begin(containers=[container()])
    seen = []
    for delay_s in (0, 10, 20, 40, 80):
        played.stage.exit("c", 3)
        await played.clock.advance(0)
        seen.append((played.state(), played.container()["restartCount"]))
        await played.clock.advance(delay_s)
    assert [at for _, at in played.stage.starts] == [0, 0, 10, 30, 70, 150]
    assert seen == [("running", 1), *(("CrashLoopBackOff", count) for count in (1, 2, 3, 4))]
    assert played.container()["lastState"]["terminated"]["exitCode"] == 3
    assert played.pod["status"]["phase"] == "Running"
    assert {reason for reason, _ in await played.events()} == {"Created", "Started", "BackOff"}


async def test_a_pod_that_is_done(played: Any, container: Make) -> None:
    """With OnFailure a failure is repeated and a success ends the pod; its address is free again."""
    await played.begin(containers=[container()], restartPolicy="OnFailure")
    played.stage.exit("c", 1)
    await played.clock.advance(0)
    assert played.state() == "running"
    played.stage.exit("c", 0)
    await played.clock.advance(0)
    assert (played.pod["status"]["phase"], played.state()) == ("Succeeded", "Completed")
    assert played.stage.host.addresses.allocate_pod("other", preferred="127.7.1.1") == "127.7.1.1"


async def test_never_means_never(played: Any, container: Make) -> None:
    """A signal shows as 128 and its number."""
    await played.begin(containers=[container()], restartPolicy="Never")
    played.stage.exit("c", -9)
    await played.clock.advance(0)
    ended = played.container()["state"]["terminated"]
    assert (played.pod["status"]["phase"], ended["exitCode"], ended["reason"]) == ("Failed", 137, "Error")
    assert len(played.stage.starts) == 1


async def test_init_containers_and_sidecars(played: Any, container: Make) -> None:
    """In order: init, sidecar (held back by its startup probe), main; then the sidecar ends after main."""
    startup = {"exec": {"command": ["side-up"]}, "periodSeconds": 5, "failureThreshold": 9}
    played.stage.answers["side-up"] = iter([False, True])
    inits = [container("init"), container("side", restartPolicy="Always", startupProbe=startup), container("last")]
    await played.begin(initContainers=inits, containers=[container()], restartPolicy="Never")
    await played.clock.advance(2)
    played.stage.exit("init", 0)
    await played.clock.advance(6)
    played.stage.exit("last", 0)
    await played.clock.advance(2)
    assert played.stage.starts == [("init", 0), ("side", 2), ("last", 7), ("c", 8)]
    played.stage.exit("c", 0)
    await played.clock.advance(0)
    assert played.stage.processes["side"].signals == [("SIGTERM", 10)]
    assert played.pod["status"]["phase"] == "Succeeded"


async def test_a_sidecar_is_restarted(played: Any, container: Make) -> None:
    """Also when the pod says Never, as long as the pod has work to do."""
    await played.begin(
        initContainers=[container("side", restartPolicy="Always")], containers=[container()], restartPolicy="Never"
    )
    played.stage.exit("side", 1)
    await played.clock.advance(0)
    assert played.stage.starts == [("side", 0), ("c", 0), ("side", 0)]


async def test_an_init_container_that_fails(played: Any, container: Make) -> None:
    """With Never the pod has failed, and its main container never runs."""
    await played.begin(initContainers=[container("init")], containers=[container()], restartPolicy="Never")
    played.stage.exit("init", 2)
    await played.clock.advance(0)
    assert (played.pod["status"]["phase"], played.state(), len(played.stage.starts)) == ("Failed", "PodInitializing", 1)


def conditions(played: Any) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in played.pod["status"]["conditions"]}


async def test_readiness_follows_its_probe(played: Any, container: Make) -> None:
    """Unready until the probe succeeds, unready again after three failures, never restarted for it."""
    probe = {"exec": {"command": ["ready"]}, "initialDelaySeconds": 2, "periodSeconds": 5}
    played.stage.answers["ready"] = iter([False, True, False, False, False, True])
    await played.begin(containers=[container(readinessProbe=probe)])
    seen = []
    for _ in range(7):
        seen.append((played.clock.monotonic_s(), played.container()["ready"], conditions(played)["Ready"]))
        await played.clock.advance(5)
    assert [ready for _, ready, _ in seen] == [False, False, True, True, True, False, True]
    assert [status == "True" for _, _, status in seen] == [ready for _, ready, _ in seen]
    assert [at for _, at in played.stage.checks] == [2, 7, 12, 17, 22, 27, 32]
    assert played.container()["restartCount"] == 0


async def test_liveness_restarts(played: Any, container: Make) -> None:
    """Two failures in a row stop the container; it is started again, and its probe begins anew."""
    probe = {"exec": {"command": ["live"]}, "periodSeconds": 5, "failureThreshold": 2}
    played.stage.answers["live"] = iter([True, False, False])
    await played.begin(containers=[container(livenessProbe=probe)])
    await played.clock.advance(10)
    assert played.stage.processes["c"].signals == []
    assert played.stage.starts == [("c", 0), ("c", 10)]
    assert [at for _, at in played.stage.checks] == [0, 5, 10, 10]
    assert set(await played.events()) >= {
        ("Unhealthy", "Liveness probe failed: live said no"),
        ("Killing", "Container c failed liveness probe, will be restarted"),
    }


async def test_a_probe_has_a_grace_period_of_its_own(played: Any, container: Make) -> None:
    """terminationGracePeriodSeconds of the probe counts for a container that does not obey."""
    played.stage.obedient = False
    probe = {"exec": {"command": ["live"]}, "failureThreshold": 1, "terminationGracePeriodSeconds": 3}
    played.stage.answers["live"] = iter([False])
    await played.begin(containers=[container(livenessProbe=probe)])
    process = played.stage.processes["c"]
    await played.clock.advance(5)
    assert process.signals == [("SIGTERM", 0), ("SIGKILL", 3)]


async def test_a_startup_probe_comes_first(played: Any, container: Make) -> None:
    """Readiness and liveness wait for it; then the container is `started`."""
    startup = {"exec": {"command": ["up"]}, "periodSeconds": 1, "failureThreshold": 9}
    other = {"exec": {"command": ["other"]}, "periodSeconds": 1}
    played.stage.answers["up"] = iter([False, False, True])
    await played.begin(containers=[container(startupProbe=startup, livenessProbe=other, readinessProbe=other)])
    started = []
    for _ in range(3):
        started.append((played.container()["started"], played.container()["ready"]))
        await played.clock.advance(1)
    assert started == [(False, False), (False, False), (True, True)]
    assert played.stage.checks[:5] == [("up", 0), ("up", 1), ("up", 2), ("other", 2), ("other", 2)]


async def test_a_startup_probe_that_never_succeeds(played: Any, container: Make) -> None:
    """failureThreshold times periodSeconds, then the container is restarted."""
    startup = {"exec": {"command": ["up"]}, "periodSeconds": 2, "failureThreshold": 3}
    played.stage.answers["up"] = iter([False] * 3)
    await played.begin(containers=[container(startupProbe=startup)])
    await played.clock.advance(4)
    assert played.stage.starts == [("c", 0), ("c", 4)]


async def test_hooks(played: Any, container: Make) -> None:
    """postStart before ready; preStop before SIGTERM, within the grace period."""
    lifecycle = {"postStart": {"exec": {"command": ["post"]}}, "preStop": {"sleep": {"seconds": 4}}}
    await played.begin(containers=[container(lifecycle=lifecycle)])
    assert (played.stage.checks, played.container()["ready"]) == ([("post", 0)], True)
    await played.delete()
    await played.clock.advance(3)
    assert played.stage.processes["c"].signals == []
    await played.clock.advance(1)
    assert played.stage.processes["c"].signals == [("SIGTERM", 4)]
    assert played.is_gone


async def test_a_hook_that_takes_too_long(played: Any, container: Make) -> None:
    """When the grace period is over, SIGTERM and two more seconds are left."""
    played.stage.obedient = False
    hook = {"preStop": {"sleep": {"seconds": 100}}}
    await played.begin(containers=[container(lifecycle=hook)], terminationGracePeriodSeconds=5)
    process = played.stage.processes["c"]
    await played.delete()
    await played.clock.advance(20)
    assert process.signals == [("SIGTERM", 5), ("SIGKILL", 7)]


async def test_a_failed_post_start_hook(played: Any, container: Make) -> None:
    """The container is stopped and started again, with an event."""
    played.stage.answers["post"] = iter([False])
    await played.begin(containers=[container(lifecycle={"postStart": {"exec": {"command": ["post"]}}})])
    assert (len(played.stage.starts), played.state()) == (2, "running")
    assert ("FailedPostStartHook", "PostStartHook failed: post said no") in await played.events()


async def test_graceful_deletion(played: Any, container: Make) -> None:
    """SIGTERM, the grace period, SIGKILL; the object goes when nothing runs any more."""
    played.stage.obedient = False
    await played.begin(containers=[container("a"), container("b")], terminationGracePeriodSeconds=7)
    await played.delete()
    processes = [played.stage.processes[name] for name in "ab"]
    await played.clock.advance(6)
    assert not played.is_gone
    await played.clock.advance(1)
    assert [process.signals for process in processes] == [[("SIGTERM", 0), ("SIGKILL", 7)]] * 2
    assert played.is_gone


async def test_a_second_deletion_shortens_the_first(played: Any, container: Make) -> None:
    """--grace-period=2 after 1 of 30 seconds kills at 3."""
    played.stage.obedient = False
    await played.begin(containers=[container()])
    process = played.stage.processes["c"]
    await played.delete()
    await played.clock.advance(1)
    await played.delete(2)
    await played.clock.advance(5)
    assert process.signals == [("SIGTERM", 0), ("SIGKILL", 3)]


async def test_a_forced_deletion(played: Any, container: Make) -> None:
    """The object is gone at once; the process gets one second."""
    played.stage.obedient = False
    await played.begin(containers=[container()])
    await played.delete(0)
    await played.clock.advance(2)
    assert played.stage.processes["c"].signals == [("SIGTERM", 0), ("SIGKILL", 1)]


async def test_a_pod_is_deleted_before_it_runs(played: Any, container: Make) -> None:
    """A container that waits for its ConfigMap holds the object no longer than clients need to see the deletion."""
    source = [{"configMapRef": {"name": "none"}}]
    await played.begin(containers=[container(envFrom=source)])
    await played.delete()
    assert not played.is_gone
    await played.clock.advance(1)
    assert played.is_gone


async def test_missing_configuration(played: Any, container: Make) -> None:
    """CreateContainerConfigError with the sentence, retried at 1, 3, 7 s, until the ConfigMap is there."""
    await played.begin(containers=[container(envFrom=[{"configMapRef": {"name": "late"}}])])
    waiting = played.container()["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": 'configmap "late" not found'}
    metadata = {"name": "late", "namespace": "default"}
    await played.clock.advance(2)
    await played.registry.create("configmaps", {"metadata": metadata, "data": {"A": "1"}})
    await played.clock.advance(0.9)
    assert played.state() == "CreateContainerConfigError"
    await played.clock.advance(0.1)
    assert (played.state(), played.container()["restartCount"]) == ("running", 0)
    assert played.stage.launches["c"].env["A"] == "1"
    assert (await played.events())[0] == ("Failed", 'Error: configmap "late" not found')


@pytest.mark.parametrize(
    ("fields", "spec", "reason", "part"),
    [
        ({"command": None}, {}, "ImageNotKnown", 'the image "any" is none of those that podscaler knows'),
        (
            {"securityContext": {"runAsUser": 1000}},
            {},
            "CreateContainerConfigError",
            "runAsUser 1000 is not possible here: `podscaler up` runs as user 501",
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            {"volumes": [{"name": "v", "configMap": {"name": "none"}}]},
            "ContainerCreating",
            'configmap "none" not found',
        ),
    ],
)
async def test_what_cannot_be_had(
    played: Any, container: Make, fields: dict[str, Any], spec: dict[str, Any], reason: str, part: str
) -> None:
    """The container waits with reason and message, an event says it too, and the pod stays Pending."""
    made = {key: value for key, value in container(**fields).items() if value is not None}
    await played.begin(containers=[made], **spec)
    waiting = played.container()["state"]["waiting"]
    assert (waiting["reason"], part in waiting["message"]) == (reason, True)
    assert any(part in message for _, message in await played.events())
    assert played.pod["status"]["phase"] == "Pending"


async def test_a_program_that_is_not_there(played: Any, container: Make) -> None:
    """StartError with 128 and the reason; tried again as after a crash; other containers run."""
    played.stage.unstartable.add("c")
    await played.begin(containers=[container(), container("other")])
    last = played.container()["lastState"]["terminated"]
    assert (played.state(), last["reason"], last["exitCode"]) == ("CrashLoopBackOff", "StartError", 128)
    assert last["message"] == 'exec: "/bin/app": no such file or directory'
    assert played.state("other") == "running"
    assert ("Failed", 'Error: exec: "/bin/app": no such file or directory') in await played.events()


async def test_the_environment_of_every_container(played: Any, container: Make) -> None:
    """Address, names and marks, before any of it is in the status; the image's port is mapped for an ordinary user."""
    web = {"name": "c", "image": "web", "args": ["--host=$(POD_IP)"], "ports": [{"containerPort": 80}]}
    await played.begin(containers=[web])
    launch = played.stage.launches["c"]
    ip = played.pod["status"]["podIP"]
    assert launch.argv == ("/bin/web", f"--host={ip}")
    shown = {key: launch.env[key] for key in ("POD_IP", "HOSTNAME", "PORT", "PATH", "PODSCALER_INSTANCE")}
    assert shown == {
        "POD_IP": ip,
        "HOSTNAME": "web",
        "PORT": "20080",
        "PATH": "/usr/bin:/bin",
        "PODSCALER_INSTANCE": "instance",
    }
    assert json.loads(played.pod["metadata"]["annotations"]["podscaler.dev/port-map"]) == {"80": 20080}


async def test_a_note_of_ports_that_no_longer_holds_goes(played: Any, container: Make) -> None:
    """A pod that an ordinary user's `up` ran says nothing of 20080 once its ports are bound as they are."""
    await played.begin(annotations={"podscaler.dev/port-map": '{"80": 20080}'}, containers=[container()])
    assert "podscaler.dev/port-map" not in played.pod["metadata"].get("annotations", {})


async def test_an_active_deadline(played: Any, container: Make) -> None:
    """activeDeadlineSeconds ends the pod as Failed with the reason."""
    await played.begin(containers=[container()], activeDeadlineSeconds=5)
    await played.clock.advance(4.9)
    assert played.pod["status"]["phase"] == "Running"
    await played.clock.advance(0.2)
    status = played.pod["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


async def test_a_restart_of_the_node(played: Any, container: Make) -> None:
    """The same pod goes on: same address, restart count up, init containers again."""
    await played.begin(initContainers=[container("init")], containers=[container()])
    played.stage.exit("init", 0)
    await played.clock.advance(0)
    before = played.pod["status"]
    played.worker.shut_down()
    await played.clock.advance(10)
    assert played.pod["status"] == before
    await played.begin_again()
    played.stage.exit("init", 0)
    await played.clock.advance(0)
    after = played.pod["status"]
    assert (after["podIP"], played.container()["restartCount"], played.container("init")["restartCount"]) == (
        before["podIP"],
        1,
        1,
    )
    assert played.container()["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert (after["startTime"], after["phase"]) == (before["startTime"], "Running")


async def test_a_pod_that_a_restart_has_ended(played: Any, container: Make) -> None:
    """With Never it has failed; that it had been initialized stays true."""
    await played.begin(initContainers=[container("init")], containers=[container()], restartPolicy="Never")
    played.stage.exit("init", 0)
    await played.clock.advance(0)
    played.worker.shut_down()
    await played.clock.advance(10)
    await played.begin_again()
    assert (played.pod["status"]["phase"], played.state()) == ("Failed", "ContainerStatusUnknown")
    assert (conditions(played)["Initialized"], conditions(played)["Ready"]) == ("True", "False")


async def test_the_node_stops_within_its_own_time(played: Any, container: Make) -> None:
    """A disobedient container with a long grace period is killed after the node's five seconds."""
    played.stage.obedient = False
    await played.begin(containers=[container()], terminationGracePeriodSeconds=600)
    played.worker.shut_down()
    await played.clock.advance(6)
    assert played.stage.processes["c"].signals == [("SIGTERM", 0), ("SIGKILL", 5)]


async def test_nothing_is_written_while_nothing_happens(
    played: Any, container: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running pod costs no writes, whatever its probes do and however often somebody touches it."""
    probe = {"exec": {"command": ["ok"]}, "periodSeconds": 1}
    init = container("init")
    await played.begin(initContainers=[init], containers=[container(readinessProbe=probe, livenessProbe=probe)])
    played.stage.exit("init", 0)
    await played.clock.advance(2)
    written = []
    monkeypatch.setattr(played.registry, "mutate", lambda *args, **_: written.append(args))
    played.worker.update(played.pod)
    await played.clock.advance(60)
    assert written == []


async def test_a_stop_signal_of_its_own(played: Any, container: Make) -> None:
    """lifecycle.stopSignal is sent in place of SIGTERM."""
    await played.begin(containers=[container(lifecycle={"stopSignal": "SIGUSR1"})], os={"name": "linux"})
    process = played.stage.processes["c"]
    await played.delete()
    assert process.signals == [("SIGUSR1", 0)]


async def set_image(played: Any, image: str) -> None:
    pod = await played.registry.mutate(
        "pods", "default", "web", lambda newest: newest["spec"]["containers"][0].update(image=image)
    )
    played.worker.update(pod)
    await played.clock.advance(0)


async def test_a_changed_image_restarts_its_container(played: Any, container: Make) -> None:
    """The container ends in good order and starts anew; the others go on."""
    await played.begin(containers=[container(), container("other")])
    await played.clock.advance(5)
    await set_image(played, "any:2")
    assert played.stage.starts == [("c", 0), ("other", 0), ("c", 5)]
    assert (played.container()["restartCount"], played.container()["image"]) == (1, "any:2")
    assert ("Killing", "Container c definition changed, will be restarted") in await played.events()


async def test_a_changed_image_is_no_reason_to_end_for_good(played: Any, container: Make) -> None:
    """A pod that is never restarted keeps its container."""
    await played.begin(containers=[container()], restartPolicy="Never")
    await set_image(played, "any:2")
    assert (played.stage.starts, played.state()) == ([("c", 0)], "running")


async def test_an_image_that_is_not_known_can_be_corrected(played: Any, container: Make) -> None:
    """The next try takes the image that the pod has then."""
    await played.begin(containers=[container(command=None)])
    assert played.state() == "ImageNotKnown"
    await set_image(played, "web")
    await played.clock.advance(20)
    assert (played.state(), played.stage.launches["c"].argv) == ("running", ("/bin/web",))


async def test_what_the_machine_lacks_is_one_line_in_the_log(
    played: Any, container: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No descriptor left, a full disk: the container waits and says why; a traceback would help nobody."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("podscaler.controlplane.kubelet.pods.container_setup.prepare", refuse)
    await played.begin(containers=[container()])
    assert played.state() == "CreateContainerConfigError"
    [record] = [r for r in caplog.records if "could not be started" in r.getMessage()]
    assert "Too many open files" in record.getMessage()
    assert not record.exc_info


async def test_a_full_disk_passes(played: Any, container: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A volume that cannot be written is tried again after 1, 3, 7 s, with FailedMount once for all containers."""
    tries: list[float] = []
    write = volume_files.write

    def failing(folder: Path, file: Any, *, group: int | None) -> None:
        tries.append(played.clock.monotonic_s())
        if len(tries) < 3:
            raise OSError(28, "No space left on device", "/volume/a")
        write(folder, file, group=group)

    monkeypatch.setattr(volume_files, "write", failing)
    metadata = {"name": "cm", "namespace": "default"}
    await played.registry.create("configmaps", {"metadata": metadata, "data": {"a": "1"}})
    mounts = [{"name": "v", "mountPath": "/v"}]
    await played.begin(
        containers=[container("c", volumeMounts=mounts), container("d", volumeMounts=mounts)],
        volumes=[{"name": "v", "configMap": {"name": "cm"}}],
    )
    waiting = played.container()["state"]["waiting"]
    assert waiting == {"reason": "ContainerCreating", "message": "/volume/a: No space left on device"}
    await played.clock.advance(3)
    assert (tries, played.state("c"), played.state("d")) == ([0, 1, 3], "running", "running")
    message = "MountVolume.SetUp failed: /volume/a: No space left on device"
    assert (await played.events())[0] == ("FailedMount", message)


async def test_a_deleted_secret_keeps_its_files(played: Any, container: Make, caplog: pytest.LogCaptureFixture) -> None:
    """The volume of a running container keeps the content, and the log says so."""
    await played.registry.create("secrets", {"metadata": {"name": "s", "namespace": "default"}, "data": {"a": "MQ=="}})
    mounts = [{"name": "v", "mountPath": "/v"}]
    await played.begin(
        containers=[container(volumeMounts=mounts)], volumes=[{"name": "v", "secret": {"secretName": "s"}}]
    )
    await played.registry.delete("secrets", "default", "s")
    await played.worker.refresh_volumes("secrets", "s")
    assert played.stage.host.paths.volume(played.pod["metadata"]["uid"], "v").joinpath("a").read_text() == "1"
    assert 'keep the former content of s: secret "s" not found' in caplog.text


async def test_volumes_that_are_not_there_yet(played: Any, container: Make) -> None:
    """A Secret that comes before the first start of a container is written by that start."""
    mounts = [{"name": "v", "mountPath": "/v"}]
    await played.begin(
        containers=[container(volumeMounts=mounts)], volumes=[{"name": "v", "secret": {"secretName": "s"}}]
    )
    await played.registry.create("secrets", {"metadata": {"name": "s", "namespace": "default"}, "data": {"a": "MQ=="}})
    await played.worker.refresh_volumes("secrets", "s")
    before = played.state()
    await played.clock.advance(1)
    assert (before, played.state()) == ("ContainerCreating", "running")
