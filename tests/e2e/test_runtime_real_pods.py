"""The node with real processes: what pods of this machine do to one another, and to the machine."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import prerequisites
from patience import WITHIN_S
from podscaler.api.kinds import catalog
from podscaler.base.clock import SystemClock
from podscaler.base.errors import StatusError
from podscaler.base.version import __version__
from podscaler.controlplane.kubelet.launching import capabilities
from podscaler.controlplane.kubelet.node_agent import NodeAgent
from podscaler.controlplane.kubelet.processes import process_identity
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.network import addresses
from podscaler.controlplane.registry.providers import LogOptions
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing.registry import open_registry

FOREVER = ["/bin/sh", "-c", "while true; do sleep 1; done"]
BUSY = ["/bin/sh", "-c", "sleep 1000 & wait"]
needs_mounts = prerequisites.PRIVATE_MOUNTS.mark(is_there=not capabilities.detect(Path("/tmp")).mount_error)
as_root = prerequisites.ROOT.mark(is_there=os.geteuid() == 0)


def container(name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "any", "command": FOREVER, **fields}


def shell(text: str, **fields: Any) -> dict[str, Any]:
    return container(command=["/bin/sh", "-c", text], **fields)


def python(code: str, **fields: Any) -> dict[str, Any]:
    return container(command=[sys.executable, "-I", "-S", "-u", "-c", code], **fields)


class Node:
    """A node agent over a real registry, in this process; its pods share the machine's network."""

    def __init__(self, registry: Registry, folder: Path) -> None:
        self.registry = registry
        self.folder = folder
        self.agent: NodeAgent
        self._block: addresses.AddressBlock
        self._task: asyncio.Task[None]

    async def start(self) -> None:
        self._block = addresses.claim_block(number_file=self.folder / "block")
        settings = KubeletSettings(
            self.folder / "node", node_name="here", log_max_bytes=200_000, pod_network="loopback"
        )
        self.agent = NodeAgent(self.registry, settings, SystemClock(), addresses=self._block)
        self._task = asyncio.create_task(self.agent.run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.agent.stop()
        self._block.close()

    async def create(self, name: str, *containers: dict[str, Any], **spec: Any) -> None:
        metadata = {"name": name, "namespace": "default", "annotations": spec.pop("annotations", {})}
        body = {"terminationGracePeriodSeconds": 2, "containers": list(containers), **spec}
        await self.registry.create("pods", {"metadata": metadata, "spec": body})

    def status(self, name: str) -> dict[str, Any]:
        found = self.registry.find("pods", "default", name)
        return found["status"] if found else {"phase": "gone"}

    def container(self, name: str) -> dict[str, Any]:
        """The status of the pod's first container; empty where there is none yet."""
        statuses = self.status(name).get("containerStatuses") or [{}]
        found: dict[str, Any] = statuses[0]
        return found

    async def until(self, name: str, phase: str) -> dict[str, Any]:
        return await eventually(lambda: self.status(name), lambda status: status.get("phase") == phase)

    async def log(self, name: str, **options: Any) -> str:
        pod = self.registry.get("pods", "default", name)
        chunks = [chunk async for chunk in self.agent.logs.stream(pod, LogOptions("c", **options))]
        return b"".join(chunks).decode()

    async def logged(self, name: str, text: str) -> str:
        """The log once it has `text` in it."""
        deadline_s = time.monotonic() + WITHIN_S
        found = ""
        while text not in found:
            assert time.monotonic() < deadline_s, found
            await asyncio.sleep(0.02)
            with contextlib.suppress(StatusError):  # it has not started yet
                found = await self.log(name)
        return found

    def events(self, name: str) -> dict[str, str]:
        found = self.registry.list("events", "default")
        return {e["reason"]: e["message"] for e in found if e["involvedObject"]["name"] == name}

    async def pid(self, name: str) -> int:
        """The pid of the pod's only container."""

        def find() -> list[int]:
            return [c.pid for c in self.agent.running_containers() if c.pod_name == name]

        return (await eventually(find, bool))[0]


async def eventually(look: Callable[[], Any], is_it: Callable[[Any], bool]) -> Any:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_it(found := look()):
        assert time.monotonic() < deadline_s, found
        await asyncio.sleep(0.02)
    return found


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node that runs; everything of it is stopped at the end."""
    stored = [resource for resource in catalog.RESOURCES if resource.stored]
    async with open_registry(tmp_path / "data", stored, SystemClock()) as opened:
        await opened.registry.create("namespaces", {"metadata": {"name": "kube-node-lease"}})
        found = Node(opened.registry, tmp_path)
        await found.start()
        yield found
        await found.stop()


async def gone(pid: int) -> None:
    await eventually(lambda: process_identity.start_mark(pid), lambda mark: mark is None)


async def test_nothing_survives_its_container(node: Node) -> None:
    """Children in the group, and daemons with a session of their own, end with the main process."""
    await node.create("p", shell("sleep 1000 & echo $!; setsid sleep 1000 & sleep 0.3; echo done; exit 0"))
    text = await node.logged("p", "done")
    await gone(int(text.split()[0]))
    await eventually(lambda: node.container("p").get("restartCount", 0), lambda count: count >= 1)
    await node.registry.delete("pods", "default", "p")
    await node.until("p", "gone")
    mine = frozenset((_instance(node),))
    await eventually(
        lambda: process_identity.marked_pids(process_identity.INSTANCE_VARIABLE, mine), lambda found: not found
    )


def _instance(node: Node) -> str:
    return (node.folder / "node" / "instance").read_text().strip()


async def test_a_disobedient_group_is_killed(node: Node) -> None:
    """Who ignores SIGTERM is killed with all its children when the grace period is over; the status says 137."""
    await node.create("p", shell("trap '' TERM; sleep 1000 & echo $!; while true; do sleep 1; done"))
    child = int(await node.logged("p", "\n"))
    watch = node.registry.watch("pods")
    await node.registry.delete("pods", "default", "p", grace_period_s=1)
    await node.until("p", "gone")
    await gone(child)
    codes = []
    async for change in watch:
        state = change.object["status"]["containerStatuses"][0]["state"]
        codes.append(state.get("terminated", {}).get("exitCode"))
        if change.type == "DELETED":
            break
    assert codes[-1] == 137


async def test_hooks_and_exec_probes_run_in_the_container(node: Node) -> None:
    """They have its environment and its folder; preStop is through before SIGTERM comes."""
    told = node.folder / "told"
    main = f"trap 'cp pre {told}; exit 0' TERM; echo up; while true; do sleep 0.1; done"
    hooks = {
        "postStart": {"exec": {"command": ["/bin/sh", "-c", "echo $NAME > post"]}},
        "preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 0.3; cat post > pre"]}},
    }
    probe = {"exec": {"command": ["/bin/grep", "-q", "me", "post"]}, "periodSeconds": 1}
    env = [{"name": "NAME", "value": "me"}]
    body = shell(main, lifecycle=hooks, readinessProbe=probe, env=env)
    await node.create("p", body, terminationGracePeriodSeconds=600)
    await eventually(lambda: node.container("p").get("ready"), bool)
    await node.logged("p", "up")
    await node.registry.delete("pods", "default", "p")
    await node.until("p", "gone")
    assert told.read_text() == "me\n"


@needs_mounts
async def test_volumes_are_shared_and_private(node: Node) -> None:
    """Two containers share an emptyDir; a secret is a file in a folder that the machine has not."""
    secret = {"metadata": {"name": "s", "namespace": "default"}, "data": {"key": "aGlkZGVu"}}
    await node.registry.create("secrets", secret)
    volumes = [{"name": "shared", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "s", "defaultMode": 256}}]
    mounts = [
        {"name": "shared", "mountPath": "/shared"},
        {"name": "s", "mountPath": "/var/run/secrets/app", "readOnly": True},
    ]
    writer = shell("cat /var/run/secrets/app/key > /shared/out; sleep 1000", name="writer", volumeMounts=mounts)
    code = "until [ -s /shared/out ]; do sleep 0.05; done; cat /shared/out; stat -c ' %a' /var/run/secrets/app/key"
    probe = {"exec": {"command": ["/usr/bin/test", "-s", "/shared/out"]}, "periodSeconds": 1}
    reader = shell(code + "; sleep 1000", volumeMounts=mounts, readinessProbe=probe)
    await node.create("p", reader, writer, volumes=volumes)
    assert await node.logged("p", "\n") == "hidden 400\n"
    await eventually(lambda: node.container("p").get("ready"), bool)
    assert not os.path.exists("/shared")


@needs_mounts
async def test_a_late_secret_reaches_a_running_container(node: Node) -> None:
    """An optional Secret that is created while the container runs becomes a file of its volume, and follows changes."""
    volume = {"name": "s", "secret": {"secretName": "late", "optional": True}}
    show = "until grep -qs second /secret/key; do sleep 0.05; done; ls /secret; sleep 1000"
    await node.create("p", shell(show, volumeMounts=[{"name": "s", "mountPath": "/secret"}]), volumes=[volume])
    await node.pid("p")
    secret = {"metadata": {"name": "late", "namespace": "default"}, "data": {"key": "Zmlyc3Q=", "old": ""}}
    created = await node.registry.create("secrets", secret)
    await node.registry.update("secrets", {**created, "data": {"key": "c2Vjb25k"}})
    assert await node.logged("p", "\n") == "key\n"


@needs_mounts
async def test_a_volume_covers_the_folder_of_the_node(node: Node) -> None:
    """It does not hide the volumes that are mounted after it; the container starts in / then."""
    await node.registry.create(
        "secrets", {"metadata": {"name": "late", "namespace": "default"}, "data": {"key": "aGlkZGVu"}}
    )
    volumes = [{"name": "cover", "emptyDir": {}}, {"name": "late", "secret": {"secretName": "late"}}]
    mounts = [{"name": "cover", "mountPath": "/tmp"}, {"name": "late", "mountPath": "/secret-of-the-test"}]
    main = shell("cat /secret-of-the-test/key; ls /tmp; pwd", volumeMounts=mounts)
    await node.create("p", main, volumes=volumes, restartPolicy="Never")
    await node.until("p", "Succeeded")
    assert await node.log("p") == "hidden/\n"


@as_root
async def test_containers_run_as_who_they_are_told(node: Node) -> None:
    """runAsUser and runAsGroup are real; the folder it starts in is its own."""
    context = {"runAsUser": 4321, "runAsGroup": 4322}
    await node.create(
        "p", shell("id -u; id -g; touch mine && echo mine"), restartPolicy="Never", securityContext=context
    )
    await node.until("p", "Succeeded")
    assert await node.log("p") == "4321\n4322\nmine\n"


@as_root
@needs_mounts
async def test_a_built_in_image_runs_as_another_user(node: Node) -> None:
    """Its interpreter may lie in the closed home of `up`; nothing else of that home is seen."""
    container = {"name": "c", "image": "podscaler", "args": ["--version"]}
    context = {"runAsNonRoot": True}
    await node.create("p", container, restartPolicy="Never", securityContext=context)
    await node.until("p", "Succeeded")
    assert await node.log("p") == f"podscaler, version {__version__}\n"


@as_root
@pytest.mark.parametrize("is_interpreter", [False, True])
async def test_a_program_below_a_closed_folder_is_explained(
    node: Node, tmp_path: Path, *, is_interpreter: bool
) -> None:
    """The state of the container names the folder that its user may not search, for a script's interpreter too."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    program = closed / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(f"#! {program} -x\n")
    script.chmod(0o755)
    container = {"name": "c", "image": "any", "command": [str(script if is_interpreter else program)]}
    await node.create("p", container, restartPolicy="Never", securityContext={"runAsUser": 4321})
    await node.until("p", "Failed")
    message = node.container("p")["state"]["terminated"]["message"]
    subject = f"its interpreter {program}" if is_interpreter else "it"
    assert f"{subject} is below {closed}, which user 4321 may not search" in message


@as_root
@needs_mounts
async def test_other_users_have_volumes_and_a_folder_too(node: Node) -> None:
    """With volumes as well, another user starts in its own folder, though the data directory is closed to it."""
    node.folder.chmod(0o700)
    context = {"runAsUser": 4321, "runAsGroup": 4322, "fsGroup": 4323}
    writer = shell(
        "touch mine && echo mine; echo ours > /shared/x; stat -c %u:%g /shared/x",
        volumeMounts=[{"name": "shared", "mountPath": "/shared"}],
    )
    await node.create(
        "p",
        writer,
        restartPolicy="Never",
        securityContext=context,
        volumes=[{"name": "shared", "emptyDir": {}}],
    )
    await node.until("p", "Succeeded")
    assert await node.log("p") == "mine\n4321:4323\n"


LISTEN = (
    "import socket,time;s=socket.socket();s.bind(('0.0.0.0',%d));s.listen();print(s.getsockname()[1]);time.sleep(1000)"
)


async def test_an_address_in_use_is_explained(node: Node) -> None:
    """The second pod that binds 0.0.0.0 dies, and its event names POD_IP; the first goes on."""
    await node.create("first", python(LISTEN % 0))
    port = int(await node.logged("first", "\n"))
    await node.create("second", python(LISTEN % port))
    message = await eventually(lambda: node.events("second").get("BindFailed", ""), bool)
    assert "bind to the pod's own address in $POD_IP (127." in message
    assert node.status("first")["containerStatuses"][0]["restartCount"] == 0


@as_root
async def test_a_low_port_is_explained(node: Node) -> None:
    """Who may not bind its port gets an event that says so."""
    if capabilities.detect(Path("/tmp")).unprivileged_port_start <= 80:
        prerequisites.LOW_PORTS.skip()
    code = (
        "import os,socket,sys;os.setuid(4321);s=socket.socket()\n"
        "try: s.bind((os.environ['POD_IP'],80))\n"
        "except OSError as error: sys.exit(f'cannot listen: {error}')"
    )
    await node.create("p", python(code))
    message = await eventually(lambda: node.events("p").get("BindFailed", ""), bool)
    assert "Ports below 1024 need root here" in message


async def test_the_web_server_of_the_walkthrough(node: Node) -> None:
    """The image hpa-example serves on its containerPort, or where the port map says; the probe finds it."""
    probe = {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 1, "timeoutSeconds": 5}
    web = {
        "name": "c",
        "image": "registry.k8s.io/hpa-example",
        "ports": [{"containerPort": 80}],
        "readinessProbe": probe,
    }
    await node.create("p", web)
    await eventually(lambda: node.container("p").get("ready"), bool)
    pod = node.registry.get("pods", "default", "p")
    ports = json.loads((pod["metadata"].get("annotations") or {}).get("podscaler.dev/port-map", "{}"))
    reader, writer = await asyncio.open_connection(pod["status"]["podIP"], ports.get("80", 80))
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert b"OK!" in await reader.read()
    writer.close()


async def test_a_noisy_container_is_bounded(node: Node) -> None:
    """Millions of lines: two files of the limit at most, the newest lines are there, others are served meanwhile."""
    await node.create("noisy", shell("i=0; while true; do i=$((i+1)); echo line $i; done"))
    await node.create("quiet", shell("echo hello; sleep 1000"))
    await node.logged("quiet", "hello")
    uid = node.registry.get("pods", "default", "noisy")["metadata"]["uid"]
    folder = node.folder / "node" / "pods" / uid / "logs" / "c"
    await eventually(lambda: len(list(folder.glob("*"))), lambda count: count >= 2)  # both files were needed
    assert sum(map(size_bytes, folder.iterdir())) <= 2 * 1_300_000
    numbers = [int(line.split()[1]) for line in (await node.log("noisy", tail_lines=50)).splitlines()]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) >= 50


