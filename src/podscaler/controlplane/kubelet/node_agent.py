"""The node of the control plane: runs the pods that are bound to it, until it is stopped.

`up` makes one `NodeAgent` and runs it beside the API server. It begins by cleaning up what an earlier run left,
registers the Node, then follows all pods: unbound ones it binds, its own it gives a worker each. A worker that fails is
started again for the same pod; nothing that one pod does reaches another.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane import scheduler
from podscaler.controlplane.kubelet import node, startup
from podscaler.controlplane.kubelet.containers import container_process, token_renewal
from podscaler.controlplane.kubelet.containers.container_run import ContainerRun
from podscaler.controlplane.kubelet.containers.host import Host
from podscaler.controlplane.kubelet.launching import images, process_limits
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.launching.images import ImageCommand
from podscaler.controlplane.kubelet.launching.port_translation import PortTranslator
from podscaler.controlplane.kubelet.logs.log_files import LogBook
from podscaler.controlplane.kubelet.logs.log_reader import NodeLogs
from podscaler.controlplane.kubelet.node import MachineInfo, NodeObject
from podscaler.controlplane.kubelet.node_connections import NodeConnections
from podscaler.controlplane.kubelet.pods import simulated_pod
from podscaler.controlplane.kubelet.pods.pod_worker import PodWorker
from podscaler.controlplane.kubelet.pods.running import RunningProcess
from podscaler.controlplane.kubelet.pods.simulated_pod import SimulatedPod
from podscaler.controlplane.kubelet.probes.handlers import Checks
from podscaler.controlplane.kubelet.processes import cgroups
from podscaler.controlplane.kubelet.processes.background import Background
from podscaler.controlplane.kubelet.processes.orphaned_processes import Sweeper
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.settings import RuntimeSettings
from podscaler.controlplane.kubelet.processes.threads import Threads
from podscaler.controlplane.kubelet.startup import StartupFindings
from podscaler.controlplane.kubelet.volumes.volume_files import IssueToken
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.pod_connections import PodConnections
from podscaler.controlplane.registry.providers import PodLogs
from podscaler.controlplane.registry.registry import Object, ObjectEvent, Registry
from podscaler.controlplane.scheduler import Binder

RETRY_S: Final = 1.0
STOP_SLACK_S: Final = 10.0
ROOT_WARNING: Final = (
    "`podscaler up` runs as root: pods without runAsUser run as root of this machine, and whoever may create pods can "
    "read and change everything on it (SECURITY.md). An ordinary user is enough for most work"
)
_ENDED = ("Succeeded", "Failed")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """One container that has a process: `pid` is its main process, `commands` are those of clients beside it."""

    pod_namespace: str
    pod_name: str
    pod_uid: str
    container: str
    pid: int
    started_ns: int
    commands: frozenset[int] = frozenset()


class Worker(Protocol):
    """What runs one pod: `PodWorker`, `SimulatedPod`."""

    def update(self, pod: Object) -> None:
        """The object has a new version."""
        ...

    def forget(self) -> None:
        """The object is gone."""
        ...

    def shut_down(self) -> None:
        """The node stops."""
        ...

    def running(self) -> list[RunningProcess]:
        """The containers that run."""
        ...

    async def run(self) -> None:
        """Work until there is nothing left to do for the pod."""
        ...


class NodeAgent:
    """See the module.

    Args:
        addresses: the block of this `up`; the caller closes it after `stop`.
        resolve_image: what an image name stands for.
        issue_token: makes tokens of service accounts, None where there are none.
    """

    def __init__(
        self,
        registry: Registry,
        settings: RuntimeSettings,
        clock: Clock,
        *,
        addresses: AddressBlock,
        resolve_image: Callable[[str], ImageCommand | None] = images.resolve,
        issue_token: IssueToken | None = None,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._addresses = addresses
        self._resolve_image = resolve_image
        self._issue_token = issue_token
        self._threads = Threads()
        self._paths = NodePaths(settings.data_dir)
        self._book = LogBook(self._threads, clock, max_bytes=settings.log_max_bytes)
        self._background = Background()
        self._checks = Checks()
        self._workers: dict[str, tuple[Object, Worker]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._host: Host | None = None
        self._node_object: NodeObject | None = None
        self._recorders: list[EventRecorder] = []
        self._stops = False
        self.connections: PodConnections = NodeConnections(self._find_run, self._has_processes, addresses)
        self.logs: PodLogs = NodeLogs(self._threads, self._book, self._paths, clock)

    @property
    def node_name(self) -> str:
        """The name of the Node object; empty until `run` has begun."""
        return self._host.node_name if self._host else ""

    def running_containers(self) -> list[RunningContainer]:
        """All containers that have a process now."""
        return [
            RunningContainer(
                meta["namespace"], meta["name"], meta["uid"], one.name, one.pid, one.started_ns, one.commands
            )
            for pod, worker in self._workers.values()
            for meta in (pod["metadata"],)
            for one in worker.running()
        ]

    def _find_run(self, uid: str, container: str) -> ContainerRun | None:
        worker = self._workers[uid][1] if uid in self._workers else None
        return worker.find_run(container) if isinstance(worker, PodWorker) else None

    def _has_processes(self, uid: str) -> bool:
        return uid in self._workers and bool(self._workers[uid][1].running())

    async def run(self) -> None:
        """Run pods until cancelled; may be run again after it failed. Raises StatusError, OSError at the beginning."""
        if self._host is None or self._node_object is None:
            self._host, self._node_object = await self._begin()
        host, node_object = self._host, self._node_object
        events = EventRecorder(self._registry, scheduler.SCHEDULER, self._clock)
        self._recorders += [host.events, events]
        binder = Binder(self._registry, self._clock, events, host.node_name)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat(node_object))
            group.create_task(self._follow_node(binder))
            group.create_task(self._follow_pods(host, binder))
            if host.port_translator is not None:
                group.create_task(self._follow_services(host.port_translator))
            group.create_task(token_renewal.run(host, lambda: [pod for pod, _ in self._workers.values()]))

    async def stop(self) -> None:
        """End all containers (their objects stay), then return. `run` is to be cancelled first."""
        self._stops = True
        for _, worker in self._workers.values():
            worker.shut_down()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks.values(), timeout=self._settings.stop_grace_s + STOP_SLACK_S)
            for task in late:
                _log.error("%s did not end in time", task.get_name())
        for recorder in self._recorders:
            await recorder.flush()
        await self._background.cancel_all()
        await self._checks.close()
        if self._host is not None and self._host.port_translator is not None:
            self._host.port_translator.close()
        self._threads.close()

    # --- the beginning --------------------------------------------------------------------------------------------

    async def _begin(self) -> tuple[Host, NodeObject]:
        found = await self._threads.run(startup.look_around, self._paths, self._settings)
        if found.killed:
            _log.warning("%d processes that an earlier run had left behind were ended", found.killed)
        if found.capabilities.user == process_limits.ROOT:
            _log.warning(ROOT_WARNING)
        if fault := _low_port_fault(found.capabilities):
            _log.warning("ports below %d: %s", found.capabilities.first_port, fault)
        machine = MachineInfo(
            name=found.node_name,
            address=self._addresses.node_address,
            cidr=self._addresses.cidr,
            capacity=found.capacity,
            info=found.info,
            faults={
                "PrivateMounts": found.capabilities.mount_fault,
                "ResourceLimitsEnforced": found.cgroups if isinstance(found.cgroups, str) else "",
                node.PROCESS_LIMITS: found.capabilities.processes.fault(cgroups.pids_fault(found.cgroups)),
                "PodAddresses": _address_fault(self._addresses),
                "LowPorts": _low_port_fault(found.capabilities),
            },
            processes=found.capabilities.processes,
        )
        node_object = NodeObject(self._registry, self._clock, self._settings, machine)
        await node_object.register()
        known = [pod["metadata"]["uid"] for pod in self._registry.list("pods")]
        await self._threads.run(startup.remove_strangers, self._paths, known)
        return self._make_host(found), node_object

    def _make_host(self, found: StartupFindings) -> Host:
        return Host(
            registry=self._registry,
            settings=self._settings,
            clock=self._clock,
            events=EventRecorder(self._registry, "kubelet", self._clock, host=found.node_name),
            addresses=self._addresses,
            threads=self._threads,
            background=self._background,
            book=self._book,
            sweeper=Sweeper(self._threads, self._clock),
            paths=self._paths,
            capabilities=found.capabilities,
            resolve_image=self._resolve_image,
            start_process=container_process.start,
            check=self._checks.check,
            instance=found.instance,
            node_name=found.node_name,
            allocatable=found.capacity,
            cgroups=None if isinstance(found.cgroups, str) else found.cgroups,
            issue_token=self._issue_token,
            port_translator=self._make_translator(found.capabilities),
        )

    def _make_translator(self, found: Capabilities) -> PortTranslator | None:
        return PortTranslator(self._addresses, first_port=found.first_port) if found.translates_ports else None

    # --- following ------------------------------------------------------------------------------------------------

    async def _beat(self, node_object: NodeObject) -> None:
        while True:
            try:
                await node_object.beat()
            except StatusError as error:
                _log.warning("the node's heartbeat cannot be written: %s", error.message)
            await self._clock.sleep(RETRY_S)

    async def _follow_node(self, binder: Binder) -> None:
        """Try pods that could not be bound again when the node has changed."""
        async for change in self._watch("nodes"):
            if change.type != "MODIFIED":
                continue
            for pod in self._registry.list("pods"):
                if not scheduler.is_skipped(pod):
                    await self._bind(binder, pod)

    async def _follow_pods(self, host: Host, binder: Binder) -> None:
        async for change in self._watch("pods"):
            pod = change.object
            node_name = pod["spec"].get("nodeName")
            if change.type == "DELETED":
                await self._forget(pod)
            elif not node_name:
                self._background.start(self._bind(binder, pod), "binding of a pod")
            elif node_name == host.node_name:
                self._take(host, pod)

    async def _follow_services(self, translator: PortTranslator) -> None:
        """Tell the translator where the ports of Services are."""
        async for change in self._watch("services"):
            translator.note_service(change.object, is_gone=change.type == "DELETED")

    async def _watch(self, resource: str) -> AsyncIterator[ObjectEvent]:
        """All changes; after a watch was cut, pods that went meanwhile are told as DELETED."""
        while True:
            changes = self._registry.watch(resource)
            if resource == "pods":
                for pod in self._missed():
                    yield ObjectEvent("DELETED", pod)
            try:
                async for change in changes:
                    yield change
            except StatusError as error:
                if error.code != 410:
                    raise

    def _missed(self) -> list[Object]:
        stored = {pod["metadata"]["uid"] for pod in self._registry.list("pods")} if self._workers else set()
        return [pod for uid, (pod, _) in self._workers.items() if uid not in stored]

    async def _bind(self, binder: Binder, pod: Object) -> None:
        try:
            await binder.bind(pod)
        except StatusError as error:
            _log.warning("pod %s cannot be bound: %s", pod["metadata"]["name"], error.message)

    def _take(self, host: Host, pod: Object) -> None:
        """Give the pod's worker the new version, or the pod a worker."""
        uid = pod["metadata"]["uid"]
        known = self._workers.get(uid)
        if known is not None:
            former, worker = known
            self._workers[uid] = (pod, worker)
            if _matters(former, pod):
                worker.update(pod)
        elif not self._stops and not _is_over(pod):
            worker = SimulatedPod(host, pod) if simulated_pod.is_simulated(pod) else PodWorker(host, pod)
            self._workers[uid] = (pod, worker)
            self._tasks[uid] = asyncio.get_running_loop().create_task(self._work(host, uid), name=f"pod {uid}")

    async def _forget(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        known = self._workers.get(uid)
        if known is not None:
            known[1].forget()
        else:
            await self._threads.run(startup.remove_pod, self._paths, uid)

    async def _work(self, host: Host, uid: str) -> None:
        """Run a pod's worker; one that fails is started again after a moment."""
        while True:
            try:
                await self._workers[uid][1].run()
                break
            except Exception:
                _log.exception("the worker of pod %s failed; it goes on in %g s", uid, RETRY_S)
                await self._clock.sleep(RETRY_S)
        host.addresses.release_pod(uid)
        _, worker = self._workers.pop(uid)
        del self._tasks[uid]
        if not self._stops and not isinstance(worker, SimulatedPod):
            await self._threads.run(startup.remove_pod, self._paths, uid)


def _is_over(pod: Object) -> bool:
    """Whether nothing is to be done for the pod but to keep its logs."""
    return (pod.get("status") or {}).get("phase") in _ENDED and not pod["metadata"].get("deletionTimestamp")


def _matters(former: Object, pod: Object) -> bool:
    """Whether a new version tells the worker something: its own writes of the status do not."""
    if _without_version(former) != _without_version(pod):
        return True
    return bool(pod["spec"].get("readinessGates")) and former.get("status") != pod.get("status")


def _without_version(pod: Object) -> tuple[dict[str, Any], Any]:
    meta = {key: value for key, value in pod["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return meta, pod["spec"]


def _address_fault(addresses: AddressBlock) -> str:
    if not addresses.is_shared:
        return ""
    return "this machine has one loopback address, 127.0.0.1, which all pods share: give each port to one pod only"


def _low_port_fault(found: Capabilities) -> str:
    if not found.port_fault:
        return ""
    return f"they are 20000 higher, also inside pods, as the calls of pods cannot be translated: {found.port_fault}"
