"""Fake containers for tests of pod workers: no process is started, and time is virtual.

Tests make a `PlayedContainers`, pass its `host` to a `PodWorker`, and control the fake processes (`exit`, `obedient`,
`unstartable`) and the outcomes of probes and hooks (`answers`).
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
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome, HandlerTarget, Purpose
from podscaler.controlplane.kubelet.processes.background import BackgroundTasks, ThreadPool
from podscaler.controlplane.kubelet.processes.orphaned_processes import OrphanKiller
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.processes.processes import StartFailure
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

P = ParamSpec("P")
R = TypeVar("R")

WEB = ImageCommand(("/bin/web",), default_port=80)


class InlineThreads(ThreadPool):
    """Calls functions at once on the event loop: virtual time cannot wait for a thread."""

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of the call."""
        return function(*args, **kwargs)


@dataclass
class PlayedProcess:
    """A fake process, which the test ends with `exited`.

    Attributes:
        pid: a made-up process id.
        obeys: whether any signal ends it; SIGKILL always does.
        exited: done with the exit code, or with the negative number of the signal that ended the process.
        signals: the names of the signals that were sent to it, each with the second of the clock.
    """

    pid: int
    clock: Clock
    exited: "asyncio.Future[int]"
    obeys: bool = True
    signals: list[tuple[str, float]] = field(default_factory=list)

    def signal_group(self, number: int) -> None:
        """Record the signal, which may end the process; one to a process that has ended is not recorded."""
        if self.exited.done():
            return
        self.signals.append((signal.Signals(number).name, self.clock.monotonic_s()))
        if self.obeys or number == signal.SIGKILL:
            self.exited.set_result(-number)


class PlayedContainers:
    """A node whose containers are fakes.

    Args:
        folder: for volumes and logs, which are real files.

    Attributes:
        host: the dependencies for a `PodWorker`.
        starts: the names of the containers whose start was tried, each with the second of the clock.
        launches: the configuration of each container's last start, by name.
        processes: the process of each container's last start that did not fail, by name.
        obedient: whether signals end the processes of later starts.
        unstartable: names of containers whose start fails.
        answers: the outcomes of a probe or hook, by the first word of its command; True after the last one.
        checks: the first words of the commands of probes and hooks that were run, each with the second of the clock.
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
        self._made_up_pids = count(1000)
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
        """Let the running process of the container `name` exit with `code`."""
        self.processes[name].exited.set_result(code)

    async def _start(
        self,
        deps: Dependencies,
        config: ContainerConfig,
        *,
        container_id: str,
        log_path: Path,
        on_exit: Callable[[], None],
        on_cleaned_up: Callable[[ContainerProcess, int], None],
    ) -> ContainerProcess:
        """Make a process that runs until `exit` or a signal, as `Dependencies.start_process`. Raises StartFailure."""
        name = log_path.parent.name
        self.starts.append((name, self.clock.monotonic_s()))
        self.launches[name] = config
        if name in self.unstartable:
            raise StartFailure(f'exec: "{config.argv[0]}": no such file or directory')
        exited = asyncio.get_running_loop().create_future()
        process = PlayedProcess(next(self._made_up_pids), self.clock, exited, self.obedient)
        self.processes[name] = process
        log = deps.logs.open(log_path)
        started = ContainerProcess(process, log, container_id, self.clock.now_ns())  # type: ignore[arg-type]  # played

        async def report_exit() -> None:
            code = await process.exited
            on_exit()
            on_cleaned_up(started, code)

        deps.background.start(report_exit(), f"played container {name}")
        return started

    async def _run_handler(
        self, handler: Mapping[str, Any], target: HandlerTarget, *, timeout_s: float, purpose: Purpose = "probe"
    ) -> HandlerOutcome:
        """The next outcome of an exec handler; other handlers are not played."""
        command = handler["exec"]["command"][0]
        self.checks.append((command, self.clock.monotonic_s()))
        is_success = next(self.answers.get(command, iter(())), True)
        return HandlerOutcome(is_success, "" if is_success else f"{command} said no")
