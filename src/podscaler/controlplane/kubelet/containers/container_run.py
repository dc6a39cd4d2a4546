"""Runs one start of a container: its process, lifecycle hooks, probes and termination.

`kubelet.pods.pod_worker` makes a `ContainerRun` for each start, calls `start` and then `run_hooks_and_probes`, and is
notified through `ContainerListener`. `kubelet.node_connections` passes it to the API server, which calls `execute` and
`attach`. A new kind of probe: an entry of `probe_tally.PROBE_FIELDS`, a start in `_run_hooks_and_probes` and a case in
`_apply_result`. Rules:

1. After the process has started: the postStart hook, then the startup probe, then `container_started`; then the
   readiness and liveness probes. Without a readiness probe a container is ready as soon as it has started.
2. A failed postStart hook, startup probe or liveness probe stops the container, which is restarted by its policy.
3. Stopping: the preStop hook, then the stop signal to the process group, then SIGKILL at the end of the grace period,
   which began with the hook. A second `stop` can only shorten the grace period.

Source: Container Lifecycle Hooks, Pod Lifecycle (Kubernetes documentation).
Differs: the stop signal goes to the whole process group of the container, not to its first process alone.
"""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.containers import container_process, exec_session, pod_termination
from podscaler.controlplane.kubelet.containers.container_state import Terminated
from podscaler.controlplane.kubelet.containers.dependencies import ContainerProcess, Dependencies
from podscaler.controlplane.kubelet.containers.exec_session import ExecSession
from podscaler.controlplane.kubelet.launching import container_config, container_ports
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig
from podscaler.controlplane.kubelet.logs.container_streams import AttachSession
from podscaler.controlplane.kubelet.probes import exec_check, probe_loop, probe_tally
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome, HandlerTarget
from podscaler.controlplane.kubelet.probes.probe_loop import ContainerEvent
from podscaler.controlplane.kubelet.probes.probe_tally import ProbeSpec
from podscaler.controlplane.kubelet.processes import process_records
from podscaler.controlplane.kubelet.processes.notification import Notification
from podscaler.controlplane.registry.pod_connections import SessionFailure, SessionStreams
from podscaler.controlplane.registry.registry import Object

STOP_AFTER_HOOK_MIN_S: Final = 2
"""The least time between stop signal and SIGKILL after a preStop hook, even if that has used up the grace period."""
BIND_ERROR_WITHIN_S: Final = 15
"""A container that ran no longer than this may have failed to bind its port: its log is searched for the reason."""


class ContainerListener(Protocol):
    """Is notified of changes of containers; `name` is the container's. Implemented by `PodWorker`."""

    def container_started(self, name: str) -> None:
        """The container runs, and its startup probe (if any) has succeeded."""
        ...

    def container_ready(self, name: str, *, ready: bool) -> None:
        """The container's readiness has changed."""
        ...

    def container_ended(self, name: str, end: Terminated) -> None:
        """The container has exited, and none of its processes is left."""
        ...

    def container_event(self, name: str, event: ContainerEvent) -> None:
        """An event is to be recorded."""
        ...


@dataclass(slots=True)
class _OngoingStop:
    """A stop in progress: SIGKILL is sent at `deadline_ns`; `wakeup` reports an exit or a nearer deadline."""

    deadline_ns: int
    wakeup: Notification


