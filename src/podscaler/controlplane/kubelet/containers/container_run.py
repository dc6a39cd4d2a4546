"""One start of a container from its beginning to its end: process, hooks, probes, stopping.

`pod_worker` makes a `ContainerRun` for each start and hears from it by the `ContainerListener`. Rules:

1. After the process has started: the postStart hook, then the startup probe, then `started`; then readiness and
   liveness probes. Without a readiness probe a container is ready as soon as it has started.
2. A failed postStart hook, startup probe or liveness probe stops the container; the pod's plan starts it again.
3. Stopping: the preStop hook, the stop signal to the process group, and SIGKILL when the grace period (which began with
   the hook) is over. Stopping again can only shorten the grace period.

Source: Container Lifecycle Hooks, Pod Lifecycle (Kubernetes documentation).
Differs: the stop signal goes to the whole process group of the container, not to its first process alone.
"""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.containers import (
    container_process,
    diagnosis,
    exec_process,
    exec_session,
    pod_ending,
)
from podscaler.controlplane.kubelet.containers.container_state import Terminated
from podscaler.controlplane.kubelet.containers.exec_session import ExecSession
from podscaler.controlplane.kubelet.containers.host import ContainerProcess, Host
from podscaler.controlplane.kubelet.launching import container_ports, launch_plan
from podscaler.controlplane.kubelet.launching.launch_plan import Launch
from podscaler.controlplane.kubelet.logs.console import AttachSession
from podscaler.controlplane.kubelet.probes import probe_loop
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome, HandlerTarget
from podscaler.controlplane.kubelet.probes.probe_tally import Kind, ProbeSpec, probe_spec
from podscaler.controlplane.kubelet.processes import process_records
from podscaler.controlplane.kubelet.processes.notification import Alarm
from podscaler.controlplane.registry.pod_connections import SessionFailure, SessionStreams
from podscaler.controlplane.registry.registry import Object

AFTER_HOOK_S: Final = 2
"""What a container gets between its stop signal and SIGKILL even if its preStop hook has used up the grace period."""

_PROBES: Final[Mapping[Kind, str]] = {
    "startup": "startupProbe",
    "readiness": "readinessProbe",
    "liveness": "livenessProbe",
}


class ContainerListener(Protocol):
    """Who hears what becomes of a container."""

    def container_started(self, name: str) -> None:
        """It runs, and its startup probe (if any) has succeeded."""
        ...

    def container_ready(self, name: str, *, ready: bool) -> None:
        """Its readiness has changed."""
        ...

    def container_ended(self, name: str, end: Terminated) -> None:
        """It has ended; nothing of it is left."""
        ...

    def container_event(self, name: str, event: tuple[str, str, str]) -> None:
        """Type, reason and message of an event to report."""
        ...


@dataclass(slots=True)
class _Stop:
    """A stop under way."""

    deadline_ns: int
    alarm: Alarm
    task: "asyncio.Task[None] | None" = field(default=None)


