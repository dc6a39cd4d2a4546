"""Containers that are played: the node's workers run as they are, but no process is started and no time passes.

Tests make a `PlayedContainers`, give its `host` to a `PodWorker`, and play what processes and probes do: `exit`,
`answers`.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from podscaler.base.clock import Clock
from podscaler.controlplane.kubelet.containers.dependencies import ContainerProcess, Dependencies
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig
from podscaler.controlplane.kubelet.launching.images import ImageCommand
from podscaler.controlplane.kubelet.logs.container_log import ContainerLogManager
from podscaler.controlplane.kubelet.paths import NodePaths
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome, HandlerTarget, Purpose
from podscaler.controlplane.kubelet.processes.background import BackgroundTasks, ThreadPool
from podscaler.controlplane.kubelet.processes.orphaned_processes import OrphanKiller
from podscaler.controlplane.kubelet.processes.processes import StartFailure
from podscaler.controlplane.kubelet.settings import KubeletSettings
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

P = ParamSpec("P")
R = TypeVar("R")

WEB = ImageCommand(("/bin/web",), default_port=80)


class InlineThreads(ThreadPool):
    """Work is done at once: a thread could not be waited for in virtual time."""

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of the call."""
        return function(*args, **kwargs)


@dataclass
class PlayedProcess:
    """A process that does what the test says; signals are noted with the second at which they came.

    Attributes:
        obeys: whether it ends when it is told to.
    """

    pid: int
    clock: Clock
    exited: "asyncio.Future[int]"
    obeys: bool = True
    signals: list[tuple[str, float]] = field(default_factory=list)

    def signal_group(self, number: int) -> None:
        """SIGKILL always ends it."""
        if self.exited.done():
            return
        self.signals.append((signal.Signals(number).name, self.clock.monotonic_s()))
        if self.obeys or number == signal.SIGKILL:
            self.exited.set_result(-number)


class PlayedContainers:
    """A node whose containers are played.

    Args:
        folder: for the files that are real all the same (volumes, logs).
    """

    def __init__(
        self, registry: Registry, clock: Clock, folder: Path, *, settings: KubeletSettings | None = None
    ) -> None:
        self.clock = clock
        self.starts: list[tuple[str, float]] = []
        self.launches: dict[str, ContainerConfig] = {}
        self.processes: dict[str, PlayedProcess] = {}
        self.obedient = True
        self.unstartable: set[str] = set()
        self.answers: dict[str, Iterator[bool]] = {}
        self.checks: list[tuple[str, float]] = []
        self._pids = count(1000)
        threads = InlineThreads()
        self.host = Dependencies(
            registry=registry,
            settings=settings or KubeletSettings(folder, search_path="/usr/bin:/bin"),
            clock=clock,
            events=EventRecorder(registry, "kubelet", clock, host="node"),
            addresses=AddressBlock(7),
            threads=threads,
            background=BackgroundTasks(),
            logs=ContainerLogManager(threads, clock, max_bytes=1 << 20),
            orphans=OrphanKiller(threads, clock),
            paths=NodePaths(folder),
            capabilities=Capabilities(user=501, may_change_user=False, may_bind_low_ports=False),
            resolve_image=lambda image: WEB if image == "web" else None,
            start_process=self._start,
            run_handler=self._run_handler,
            instance="instance",
            node_name="node",
            allocatable={"cpu": "2"},
        )

    def exit(self, name: str, code: int = 1) -> None:
        """The process of the container `name` ends by itself."""
        self.processes[name].exited.set_result(code)

    async def _start(
        self,
        deps: Dependencies,
        config: ContainerConfig,
        *,
        container_id: str,
        log_path: Path,
        on_exit: Callable[[], None],
        on_end: Callable[[ContainerProcess, int], None],
    ) -> ContainerProcess:
        name = log_path.parent.name
        self.starts.append((name, self.clock.monotonic_s()))
        self.launches[name] = config
        if name in self.unstartable:
            raise StartFailure(f'exec: "{config.argv[0]}": no such file or directory')
        process = PlayedProcess(next(self._pids), self.clock, asyncio.get_running_loop().create_future(), self.obedient)
        self.processes[name] = process
        log = deps.logs.open(log_path)
        started = ContainerProcess(process, log, container_id, self.clock.now_ns())  # type: ignore[arg-type]  # played

        async def settle() -> None:
            code = await process.exited
            on_exit()
            on_end(started, code)

        deps.background.start(settle(), f"played container {name}")
        return started

    async def _run_handler(
        self, handler: Mapping[str, Any], target: HandlerTarget, *, timeout_s: float, purpose: Purpose = "probe"
    ) -> HandlerOutcome:
        """Hooks and probes are named by their command's first word; without an answer they succeed."""
        name = handler["exec"]["command"][0]
        self.checks.append((name, self.clock.monotonic_s()))
        ok = next(self.answers.get(name, iter(())), True)
        return HandlerOutcome(ok, "" if ok else f"{name} said no")
