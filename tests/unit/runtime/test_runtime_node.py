"""The node as the API sees it: its object, its lease, binding pods, and pods without processes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patience import WITHIN_S
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet import startup
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.node import MachineInfo, NodeObject
from podscaler.controlplane.kubelet.node_agent import NodeAgent
from podscaler.controlplane.kubelet.pods.simulated_pod import SimulatedPod
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.kubelet.startup import DetectedHost
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.scheduler import Binder
from podscaler.testing import VirtualClock
from podscaler.testing.containers import PlayedContainers
from podscaler.testing.registry import OpenRegistry

NOW = "2026-01-01T00:00:00Z"
INFO = {"operatingSystem": "linux", "architecture": "amd64", "kubeletVersion": "v1.37.0"}
Make = Callable[..., dict[str, Any]]


def machine(**faults: str) -> MachineInfo:
    return MachineInfo("vm", "127.7.0.1", "127.7.0.0/16", {"cpu": "2", "memory": "4Gi", "pods": "9"}, INFO, faults)


def made(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path, **faults: str) -> NodeObject:
    return NodeObject(opened.registry, clock, KubeletSettings(tmp_path, labels={"disk": "ssd"}), machine(**faults))


async def test_the_node_object(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """Ready, without the taint of new nodes; labels, capacity and addresses of this machine."""
    await made(opened, clock, tmp_path).register()
    found = opened.registry.get("nodes", "", "vm")
    assert "taints" not in found["spec"]
    assert found["metadata"]["labels"] == {
        "kubernetes.io/hostname": "vm",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "disk": "ssd",
    }
    status = found["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "2", "memory": "4Gi", "pods": "9"}
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "127.7.0.1"},
        {"type": "Hostname", "address": "vm"},
    ]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }


async def test_what_the_machine_does_not_allow(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """A condition for each ability, with the reason where it is missing; its time stays while it stays."""
    await made(opened, clock, tmp_path, ResourceLimitsEnforced="no cgroups", PrivateMounts="").register()
    await clock.advance(60)
    await made(opened, clock, tmp_path, ResourceLimitsEnforced="no cgroups", PrivateMounts="gone").register()
    conditions = opened.registry.get("nodes", "", "vm")["status"]["conditions"]
    shown = {
        c["type"]: (c["status"], c["message"], c["lastTransitionTime"], c["lastHeartbeatTime"])
        for c in conditions
        if c["type"] in ("ResourceLimitsEnforced", "PrivateMounts")
    }
    later = "2026-01-01T00:01:00Z"
    assert shown == {
        "ResourceLimitsEnforced": ("False", "no cgroups", NOW, later),
        "PrivateMounts": ("False", "gone", later, later),
    }


async def test_heartbeats(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """The lease is renewed every ten seconds, the status every five minutes."""
    await opened.registry.create("namespaces", {"metadata": {"name": "kube-node-lease"}})
    found = made(opened, clock, tmp_path)
    await found.register()
    task = asyncio.create_task(found.heartbeat())
    await clock.advance(25)
    lease = opened.registry.get("leases.coordination.k8s.io", "kube-node-lease", "vm")
    assert lease["spec"] == {
        "holderIdentity": "vm",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:20.000000Z",
    }
    await clock.advance(280)
    beats = {c["lastHeartbeatTime"] for c in opened.registry.get("nodes", "", "vm")["status"]["conditions"]}
    assert beats == {"2026-01-01T00:05:00Z"}
    task.cancel()


def test_the_name_of_the_node_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is renamed keeps its node; an impossible name becomes `podscaler`; a setting wins."""
    settings, remembered = KubeletSettings(tmp_path), tmp_path / "node"
    monkeypatch.setattr("socket.gethostname", lambda: "Laptop.local")
    assert startup.ensure_node_name(settings, remembered) == "laptop.local"
    monkeypatch.setattr("socket.gethostname", lambda: "other")
    assert startup.ensure_node_name(settings, remembered) == "laptop.local"
    assert startup.ensure_node_name(KubeletSettings(tmp_path, node_name="mine"), remembered) == "mine"
    remembered.unlink()
    monkeypatch.setattr("socket.gethostname", lambda: "bad_name")
    assert startup.ensure_node_name(settings, remembered) == "podscaler"


