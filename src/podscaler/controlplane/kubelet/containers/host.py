"""What the workers of all pods share: the node's view of itself and its tools.

`node_agent` makes one `Host`; `pod_worker`, `container_run` and the rest are given it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from podscaler.base.clock import Clock
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.launching.images import ImageCommand
from podscaler.controlplane.kubelet.launching.launch_plan import Launch
from podscaler.controlplane.kubelet.launching.port_translation import PortTranslator
from podscaler.controlplane.kubelet.logs.console import Console
from podscaler.controlplane.kubelet.logs.log_files import ContainerLog, LogBook
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome, HandlerTarget, Purpose
from podscaler.controlplane.kubelet.processes.background import Background
from podscaler.controlplane.kubelet.processes.cgroups import Cgroups
from podscaler.controlplane.kubelet.processes.orphaned_processes import Sweeper
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.processes import Process
from podscaler.controlplane.kubelet.processes.settings import RuntimeSettings
from podscaler.controlplane.kubelet.processes.threads import Threads
from podscaler.controlplane.kubelet.volumes.volume_files import IssueToken
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class ContainerProcess:
    """A started container.

    Attributes:
        console: its standard streams; None in tests that play processes.
    """

    process: Process
    log: ContainerLog
    container_id: str
    started_ns: int
    console: Console | None = None


class StartProcess(Protocol):
    """`container_process.start`, or what a test plays in its place."""

    async def __call__(
        self,
        host: "Host",
        launch: Launch,
        *,
        container_id: str,
        log_path: Path,
        on_exit: Callable[[], None],
        on_end: Callable[[ContainerProcess, int], None],
    ) -> ContainerProcess:
        """Start a container's process. Raises StartFailure."""
        ...


class Check(Protocol):
    """`handlers.Checks.check`, or what a test plays in its place."""

    def __call__(
        self, handler: Mapping[str, Any], target: HandlerTarget, *, timeout_s: float, purpose: Purpose = "probe"
    ) -> Awaitable[HandlerOutcome]:
        """What a probe or hook finds."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """The node's tools.

    Attributes:
        instance: the id of the data directory, in the environment of every process.
        resolve_image: what an image name stands for, None for an unknown one.
        start_process, check: how containers are started and probed.
        allocatable: the node's resources, as texts.
        cgroups: where limits are enforced, None where they are not.
        issue_token: makes tokens of service accounts, None where there are none.
        port_translator: translates low ports in the calls of pods, None where that is not needed or not possible.
    """

    registry: Registry
    settings: RuntimeSettings
    clock: Clock
    events: EventRecorder
    addresses: AddressBlock
    threads: Threads
    background: Background
    book: LogBook
    sweeper: Sweeper
    paths: NodePaths
    capabilities: Capabilities
    resolve_image: Callable[[str], ImageCommand | None]
    start_process: StartProcess
    check: Check
    instance: str
    node_name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)
    cgroups: Cgroups | None = None
    issue_token: IssueToken | None = None
    port_translator: PortTranslator | None = None