class ContainerRun:
    """See the module.

    Args:
        spec: the container in the pod's spec.
        place_ip: the pod's address.
        port_map: where ports that may not be bound really are.
    """

    def __init__(
        self,
        host: Host,
        pod: Object,
        spec: Mapping[str, Any],
        launch: Launch,
        listener: ContainerListener,
        *,
        place_ip: str,
    ) -> None:
        self._host = host
        self._pod = pod
        self._spec = spec
        self._launch = launch
        self._listener = listener
        self._place_ip = place_ip
        self._started: ContainerProcess | None = None
        self._attendant: asyncio.Task[None] | None = None
        self._probes: list[asyncio.Task[None]] = []
        self._stop: _Stop | None = None
        self._commands: set[int] = set()
        self.port_map: Mapping[int, int] = {}

    @property
    def name(self) -> str:
        """The container's name."""
        return str(self._spec["name"])

    @property
    def running(self) -> ContainerProcess | None:
        """The process, None before it has started."""
        return self._started

    @property
    def commands(self) -> frozenset[int]:
        """The pids of commands that clients run in the container now, each a session of its own."""
        return frozenset(self._commands)

    async def start(self, container_id: str, start_number: int) -> ContainerProcess:
        """Start the process and what attends it; `start_number` names the log. Raises StartFailure."""
        uid = self._pod["metadata"]["uid"]
        self._started = await self._host.start_process(
            self._host,
            self._launch,
            container_id=container_id,
            log_path=self._host.paths.log(uid, self.name, start_number),
            on_exit=self._exited,
            on_end=self._ended,
        )
        return self._started

    def attend(self) -> None:
        """Begin with rule 1; called once the start is known to the pod."""
        needs_time = (self._spec.get("lifecycle") or {}).get("postStart") or any(
            self._spec.get(name) for name in _PROBES.values()
        )
        if needs_time:
            self._attendant = self._host.background.start(self._attend(), f"probes of {self.name}")
        else:
            self._listener.container_started(self.name)
            self._listener.container_ready(self.name, ready=True)

    def stop(self, deadline_ns: int, why: str) -> None:
        """Begin to stop, or stop sooner; `why` is the message of the event Killing."""
        if self._stop is None:
            self._stop = _Stop(deadline_ns, Alarm(self._host.clock))
            self._cease_probes()
            self._listener.container_event(self.name, ("Normal", "Killing", why))
            self._stop.task = self._host.background.start(self._stop_in_order(self._stop), f"stop of {self.name}")
        elif deadline_ns < self._stop.deadline_ns:
            self._stop.deadline_ns = deadline_ns
            self._stop.alarm.ring()

    async def execute(self, argv: tuple[str, ...], timeout_s: float) -> HandlerOutcome:
        """Run a command in the container."""
        if self._started is None:
            return HandlerOutcome(False, "the container is not running")
        spec = launch_plan.exec_spec(self._launch, argv, pid=self._started.process.pid)
        return await exec_process.run(spec, self._host.threads, timeout_s=timeout_s)

    async def open_session(self, command: tuple[str, ...], options: SessionStreams) -> ExecSession:
        """Run a command with streams in the container. Raises SessionFailure."""
        started, sweeper = self._get_started(), self._host.sweeper
        spec = launch_plan.exec_spec(self._launch, command, pid=started.process.pid, tty=options.tty)
        session = await exec_session.start(spec, self._host.threads, options)
        pid = session.process.pid
        self._commands.add(pid)
        if (record := process_records.record(pid)) is not None:
            sweeper.record(started.container_id, record)

        def ended(_: "asyncio.Future[int]") -> None:
            self._commands.discard(pid)
            sweeper.forget(started.container_id, pid)

        session.process.exited.add_done_callback(ended)
        return session

    def attach(self, options: SessionStreams) -> AttachSession:
        """Follow the container's own streams. Raises SessionFailure."""
        console = self._get_started().console
        if console is None:
            raise SessionFailure(f"container {self.name} has no streams")
        return console.attach(options, stdin_once=bool(self._spec.get("stdinOnce")))

    # --- rule 1 ---------------------------------------------------------------------------------------------------

    async def _attend(self) -> None:
        if not await self._run_post_start():
            return
        startup = self._probe("startup")
        if startup is not None:
            passed = asyncio.Event()
            loop = self._start_probe(startup, passed)
            await passed.wait()
            loop.cancel()
        self._listener.container_started(self.name)
        readiness, liveness = self._probe("readiness"), self._probe("liveness")
        if readiness is None:
            self._listener.container_ready(self.name, ready=True)
        for spec in (readiness, liveness):
            if spec is not None:
                self._start_probe(spec, asyncio.Event())

    def _probe(self, kind: Kind) -> ProbeSpec | None:
        found = self._spec.get(_PROBES[kind])
        return probe_spec(kind, found) if found else None

    def _start_probe(self, spec: ProbeSpec, passed: asyncio.Event) -> "asyncio.Task[None]":
        async def check() -> HandlerOutcome:
            return await self._host.check(spec.handler, self._target(), timeout_s=spec.timeout_s)

        def heard(result: probe_loop.ProbeResult) -> None:
            if result.verdict:
                passed.set()
            self._probed(spec, result)

        loop = probe_loop.run(spec, check, heard, self._host.clock, started_ns=self._get_started().started_ns)
        task = self._host.background.start(loop, f"{spec.kind} probe of {self.name}")
        self._probes.append(task)
        return task

    def _probed(self, spec: ProbeSpec, result: probe_loop.ProbeResult) -> None:
        if not result.outcome.ok:
            text = f"{spec.kind.capitalize()} probe failed: {result.outcome.text}"
            self._listener.container_event(self.name, ("Warning", "Unhealthy", text))
        elif result.outcome.warning:
            text = f"{spec.kind.capitalize()} probe warning: {result.outcome.warning}"
            self._listener.container_event(self.name, ("Warning", "ProbeWarning", text))
        if not result.changed:
            return
        if spec.kind == "readiness":
            self._listener.container_ready(self.name, ready=bool(result.verdict))
        elif result.verdict is False:
            grace_s = spec.grace_period_s if spec.grace_period_s is not None else pod_ending.own_grace_s(self._pod)
            why = f"Container {self.name} failed {spec.kind} probe, will be restarted"
            self.stop(self._in(grace_s), why)

    async def _run_post_start(self) -> bool:
        hook = (self._spec.get("lifecycle") or {}).get("postStart")
        if not hook:
            return True
        outcome = await self._run_hook(hook, pod_ending.own_grace_s(self._pod))
        if not outcome.ok:
            self._listener.container_event(
                self.name, ("Warning", "FailedPostStartHook", f"PostStartHook failed: {outcome.text}")
            )
            self.stop(self._in(pod_ending.own_grace_s(self._pod)), "FailedPostStartHook")
        return outcome.ok

    async def _run_hook(self, hook: Mapping[str, Any], timeout_s: float) -> HandlerOutcome:
        if (sleep := hook.get("sleep")) is not None:
            await self._host.clock.sleep(sleep.get("seconds") or 0)
            return HandlerOutcome(True)
        return await self._host.check(hook, self._target(), timeout_s=timeout_s, purpose="lifecycle")

    def _target(self) -> HandlerTarget:
        bound = self._launch.port_trap.bound if self._launch.port_trap else {}
        return HandlerTarget(
            self._place_ip, container_ports.named_ports(self._spec), {**self.port_map, **bound}, self.execute
        )

    # --- rule 3 ---------------------------------------------------------------------------------------------------

    async def _stop_in_order(self, stop: _Stop) -> None:
        process = self._get_started().process
        hook = (self._spec.get("lifecycle") or {}).get("preStop")
        if hook:
            await self._run_pre_stop(hook, stop)
        process.signal_group(self._stop_signal())
        await self._until_exit(stop)
        process.signal_group(signal.SIGKILL)

    async def _run_pre_stop(self, hook: Mapping[str, Any], stop: _Stop) -> None:
        left_s = max(0.0, (stop.deadline_ns - self._host.clock.now_ns()) / NANOSECONDS)

        async def run() -> None:
            outcome = await self._run_hook(hook, left_s)
            if not outcome.ok:
                text = f"PreStopHook failed: {outcome.text}"
                self._listener.container_event(self.name, ("Warning", "FailedPreStopHook", text))

        task = self._host.background.start(run(), f"preStop of {self.name}")
        task.add_done_callback(lambda _: stop.alarm.ring())
        exited = self._get_started().process.exited
        while not (task.done() or exited.done()) and self._host.clock.now_ns() < stop.deadline_ns:
            await stop.alarm.wait(stop.deadline_ns)
        task.cancel()
        stop.deadline_ns = max(stop.deadline_ns, self._in(AFTER_HOOK_S))

    async def _until_exit(self, stop: _Stop) -> None:
        exited = self._get_started().process.exited
        while not exited.done() and self._host.clock.now_ns() < stop.deadline_ns:
            await stop.alarm.wait(stop.deadline_ns)

    def _stop_signal(self) -> signal.Signals:
        wanted = (self._spec.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
        return signal.Signals.__members__.get(wanted, signal.SIGTERM)

    # --- the end --------------------------------------------------------------------------------------------------

    def _exited(self) -> None:
        self._cease_probes()
        if self._stop is not None:
            self._stop.alarm.ring()

    def _ended(self, ended: ContainerProcess, code: int) -> None:
        out_of_memory = self._host.cgroups is not None and self._host.cgroups.remove(ended.container_id)
        end = container_process.terminated(
            self._spec, ended, code, now_ns=self._host.clock.now_ns(), out_of_memory=out_of_memory
        )
        if self._stop is None and end.exit_code:
            self._diagnose(ended, end)
        self._listener.container_ended(self.name, end)

    def _diagnose(self, ended: ContainerProcess, end: Terminated) -> None:
        if end.finished_ns - ended.started_ns > diagnosis.SOON_S * NANOSECONDS:
            return
        capabilities, ids = self._host.capabilities, self._launch.identity
        lowest = 1 if self._launch.port_trap else capabilities.lowest_port(ids.user if ids else None)
        fault = diagnosis.bind_fault(
            ended.log.recent,
            pod_ip=self._place_ip,
            first_port=capabilities.first_port,
            forbidden=[
                entry["containerPort"] for entry in self._spec.get("ports") or [] if entry["containerPort"] < lowest
            ],
        )
        if fault:
            text = f"Container {self.name} ended soon after its start, and {fault}"
            self._listener.container_event(self.name, ("Warning", "BindFailed", text))

    def _cease_probes(self) -> None:
        for task in (self._attendant, *self._probes):
            if task is not None:
                task.cancel()
        self._probes.clear()

    def _get_started(self) -> ContainerProcess:
        if self._started is None:
            raise RuntimeError(f"container {self.name} has not started")
        return self._started

    def _in(self, span_s: float) -> int:
        return self._host.clock.now_ns() + round(span_s * NANOSECONDS)