def test_looking_around(tmp_path: Path) -> None:
    """Folders are private, the instance's id is kept, files of pods that are gone are removed."""
    paths = NodePaths(tmp_path / "node")
    settings = KubeletSettings(tmp_path)
    first, second = startup.detect_host(paths, settings), startup.detect_host(paths, settings)
    assert (first.instance, len(first.instance), first.killed_orphans) == (second.instance, 32, 0)
    assert paths.root.stat().st_mode & 0o777 == 0o700
    assert paths.instance.stat().st_mode & 0o777 == 0o600
    for uid in ("kept", "gone"):
        paths.pod(uid).mkdir()
    startup.remove_orphaned_pods(paths, ["kept"])
    assert [folder.name for folder in paths.pods.iterdir()] == ["kept"]


async def test_what_is_right_is_not_written(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """A node that registers again writes its status only: a webhook for nodes may be one of its pods."""

    def admit(_new: dict[str, Any], old: dict[str, Any] | None) -> None:
        if old is not None:
            raise StatusError("denied", code=403, reason="Forbidden")

    await made(opened, clock, tmp_path).register()
    opened.objects.add_admission("nodes", admit)
    await clock.advance(60)
    await made(opened, clock, tmp_path).register()
    (heartbeat,) = {c["lastHeartbeatTime"] for c in opened.registry.get("nodes", "", "vm")["status"]["conditions"]}
    assert heartbeat == "2026-01-01T00:01:00Z"


async def test_a_denied_node_is_written_later(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """Registration and heartbeats are tried again."""
    await opened.registry.create("namespaces", {"metadata": {"name": "kube-node-lease"}})
    is_denied = True

    def admit(_new: dict[str, Any], _old: dict[str, Any] | None) -> None:
        if is_denied:
            raise StatusError("denied", code=403, reason="Forbidden")

    opened.objects.add_admission("nodes", admit)
    task = asyncio.create_task(made(opened, clock, tmp_path).run())
    await clock.advance(100)
    assert opened.registry.list("nodes") == []
    is_denied = False
    await clock.advance(31)
    assert opened.registry.get("nodes", "", "vm")["status"]["capacity"]["pods"] == "9"
    task.cancel()


async def bound(
    opened: OpenRegistry, clock: VirtualClock, container: Make, *, has_node: bool = True, **spec: Any
) -> tuple[dict[str, Any], list[str]]:
    """A new pod after it met the binder, and the reasons of its events."""
    if has_node and opened.registry.find("nodes", "", "vm") is None:
        await opened.registry.create("nodes", {"metadata": {"name": "vm"}})
    events = EventRecorder(opened.registry, "default-scheduler", clock)
    binder = Binder(opened.registry, clock, events, "vm")
    metadata = {"name": "p", "namespace": "default"}
    spec = {"containers": [container()], **spec}
    await binder.bind(await opened.registry.create("pods", {"metadata": metadata, "spec": spec}))
    await events.flush()
    reasons = [event["reason"] for event in opened.registry.list("events", "default")]
    return opened.registry.get("pods", "default", "p"), reasons


async def test_no_binding_without_a_node(opened: OpenRegistry, clock: VirtualClock, container: Make) -> None:
    """The pod waits with the scheduler's message."""
    pod, reasons = await bound(opened, clock, container, has_node=False)
    assert ("nodeName" in pod["spec"], reasons) == (False, ["FailedScheduling"])
    assert pod["status"]["conditions"][0]["message"] == "no nodes available to schedule pods"


async def test_binding(opened: OpenRegistry, clock: VirtualClock, container: Make) -> None:
    """spec.nodeName, the condition PodScheduled and an event."""
    pod, reasons = await bound(opened, clock, container)
    assert (pod["spec"]["nodeName"], reasons) == ("vm", ["Scheduled"])
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]


async def test_a_pod_that_selects_another_node(opened: OpenRegistry, clock: VirtualClock, container: Make) -> None:
    """It stays unbound, and says why."""
    pod, reasons = await bound(opened, clock, container, nodeSelector={"disk": "hdd"})
    assert ("nodeName" in pod["spec"], reasons) == (False, ["FailedScheduling"])
    (condition,) = pod["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")


async def simulated(
    opened: OpenRegistry, clock: VirtualClock, tmp_path: Path, annotation: str | None = None
) -> tuple[PlayedContainers, SimulatedPod, "asyncio.Task[None]"]:
    """A simulated pod that runs."""
    stage = PlayedContainers(opened.registry, clock, tmp_path / "node")
    annotations = {"podscaler.dev/simulated-startup-seconds": annotation} if annotation else {}
    pod = {
        "metadata": {"name": "sim", "namespace": "default", "annotations": annotations},
        "spec": {
            "nodeName": "node",
            "runtimeClassName": "simulated",
            "initContainers": [
                {"name": "init", "image": "x"},
                {"name": "side", "image": "x", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "c", "image": "x"}],
        },
    }
    worker = SimulatedPod(stage.host, await opened.registry.create("pods", pod))
    task = asyncio.create_task(worker.run())
    await clock.advance(0)
    return stage, worker, task


def shown(opened: OpenRegistry) -> tuple[str, str, str]:
    status = opened.registry.get("pods", "default", "sim")["status"]
    ready = next(c["status"] for c in status["conditions"] if c["type"] == "Ready")
    return status["phase"], ready, status["podIP"]


@pytest.mark.parametrize(
    ("annotation", "at_0", "at_5"),
    [
        (None, "True", "True"),
        ("5", "False", "True"),
        ("5.5", "False", "False"),
        ("soon", "True", "True"),
        ("inf", "True", "True"),
        ("nan", "True", "True"),
        ("1e300", "False", "False"),
    ],
)
async def test_simulated_pods_become_ready(
    opened: OpenRegistry, clock: VirtualClock, tmp_path: Path, annotation: str | None, at_0: str, at_5: str
) -> None:
    """They run at once and are ready after the annotation's seconds."""
    stage, _, task = await simulated(opened, clock, tmp_path, annotation)
    assert shown(opened) == ("Running", at_0, "127.7.1.1")
    await clock.advance(5)
    assert shown(opened) == ("Running", at_5, "127.7.1.1")
    task.cancel()
    await stage.host.events.flush()


async def test_simulated_containers(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """Init containers are done, sidecars and containers run; nothing is restarted by a restart of the node."""
    stage, worker, task = await simulated(opened, clock, tmp_path)
    before = opened.registry.get("pods", "default", "sim")
    states = [
        next(iter(entry["state"]))
        for entry in (*before["status"]["initContainerStatuses"], *before["status"]["containerStatuses"])
    ]
    assert states == ["terminated", "running", "running"]
    worker.shut_down()
    await task
    await clock.advance(100)
    again = SimulatedPod(stage.host, before)
    second = asyncio.create_task(again.run())
    await clock.advance(0)
    assert opened.registry.get("pods", "default", "sim") == before
    second.cancel()


async def test_a_simulated_pod_goes_at_once(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """Deletion needs no grace period, and the address is free again."""
    stage, worker, task = await simulated(opened, clock, tmp_path)
    await opened.registry.delete("pods", "default", "sim")
    worker.update(opened.registry.get("pods", "default", "sim"))
    await clock.advance(0)
    assert opened.registry.find("pods", "default", "sim") is None
    worker.forget()
    await task
    assert stage.host.addresses.allocate_pod("next", preferred="127.7.1.1") == "127.7.1.1"


@pytest.mark.parametrize(("user", "lines"), [(0, 1), (501, 0)])
async def test_up_as_root_is_warned_of(
    opened: OpenRegistry, clock: VirtualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture, user: int, lines: int
) -> None:
    """One line of the log says what pods can do to the machine of a root `up`."""
    found = DetectedHost("i", "vm", 0, Capabilities(user, user == 0, False), "no cgroups", {}, INFO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(startup, "detect_host", lambda *_: found)
        patch.setattr(startup, "remove_orphaned_pods", lambda *_: None)
        agent = NodeAgent(opened.registry, KubeletSettings(tmp_path), clock, addresses=AddressBlock(7))
        running = asyncio.create_task(agent.run())
        async with asyncio.timeout(WITHIN_S):
            while not agent.node_name:  # noqa: ASYNC110  the agent's thread is real
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await agent.stop()
    said = [record.getMessage() for record in caplog.records if "runs as root" in record.getMessage()]
    assert len(said) == lines
    conditions = {c["type"]: c for c in opened.registry.get("nodes", "", "vm")["status"]["conditions"]}
    assert conditions["ProcessLimitsEnforced"]["status"] == "False"