def size_bytes(path: Path) -> int:
    """Of a log file, which may be renamed at any time."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


async def test_a_follower_sees_the_end(node: Node) -> None:
    """kubectl logs -f ends when the container has ended, with its last words."""
    await node.create("p", shell("for i in 1 2 3; do echo $i; sleep 0.2; done; printf end"), restartPolicy="Never")
    await node.logged("p", "1")
    async with asyncio.timeout(WITHIN_S):
        assert await node.log("p", follow=True) == "1\n2\n3\nend"


async def test_one_bad_pod_harms_nobody(node: Node) -> None:
    """Programs, folders and images that are not there: a state and a reason each, and the good one runs."""
    await node.create("program", container(command=["/podscaler-test/no/program"]))
    await node.create("folder", container(workingDir="/podscaler-test/no/folder"))
    await node.create("image", {"name": "c", "image": "nowhere/nothing:1"})
    await node.create("good", shell("echo fine; sleep 1000"))
    await node.logged("good", "fine")

    def reasons() -> list[str]:
        found = [node.container(name) for name in ("program", "folder", "image")]
        return [status.get("state", {}).get("waiting", {}).get("reason", "") for status in found]

    await eventually(reasons, lambda found: found == ["CrashLoopBackOff", "CrashLoopBackOff", "ImageNotKnown"])
    last = node.status("folder")["containerStatuses"][0]["lastState"]["terminated"]
    assert last["message"] == 'the working directory "/podscaler-test/no/folder" does not exist on this machine'


async def test_a_stopped_node_leaves_no_process(node: Node) -> None:
    """After a clean stop nothing runs and the objects are there; a new start runs them again as the same pods."""
    await node.create("p", container(command=BUSY))
    await node.until("p", "Running")
    pid, before = await node.pid("p"), node.registry.get("pods", "default", "p")
    await node.stop()
    assert process_identity.start_mark(pid) is None
    await node.start()
    await eventually(lambda: node.container("p").get("restartCount", 0), lambda count: count == 1)
    after = node.registry.get("pods", "default", "p")
    assert (after["metadata"]["uid"], after["status"]["podIP"]) == (
        before["metadata"]["uid"],
        before["status"]["podIP"],
    )


async def test_a_killed_process_is_started_again(node: Node) -> None:
    """SIGKILL from outside: exit code 137, and the next start."""
    await node.create("p", container(command=BUSY))
    os.kill(await node.pid("p"), signal.SIGKILL)
    await eventually(lambda: node.container("p").get("restartCount", 0), lambda count: count == 1)
    assert node.status("p")["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137


@pytest.mark.slow
async def test_many_pods(node: Node) -> None:
    """40 real and 400 simulated pods come and go together."""
    names = [f"real-{i}" for i in range(40)]
    played = [f"simulated-{i}" for i in range(400)]
    await asyncio.gather(*(node.create(name, container(command=["/bin/sleep", "1000"])) for name in names))
    await asyncio.gather(*(node.create(name, container(), runtimeClassName="simulated") for name in played))

    def phases() -> set[str]:
        return {pod["status"].get("phase", "") for pod in node.registry.list("pods")}

    await eventually(phases, lambda found: found == {"Running"})
    found = node.registry.list("pods")
    assert len({pod["status"]["podIP"] for pod in found}) == 440
    assert len(node.agent.running_containers()) == 40
    await asyncio.gather(*(node.registry.delete("pods", "default", name) for name in names + played))
    await eventually(lambda: len(node.registry.list("pods")), lambda count: count == 0)
    await eventually(node.agent.running_containers, lambda running: not running)
