"""The dependencies that the workers of all pods share, like `Dependencies` in pkg/kubelet/kubelet.go (kubelet).

`kubelet.node_agent` makes one `Dependencies` and injects it into `PodWorker`, `SimulatedPod` and `ContainerRun`; tests
have that of `podscaler.testing.containers`. A new field is set in both.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from podscaler.base.clock import Clock
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig
from podscaler.controlplane.kubelet.launching.images import ImageCommand
from podscaler.controlplane.kubelet.launching.port_translation import PortTranslator
from podscaler.controlplane.kubelet.logs.container_log import ContainerLog, ContainerLogManager
from podscaler.controlplane.kubelet.logs.container_streams import ContainerStreams
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome, HandlerTarget, Purpose
from podscaler.controlplane.kubelet.processes.background import BackgroundTasks, ThreadPool
from podscaler.controlplane.kubelet.processes.cgroups import Cgroups
from podscaler.controlplane.kubelet.processes.orphaned_processes import OrphanKiller
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.processes import Process
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.kubelet.volumes.volume_files import IssueToken
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.pod_networks import PodNetworkError, PodNetworks
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerProcess:
    """A started container.

    Attributes:
        started_ns: the start of its main process, in nanoseconds since the epoch.
        streams: its standard streams; None where tests have fakes of processes.
    """

    process: Process
    log: ContainerLog
    container_id: str
    started_ns: int
    streams: ContainerStreams | None = None


class StartProcess(Protocol):
    """`container_process.start`, or a fake of it (`podscaler.testing.containers`)."""

    async def __call__(
        self,
        deps: "Dependencies",
        config: ContainerConfig,
        *,
        container_id: str,
        log_path: Path,
        on_exit: Callable[[], None],
        on_cleaned_up: Callable[[ContainerProcess, int], None],
    ) -> ContainerProcess:
        """Start a container's process. Raises StartFailure, OSError."""
        ...


class RunHandler(Protocol):
    """`handlers.HandlerRunner.run`, or a fake of it (`podscaler.testing.containers`)."""

    def __call__(
        self, handler: Mapping[str, Any], target: HandlerTarget, *, timeout_s: float, purpose: Purpose = "probe"
    ) -> Awaitable[HandlerOutcome]:
        """Run the handler of a probe or hook and return its outcome. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The parts of the node that all pods share; none of them belongs to one pod.

    Attributes:
        registry: reads pods, and the objects that they refer to, and writes their statuses.
        settings: the flags of the node.
        clock: all instants and delays of pods; virtual in tests.
        events: records events of the component `kubelet`.
        addresses: the loopback addresses of the node and its pods.
        threads: runs calls that block on files.
        background: runs tasks that no other task awaits, and cancels them when the node stops.
        logs: the log files of containers.
        orphans: kills processes that outlive their container.
        paths: the directories of pods below the data directory.
        capabilities: which mounts, users, process limits and low ports this machine permits.
        resolve_image: the command of an image name, None for an unknown image.
        start_process, run_handler: start containers, and run the handlers of their probes and hooks.
        instance: the id of the data directory, in the environment of every process.
        node_name: the name of the Node object.
        allocatable: the resources of the node as quantities: {"cpu": "4", "memory": "8Gi", "pods": "110"}.
        cgroups: enforces limits, None if no cgroup is delegated to `up`.
        issue_token: issues tokens of service accounts, None if the API server has none.
        pod_networks: the network namespaces of pods; None: pods share the machine's network.
        port_translator: translates low ports in system calls of pods, None where not needed or not possible.
    """

    registry: Registry
    settings: KubeletSettings
    clock: Clock
    events: EventRecorder
    addresses: AddressBlock
    threads: ThreadPool
    background: BackgroundTasks
    logs: ContainerLogManager
    orphans: OrphanKiller
    paths: NodePaths
    capabilities: Capabilities
    resolve_image: Callable[[str], ImageCommand | None]
    start_process: StartProcess
    run_handler: RunHandler
    instance: str
    node_name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)
    cgroups: Cgroups | None = None
    issue_token: IssueToken | None = None
    pod_networks: PodNetworks | None = None
    port_translator: PortTranslator | None = None


async def release_address(deps: Dependencies, uid: str) -> None:
    """Release the address of the pod `uid`, if it has one, after its network namespace is removed."""
    address = deps.addresses.find_pod(uid)
    if deps.pod_networks is not None and address is not None:
        try:
            await deps.pod_networks.discard(address)
        except PodNetworkError as error:
            _log.warning("the network namespace of the pod at %s cannot be removed: %s", address, error)
    deps.addresses.release_pod(uid)