class ContainerRun:
    """One start of one container, from its process to its end. Implements `pod_connections.ContainerSessions`.

    Args:
        pod: the core/v1 Pod.
        spec: the core/v1 Container.
        config: how its process is started (`container_setup.prepare`).
        listener: is notified of its start, readiness, end and events.
        pod_ip: the pod's address.
    """

    def __init__(
        self,
        deps: Dependencies,
        pod: Object,
        spec: Mapping[str, Any],
        config: ContainerConfig,
        listener: ContainerListener,
        *,
        pod_ip: str,
    ) -> None:
        self._deps = deps
        self._pod = pod
        self._spec = spec
        self._config = config
        self._listener = listener
        self._pod_ip = pod_ip
        self._started: ContainerProcess | None = None
        self._hooks_task: asyncio.Task[None] | None = None
        self._probes: list[asyncio.Task[None]] = []
        self._ongoing_stop: _OngoingStop | None = None
        self._command_pids: set[int] = set()

    @property
    def name(self) -> str:
        """The container's name."""
        return str(self._spec["name"])

    @property
    def started(self) -> ContainerProcess | None:
        """The started process, which may have exited; None before the start."""
        return self._started

    @property
    def command_pids(self) -> frozenset[int]:
        """The pids of the commands that clients run in the container now; each is the leader of a session."""
        return frozenset(self._command_pids)

    async def start(self, container_id: str, start_number: int) -> ContainerProcess:
        """Start the process; `start_number` (the restart count) names the log. Raises StartFailure, OSError."""
        uid = self._pod["metadata"]["uid"]
        self._started = await self._deps.start_process(
            self._deps,
            self._config,
            container_id=container_id,
            log_path=self._deps.paths.log(uid, self.name, start_number),
            on_exit=self._on_exit,
            on_cleaned_up=self._on_cleaned_up,
        )
        return self._started

    def run_hooks_and_probes(self) -> None:
        """Begin to run hooks and probes (rule 1); the listener has the state Running before this is called."""
        has_probes = any(self._spec.get(name) for name in probe_tally.PROBE_FIELDS.values())
        if has_probes or (self._spec.get("lifecycle") or {}).get("postStart"):
            self._hooks_task = self._deps.background.start(self._run_hooks_and_probes(), f"probes of {self.name}")
        else:
            self._listener.container_started(self.name)
            self._listener.container_ready(self.name, ready=True)

    def stop(self, deadline_ns: int, message: str) -> None:
        """Begin to stop (rule 3), or shorten the grace period.

        Args:
            deadline_ns: the instant of SIGKILL, in nanoseconds since the epoch.
            message: that of the event Killing.
        """
        if self._ongoing_stop is None:
            self._ongoing_stop = _OngoingStop(deadline_ns, Notification(self._deps.clock))
            self._stop_probes()
            self._listener.container_event(self.name, ("Normal", "Killing", message))
            self._deps.background.start(self._stop_process(self._ongoing_stop), f"stop of {self.name}")
        elif deadline_ns < self._ongoing_stop.deadline_ns:
            self._ongoing_stop.deadline_ns = deadline_ns
            self._ongoing_stop.wakeup.notify()

    async def run_command(self, argv: tuple[str, ...], timeout_s: float) -> HandlerOutcome:
        """Run the command of an exec handler in the container; implements `handlers.Execute`. Raises OSError."""
        if self._started is None:
            return HandlerOutcome(False, "the container is not running")
        spec = container_config.exec_spec(self._config, argv, pid=self._started.process.pid)
        return await exec_check.run(spec, self._deps.threads, timeout_s=timeout_s)

    async def execute(self, command: tuple[str, ...], options: SessionStreams) -> ExecSession:
        """Start a command of a client (`kubectl exec`); called after `start`. Raises SessionFailure."""
        started, orphans = self._get_started(), self._deps.orphans
        spec = container_config.exec_spec(self._config, command, pid=started.process.pid, tty=options.tty)
        session = await exec_session.start(spec, self._deps.threads, options)
        pid = session.process.pid
        self._command_pids.add(pid)
        if (record := process_records.record_of(pid)) is not None:
            orphans.add_session(started.container_id, record)

        def forget_command(_: "asyncio.Future[int]") -> None:
            self._command_pids.discard(pid)
            orphans.remove_session(started.container_id, pid)

        session.process.exited.add_done_callback(forget_command)
        return session

    async def attach(self, options: SessionStreams) -> AttachSession:
        """Attach a client to the streams of the main process; called after `start`. Raises SessionFailure."""
        streams = self._get_started().streams
        if streams is None:
            raise SessionFailure(f"container {self.name} has no streams")
        return streams.attach(options, stdin_once=bool(self._spec.get("stdinOnce")))

    # --- rules 1 and 2: hooks and probes --------------------------------------------------------------------------

    async def _run_hooks_and_probes(self) -> None:
        """Run the postStart hook and the startup probe, then start the other probes; a failure cancels this task."""
        if not await self._run_post_start():
            return
        startup = probe_tally.find_probe(self._spec, "startup")
        readiness = probe_tally.find_probe(self._spec, "readiness")
        liveness = probe_tally.find_probe(self._spec, "liveness")
        if startup is not None:
            passed = asyncio.Event()
            startup_task = self._start_probe(startup, passed)
            await passed.wait()
            startup_task.cancel()
        self._listener.container_started(self.name)
        if readiness is None:
            self._listener.container_ready(self.name, ready=True)
        for probe in (readiness, liveness):
            if probe is not None:
                self._start_probe(probe, asyncio.Event())

    def _start_probe(self, probe: ProbeSpec, passed: asyncio.Event) -> "asyncio.Task[None]":
        """Start the checks of a probe and return their task; `passed` is set at the first success."""

        async def check() -> HandlerOutcome:
            return await self._deps.run_handler(probe.handler, self._handler_target(), timeout_s=probe.timeout_s)

        def on_result(result: probe_loop.ProbeResult) -> None:
            if result.verdict:
                passed.set()
            self._apply_result(result)

        checks = probe_loop.run(probe, check, on_result, self._deps.clock, started_ns=self._get_started().started_ns)
        task = self._deps.background.start(checks, f"{probe.kind} probe of {self.name}")
        self._probes.append(task)
        return task

    def _apply_result(self, result: probe_loop.ProbeResult) -> None:
        """Report a change of readiness, or stop the container after a failed liveness or startup probe."""
        probe = result.spec
        if result.event is not None:
            self._listener.container_event(self.name, result.event)
        if not result.changed:
            return
        if probe.kind == "readiness":
            self._listener.container_ready(self.name, ready=bool(result.verdict))
        elif result.verdict is False:  # None: no threshold was reached yet
            grace_s = probe.grace_period_s
            if grace_s is None:
                grace_s = pod_termination.own_grace_s(self._pod)
            self.stop(self._instant_in(grace_s), f"Container {self.name} failed {probe.kind} probe, will be restarted")

    async def _run_post_start(self) -> bool:
        """Run the postStart hook, if there is one; returns whether the container may go on, and stops it if not."""
        hook = (self._spec.get("lifecycle") or {}).get("postStart")
        if not hook:
            return True
        outcome = await self._run_hook(hook, pod_termination.own_grace_s(self._pod))
        if not outcome.ok:
            self._listener.container_event(
                self.name, ("Warning", "FailedPostStartHook", f"PostStartHook failed: {outcome.text}")
            )
            self.stop(self._instant_in(pod_termination.own_grace_s(self._pod)), "FailedPostStartHook")
        return outcome.ok

    async def _run_hook(self, hook: Mapping[str, Any], timeout_s: float) -> HandlerOutcome:
        """Run a core/v1 LifecycleHandler and return its outcome; `sleep` is carried out here. Raises OSError."""
        if (sleep := hook.get("sleep")) is not None:
            await self._deps.clock.sleep(sleep.get("seconds") or 0)
            return HandlerOutcome(True)
        return await self._deps.run_handler(hook, self._handler_target(), timeout_s=timeout_s, purpose="lifecycle")

    def _handler_target(self) -> HandlerTarget:
        """The container as the target of handlers, with the ports that it has bound so far."""
        bound = self._config.port_trap.bound if self._config.port_trap else {}
        return HandlerTarget(
            address=self._pod_ip,
            ports=container_ports.named_ports(self._spec),
            port_map={**self._config.port_map, **bound},
            execute=self.run_command,
        )

    # --- rule 3: stopping -----------------------------------------------------------------------------------------

    async def _stop_process(self, ongoing_stop: _OngoingStop) -> None:
        """Run the preStop hook, send the stop signal, and kill the processes that are left at the deadline."""
        process = self._get_started().process
        hook = (self._spec.get("lifecycle") or {}).get("preStop")
        if hook:
            await self._run_pre_stop(hook, ongoing_stop)
        process.signal_group(self._stop_signal())
        await self._wait_for_exit(ongoing_stop)
        process.signal_group(signal.SIGKILL)

    async def _run_pre_stop(self, hook: Mapping[str, Any], ongoing_stop: _OngoingStop) -> None:
        """Run the preStop hook until it, the container or the grace period has ended.

        Afterwards the deadline leaves at least STOP_AFTER_HOOK_MIN_S for the stop signal.
        """
        remaining_s = max(0.0, (ongoing_stop.deadline_ns - self._deps.clock.now_ns()) / NANOSECONDS)

        async def run_and_report() -> None:
            outcome = await self._run_hook(hook, remaining_s)
            if not outcome.ok:
                message = f"PreStopHook failed: {outcome.text}"
                self._listener.container_event(self.name, ("Warning", "FailedPreStopHook", message))

        task = self._deps.background.start(run_and_report(), f"preStop of {self.name}")
        task.add_done_callback(lambda _: ongoing_stop.wakeup.notify())
        exited = self._get_started().process.exited
        while not (task.done() or exited.done()) and self._deps.clock.now_ns() < ongoing_stop.deadline_ns:
            await ongoing_stop.wakeup.wait(ongoing_stop.deadline_ns)
        task.cancel()
        ongoing_stop.deadline_ns = max(ongoing_stop.deadline_ns, self._instant_in(STOP_AFTER_HOOK_MIN_S))

    async def _wait_for_exit(self, ongoing_stop: _OngoingStop) -> None:
        """Wait until the process has exited, or the deadline of the stop is over."""
        exited = self._get_started().process.exited
        while not exited.done() and self._deps.clock.now_ns() < ongoing_stop.deadline_ns:
            await ongoing_stop.wakeup.wait(ongoing_stop.deadline_ns)

    def _stop_signal(self) -> signal.Signals:
        """The signal of `lifecycle.stopSignal`; SIGTERM without one, and for one that this machine does not have."""
        signal_name = (self._spec.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
        return signal.Signals.__members__.get(signal_name, signal.SIGTERM)

    # --- exit -----------------------------------------------------------------------------------------------------

    def _on_exit(self) -> None:
        """Stop the probes, and wake a stop in progress: the main process has exited."""
        self._stop_probes()
        if self._ongoing_stop is not None:
            self._ongoing_stop.wakeup.notify()

    def _on_cleaned_up(self, ended: ContainerProcess, return_code: int) -> None:
        """Remove the cgroup and report how the container ended: no process of it is left, and its log is complete.

        Args:
            return_code: that of the main process; minus N where signal N ended it.
        """
        out_of_memory = self._deps.cgroups is not None and self._deps.cgroups.remove(ended.container_id)
        end = container_process.terminated_state(
            self._spec, ended, return_code, now_ns=self._deps.clock.now_ns(), out_of_memory=out_of_memory
        )
        if self._ongoing_stop is None and end.exit_code:
            self._report_bind_error(ended, end)
        self._listener.container_ended(self.name, end)

    def _report_bind_error(self, ended: ContainerProcess, end: Terminated) -> None:
        """Report why a process that ended soon could not bind its address, if its output says so."""
        ran_too_long = end.finished_ns - ended.started_ns > BIND_ERROR_WITHIN_S * NANOSECONDS
        if ran_too_long or self._config.network:
            return
        capabilities, user = self._deps.capabilities, self._config.user
        uid = user.uid if user else None
        lowest_port = 1 if self._config.port_trap else capabilities.lowest_port(uid)
        declared_ports = [container_port["containerPort"] for container_port in self._spec.get("ports") or []]
        bind_error = container_process.bind_error(
            ended.log.recent,
            pod_ip=self._pod_ip,
            unprivileged_port_start=capabilities.unprivileged_port_start,
            forbidden_ports=[port for port in declared_ports if port < lowest_port],
        )
        if bind_error:
            message = f"Container {self.name} ended soon after its start, and {bind_error}"
            self._listener.container_event(self.name, ("Warning", "BindFailed", message))

    def _stop_probes(self) -> None:
        """Cancel the tasks of hooks and probes."""
        for task in (self._hooks_task, *self._probes):
            if task is not None:
                task.cancel()
        self._probes.clear()

    def _get_started(self) -> ContainerProcess:
        """The started process. Raises RuntimeError before the start."""
        if self._started is None:
            raise RuntimeError(f"container {self.name} has not started")
        return self._started

    def _instant_in(self, delay_s: float) -> int:
        """The instant `delay_s` seconds from now, in nanoseconds since the epoch."""
        return self._deps.clock.now_ns() + round(delay_s * NANOSECONDS)
