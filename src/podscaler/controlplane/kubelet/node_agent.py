"""The node agent of the control plane, its kubelet: runs the pods that are bound to the node until it is stopped.

`podscaler.cli.up.machine` makes one `NodeAgent` and runs it beside the API server. At its start it kills orphaned
processes of an earlier run and registers the Node. Then it watches pods: unbound pods are passed to the scheduler's
`Binder`, and each pod of this node gets a worker. A worker that fails is started again; a failure of one pod does not
affect others. A new watch or periodic task is a task of `run`; a part that the workers need, a field of `Dependencies`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.controlplane import scheduler
from podscaler.controlplane.kubelet import node, startup, token_renewal
from podscaler.controlplane.kubelet.containers import container_process
from podscaler.controlplane.kubelet.containers.container_run import ContainerRun
from podscaler.controlplane.kubelet.containers.dependencies import Dependencies, release_address
from podscaler.controlplane.kubelet.launching import image_map, process_limits
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.launching.image_map import ImageMap
from podscaler.controlplane.kubelet.launching.port_translation import PortTranslator
from podscaler.controlplane.kubelet.logs.container_log import ContainerLogManager
from podscaler.controlplane.kubelet.logs.log_reader import NodeLogs
from podscaler.controlplane.kubelet.node import MachineInfo, NodeObject
from podscaler.controlplane.kubelet.node_connections import NodeConnections
from podscaler.controlplane.kubelet.pods import simulated_pod
from podscaler.controlplane.kubelet.pods.pod_worker import PodWorker
from podscaler.controlplane.kubelet.pods.simulated_pod import SimulatedPod
from podscaler.controlplane.kubelet.pods.worker import Worker
from podscaler.controlplane.kubelet.probes.handlers import HandlerRunner
from podscaler.controlplane.kubelet.processes import cgroups
from podscaler.controlplane.kubelet.processes.background import BackgroundTasks, ThreadPool
from podscaler.controlplane.kubelet.processes.orphaned_processes import OrphanKiller
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.kubelet.startup import DetectedHost
from podscaler.controlplane.kubelet.volumes.volume_files import TRUST_BUNDLES, IssueToken
from podscaler.controlplane.network import pod_networks
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.pod_networks import PodNetworkError, PodNetworks
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.providers import PodLogs
from podscaler.controlplane.registry.registry import Object, Registry
from podscaler.controlplane.scheduler import Binder

RETRY_S: Final = 1.0
"""The delay before a failed worker is run again."""
STOP_SLACK_S: Final = 10.0
"""The seconds that `stop` waits for workers in addition to the grace period of containers."""
ROOT_WARNING: Final = (
    "`podscaler up` runs as root: pods without runAsUser run as root of this machine, and whoever may create pods can "
    "read and change everything on it (SECURITY.md). An ordinary user is enough for most work"
)
_FINAL_PHASES = ("Succeeded", "Failed")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """A container that has a process.

    Attributes:
        container: the container's name.
        pid: the main process.
        started_ns: the start of the main process, in nanoseconds since the epoch.
        command_pids: the pids of the commands that clients run in it (exec).
    """

    pod_namespace: str
    pod_name: str
    pod_uid: str
    container: str
    pid: int
    started_ns: int
    command_pids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeServices:
    """Functions of other parts of the control plane that the node calls; each is optional.

    Attributes:
        issue_token: issues tokens of service accounts; None if the API server issues none.
        start_endpoints: starts the HTTPS endpoints of the node with this name, and returns their port; None: the node
            has no endpoints.
    """

    issue_token: IssueToken | None = None
    start_endpoints: Callable[[str], Awaitable[int]] | None = None


NO_SERVICES: Final = NodeServices()


class NodeAgent:
    """Registers one node and runs the pods that are bound to it: `run`, then `stop`.

    Args:
        registry: reads pods, and writes their statuses, the Node and events.
        addresses: the address block of this `up`; the caller closes it after `stop`.
        images: the commands of image names; by default of the built-in images, and of the ConfigMap.
        services: functions of other parts of the control plane.

    Attributes:
        connections: opens exec, attach and port-forward sessions for the API server.
        logs: reads the logs of containers for the API server.
    """

    def __init__(
        self,
        registry: Registry,
        settings: KubeletSettings,
        clock: Clock,
        *,
        addresses: AddressBlock,
        images: ImageMap | None = None,
        services: NodeServices = NO_SERVICES,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._addresses = addresses
        self._image_map = images or ImageMap({})
        self._issue_token = services.issue_token
        self._start_endpoints = services.start_endpoints
        self._threads = ThreadPool()
        self._paths = NodePaths(settings.data_dir)
        self._live_logs = ContainerLogManager(self._threads, clock, max_bytes=settings.log_max_bytes)
        self._background = BackgroundTasks()
        self._handlers = HandlerRunner()
        self._workers: dict[str, tuple[Object, Worker]] = {}  # uid of a pod -> its latest version, and its worker
        self._tasks: dict[str, asyncio.Task[None]] = {}  # uid of a pod -> the task that runs its worker
        self._deps: Dependencies | None = None
        self._node_object: NodeObject | None = None
        self._recorders: list[EventRecorder] = []
        self._is_stopping = False
        self._networks: PodNetworks | None = None
        # why pods have no network namespaces, empty where they have; None before `_open_networks`
        self._network_limitation: str | None = None
        self.connections = NodeConnections(self._find_run, self._has_processes, addresses, lambda: self._networks)
        self.logs: PodLogs = NodeLogs(self._threads, self._live_logs, self._paths, clock)

    @property
    def node_name(self) -> str:
        """The name of the Node object; empty before `run` has registered it."""
        return self._deps.node_name if self._deps else ""

    def running_containers(self) -> list[RunningContainer]:
        """All containers that have a process now, for `podscaler.controlplane.metrics.resource.sampler`."""
        containers = []
        for pod, worker in self._workers.values():
            meta = pod["metadata"]
            containers += [
                RunningContainer(
                    pod_namespace=meta["namespace"],
                    pod_name=meta["name"],
                    pod_uid=meta["uid"],
                    container=process.name,
                    pid=process.pid,
                    started_ns=process.started_ns,
                    command_pids=process.command_pids,
                )
                for process in worker.running_processes()
            ]
        return containers

    def _find_run(self, uid: str, container: str) -> ContainerRun | None:
        """The run of a container, by the uid of its pod and its name; None unless its process runs."""
        worker = self._find_worker(uid)
        return worker.find_run(container) if isinstance(worker, PodWorker) else None

    def _has_processes(self, uid: str) -> bool:
        """Whether a container of the pod with this uid has a process."""
        worker = self._find_worker(uid)
        return worker is not None and bool(worker.running_processes())

    def _find_worker(self, uid: str) -> Worker | None:
        """The worker of the pod with this uid, None if it has none."""
        _, worker = self._workers.get(uid, (None, None))
        return worker

    async def open_demanded_networks(self) -> None:
        """Open the network namespaces of pods before `run`, where `--pod-network=namespaces` demands them.

        `up` calls it, and ends with the UsageError that it raises where namespaces are impossible.
        """
        if self._settings.pod_network == "namespaces":
            await self._open_networks()

    async def _open_networks(self) -> None:
        """Open the network namespaces of pods as `--pod-network` says, unless that was done. Raises UsageError."""
        if self._network_limitation is None:
            self._networks, self._network_limitation = await self._try_networks()

    async def run(self) -> None:
        """Run pods until cancelled; may be called again after a failure.

        Raises StatusError, OSError, UsageError, PodNetworkError at the start, ExceptionGroup of the errors of its
        tasks.
        """
        if self._deps is None or self._node_object is None:
            self._deps, self._node_object = await self._start_node()
        deps, node_object = self._deps, self._node_object
        scheduler_events = EventRecorder(self._registry, scheduler.SCHEDULER_NAME, self._clock)
        self._recorders += [deps.events, scheduler_events]
        binder = Binder(self._registry, self._clock, scheduler_events, deps.node_name)
        async with asyncio.TaskGroup() as group:
            group.create_task(node_object.run())
            group.create_task(self._watch_nodes(binder))
            group.create_task(self._watch_pods(deps, binder))
            for resource in ("configmaps", "secrets", TRUST_BUNDLES):
                group.create_task(self._watch_volume_objects(resource))
            if deps.port_translator is not None:
                group.create_task(self._watch_services(deps.port_translator))
            if deps.issue_token is not None:
                group.create_task(
                    token_renewal.run(
                        lambda: [pod for pod, _ in self._workers.values()],
                        deps.issue_token,
                        paths=deps.paths,
                        threads=deps.threads,
                        clock=deps.clock,
                    )
                )

    async def stop(self) -> None:
        """Stop all containers and keep their objects; the caller cancels `run` before. Raises PodNetworkError."""
        self._is_stopping = True
        for _, worker in self._workers.values():
            worker.shut_down()
        if self._tasks:
            timeout_s = self._settings.stop_grace_s + STOP_SLACK_S
            _, unfinished = await asyncio.wait(self._tasks.values(), timeout=timeout_s)
            for task in unfinished:
                _log.error("%s did not end in time", task.get_name())
        for recorder in self._recorders:
            await recorder.flush()
        await self._background.cancel_all()
        await self._handlers.close()
        if self._deps is not None and self._deps.port_translator is not None:
            self._deps.port_translator.close()
        if self._networks is not None:
            await self._threads.run(self._networks.close)
        self._threads.close()

    # --- start ----------------------------------------------------------------------------------------------------

    async def _start_node(self) -> tuple[Dependencies, NodeObject]:
        """Detect what the machine can do, kill orphaned processes, register the node, and remove files of deleted pods.

        Raises StatusError, OSError, UsageError, PodNetworkError.
        """
        host = await self._threads.run(startup.detect_host, self._paths, self._settings)
        if host.killed_orphans:
            _log.warning("%d orphaned processes of an earlier run were killed", host.killed_orphans)
        if host.capabilities.user == process_limits.ROOT:
            _log.warning(ROOT_WARNING)
        if limitation := _low_port_limitation(host.capabilities):
            _log.warning("ports below %d: %s", host.capabilities.unprivileged_port_start, limitation)
        await self._open_networks()
        port = await self._start_endpoints(host.node_name) if self._start_endpoints is not None else 0
        machine = MachineInfo(
            name=host.node_name,
            address=self._addresses.node_address,
            cidr=self._addresses.cidr,
            capacity=host.capacity,
            node_info=host.node_info,
            limitations={  # each becomes a condition of the Node
                "PrivateMounts": host.capabilities.mount_error,
                "ResourceLimitsEnforced": host.cgroups if isinstance(host.cgroups, str) else "",
                node.PROCESS_LIMITS: host.capabilities.process_limits.limitation(cgroups.pids_error(host.cgroups)),
                "PodAddresses": _address_limitation(self._addresses),
                "LowPorts": _low_port_limitation(host.capabilities),
                "PodNetworks": self._network_limitation or "",
            },
            endpoint_port=port,
            process_limits=host.capabilities.process_limits,
        )
        node_object = NodeObject(self._registry, self._clock, self._settings, machine)
        with suppress(StatusError):  # `NodeObject.run` tries it again
            await node_object.register()
        stored_uids = [pod["metadata"]["uid"] for pod in self._registry.list("pods")]
        await self._threads.run(startup.remove_orphaned_pods, self._paths, stored_uids)
        return self._make_dependencies(host), node_object

    async def _try_networks(self) -> tuple[PodNetworks | None, str]:
        """The open network namespaces of pods and an empty text; or None and why pods share the machine's network.

        Raises UsageError if `--pod-network=namespaces` is impossible.
        """
        mode = self._settings.pod_network
        if mode == "loopback":
            await self._threads.run(pod_networks.remove_orphaned_interfaces, self._addresses)
            return None, "pods share the machine's network, as --pod-network=loopback says"
        networks = PodNetworks(self._addresses)
        try:
            await self._threads.run(networks.open)
        except PodNetworkError as error:
            if mode == "namespaces":
                raise UsageError(f"--pod-network=namespaces: {error}") from error
            return None, f"pods share the machine's network: {error}"
        return networks, ""

    def _make_dependencies(self, host: DetectedHost) -> Dependencies:
        """The parts of the node that the workers of all pods share; the event recorder and others are made here."""
        return Dependencies(
            registry=self._registry,
            settings=self._settings,
            clock=self._clock,
            events=EventRecorder(self._registry, "kubelet", self._clock, host=host.node_name),
            addresses=self._addresses,
            threads=self._threads,
            background=self._background,
            logs=self._live_logs,
            orphans=OrphanKiller(self._threads, self._clock),
            paths=self._paths,
            capabilities=host.capabilities,
            resolve_image=self._image_map.resolve,
            start_process=container_process.start,
            run_handler=self._handlers.run,
            instance=host.instance,
            node_name=host.node_name,
            allocatable=host.capacity,
            cgroups=None if isinstance(host.cgroups, str) else host.cgroups,
            issue_token=self._issue_token,
            pod_networks=self._networks,
            port_translator=self._make_translator(host.capabilities),
        )

    def _make_translator(self, capabilities: Capabilities) -> PortTranslator | None:
        """The translator of low ports, None where the machine needs or allows none."""
        if not capabilities.translates_ports:
            return None
        return PortTranslator(self._addresses, unprivileged_port_start=capabilities.unprivileged_port_start)

    # --- watches --------------------------------------------------------------------------------------------------

    async def _watch_nodes(self, binder: Binder) -> None:
        """Retry the binding of unbound pods when a node has changed."""
        async for change in self._registry.watch_renewed("nodes"):
            if change.type != "MODIFIED":  # ADDED begins a watch; `_watch_pods` binds the unbound pods then
                continue
            for pod in self._registry.list("pods"):
                if not scheduler.is_skipped(pod):
                    await self._bind_pod(binder, pod)

    async def _watch_pods(self, deps: Dependencies, binder: Binder) -> None:
        """Bind unbound pods, and pass changes of pods of this node to their workers."""
        async for change in self._registry.watch_renewed("pods", on_watch=self._forget_deleted):
            pod = change.object
            node_name = pod["spec"].get("nodeName")
            if change.type == "DELETED":
                await self._remove_pod(pod)
            elif not node_name:
                self._background.start(self._bind_pod(binder, pod), "binding of a pod")
            elif node_name == deps.node_name:
                self._dispatch_pod(deps, pod)

    async def _watch_volume_objects(self, resource: str) -> None:
        """Write changed objects of a resource into the volumes of pods, and follow the ConfigMap of images.

        Args:
            resource: `configmaps`, `secrets` or TRUST_BUNDLES.
        """
        async for change in self._registry.watch_renewed(resource):
            meta = change.object["metadata"]
            namespace = meta.get("namespace")  # None: cluster-scoped, and pods of all namespaces can use it
            if (resource, namespace, meta["name"]) == ("configmaps", image_map.NAMESPACE, image_map.NAME):
                await self._update_images({} if change.type == "DELETED" else change.object.get("data") or {})
            for pod, worker in list(self._workers.values()):
                if isinstance(worker, PodWorker) and namespace in (None, pod["metadata"]["namespace"]):
                    await worker.refresh_volumes(resource, meta["name"])

    async def _update_images(self, data: Mapping[str, str]) -> None:
        """Take over `data` of the ConfigMap of images; entries that are not valid are logged."""
        for error in await self._threads.run(self._image_map.update, data):
            _log.warning("configmap %s/%s: %s", image_map.NAMESPACE, image_map.NAME, error)

    async def _watch_services(self, translator: PortTranslator) -> None:
        """Keep the ports of Services in the translator up to date."""
        async for change in self._registry.watch_renewed("services"):
            translator.update_service(change.object, is_gone=change.type == "DELETED")

    def _forget_deleted(self) -> None:
        """Stop the workers of pods that were deleted between two watches; called when a new watch begins."""
        if not self._workers:
            return
        stored_uids = {pod["metadata"]["uid"] for pod in self._registry.list("pods")}
        for uid, (_, worker) in self._workers.items():
            if uid not in stored_uids:
                worker.forget()

    async def _bind_pod(self, binder: Binder, pod: Object) -> None:
        """Bind an unbound pod to the node; an error is logged, and the next change of a node tries again."""
        try:
            await binder.bind(pod)
        except StatusError as error:
            _log.warning("pod %s cannot be bound: %s", pod["metadata"]["name"], error.message)

    def _dispatch_pod(self, deps: Dependencies, pod: Object) -> None:
        """Pass the new version to the pod's worker, or start a worker, unless the pod has ended or the node stops.

        A new kind of worker is a case here.
        """
        uid = pod["metadata"]["uid"]
        former_and_worker = self._workers.get(uid)
        if former_and_worker is not None:
            former, worker = former_and_worker
            self._workers[uid] = (pod, worker)
            if _concerns_worker(former, pod):
                worker.update(pod)
        elif not self._is_stopping and not _is_over(pod):
            worker = SimulatedPod(deps, pod) if simulated_pod.is_simulated(pod) else PodWorker(deps, pod)
            self._workers[uid] = (pod, worker)
            self._tasks[uid] = asyncio.get_running_loop().create_task(self._run_worker(deps, uid), name=f"pod {uid}")

    async def _remove_pod(self, pod: Object) -> None:
        """Stop the worker of a deleted pod; the files of a pod without a worker are removed."""
        uid = pod["metadata"]["uid"]
        worker = self._find_worker(uid)
        if worker is not None:
            worker.forget()
        else:
            await self._threads.run(startup.remove_pod, self._paths, uid)

    async def _run_worker(self, deps: Dependencies, uid: str) -> None:
        """Run a pod's worker until it returns, then remove it and, unless the node stops, the files of the pod.

        After a failure the worker is run again RETRY_S seconds later.
        """
        while True:
            try:
                _, worker = self._workers[uid]
                await worker.run()
                break
            except Exception:
                _log.exception("the worker of pod %s failed; it is run again in %g s", uid, RETRY_S)
                await self._clock.sleep(RETRY_S)
        await release_address(deps, uid)
        _, worker = self._workers.pop(uid)
        del self._tasks[uid]
        if not self._is_stopping and not isinstance(worker, SimulatedPod):
            await self._threads.run(startup.remove_pod, self._paths, uid)


def _is_over(pod: Object) -> bool:
    """Whether the pod has ended and is not being deleted: it needs no worker, and its logs are kept."""
    return (pod.get("status") or {}).get("phase") in _FINAL_PHASES and not pod["metadata"].get("deletionTimestamp")


def _concerns_worker(former: Object, pod: Object) -> bool:
    """Whether a new version concerns the worker, which writes the status itself.

    Changes of the status do only where the pod has readiness gates, whose conditions others write.
    """
    if _without_version(former) != _without_version(pod):
        return True
    return bool(pod["spec"].get("readinessGates")) and former.get("status") != pod.get("status")


def _without_version(pod: Object) -> tuple[dict[str, Any], Any]:
    """The metadata and the spec of a pod without the fields that every write changes."""
    meta = {
        field: value for field, value in pod["metadata"].items() if field not in ("resourceVersion", "managedFields")
    }
    return meta, pod["spec"]


def _address_limitation(addresses: AddressBlock) -> str:
    """Why pods have no addresses of their own, empty if they have."""
    if not addresses.is_shared:
        return ""
    return "this machine has one loopback address, 127.0.0.1, which all pods share: give each port to one pod only"


def _low_port_limitation(capabilities: Capabilities) -> str:
    """What is different about low ports and why, empty if pods can use them as declared."""
    if not capabilities.port_translation_error:
        return ""
    return (
        "they are 20000 higher, also inside pods, as the system calls of pods cannot be translated: "
        f"{capabilities.port_translation_error}"
    )
