"""One pod on this node, from the moment it is bound until nothing of it is left.

`node_agent` makes a `PodWorker` for each pod and runs it as a task of its own. Theory of operation: everything that
happens (a new version of the object, the end of a process, a probe's verdict, an instant that has come) changes what
the worker knows and rings its alarm; a `step` then asks `lifecycle` what to do, does it, and writes the status if it
changed. A step never waits for a container, so that each pod reacts at once whatever its containers do.

Rules:

1. A failure to start a container is a state of that container (with a reason, an event and a next try), never an error.
2. The object is removed only when nothing of the pod runs any more.
3. When the node stops, containers end and the status stays as it was: the next run goes on from there (`adoption`).
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.controlplane.kubelet.containers import container_state, pod_ending
from podscaler.controlplane.kubelet.containers.container_run import ContainerRun
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Terminated
from podscaler.controlplane.kubelet.containers.host import Host
from podscaler.controlplane.kubelet.containers.pod_ending import PodTermination
from podscaler.controlplane.kubelet.launching import container_ports
from podscaler.controlplane.kubelet.pods import adoption, launch, lifecycle
from podscaler.controlplane.kubelet.pods.lifecycle import PodActions
from podscaler.controlplane.kubelet.pods.pod_events import PodEvents, pod_text
from podscaler.controlplane.kubelet.pods.pod_status import PodStatusFacts
from podscaler.controlplane.kubelet.pods.running import RunningProcess
from podscaler.controlplane.kubelet.pods.status_writer import PodWriter
from podscaler.controlplane.kubelet.processes.notification import Alarm
from podscaler.controlplane.kubelet.processes.processes import StartFailure
from podscaler.controlplane.kubelet.volumes import container_user, volume_files, volumes
from podscaler.controlplane.kubelet.volumes.references import ConfigFault, PodPlacement
from podscaler.controlplane.registry.registry import Object

_log = logging.getLogger(__name__)


class PodWorker:
    """See the module.

    Args:
        pod: bound to this node.
    """

    def __init__(self, host: Host, pod: Object) -> None:
        self._host = host
        self._pod = pod
        self._now_ns = host.clock.now_ns
        self._began_ns = self._now_ns()
        self._containers = {c.name: c for c in adoption.adopted(pod, now_ns=self._began_ns)}
        self._specs = _container_specs(pod)
        self._runs: dict[str, ContainerRun] = {}
        self._starting: set[str] = set()
        self._sources: asyncio.Task[dict[str, str]] | None = None
        self._initialized = False
        self._ending: PodTermination | None = None
        self._is_removed = False
        self._stops = False
        self._pod_ip = ""
        self._outcome: lifecycle.Outcome | None = None
        self._alarm = Alarm(host.clock)
        self._events = PodEvents(host.events, pod)
        self._writer = PodWriter(host.registry, host.clock, pod)
        self._note_deletion()

    # --- what others tell -----------------------------------------------------------------------------------------

    def update(self, pod: Object) -> None:
        """The object has a new version."""
        self._pod = pod
        former, self._specs = self._specs, _container_specs(pod)
        self._replace_changed(former)
        self._note_deletion()
        self._alarm.ring()

    def forget(self) -> None:
        """The object is gone."""
        self._is_removed = True
        self._end(pod_ending.REMOVED_GRACE_S)

    def shut_down(self) -> None:
        """The node stops."""
        self._stops = True
        self._end(min(self._host.settings.stop_grace_s, pod_ending.own_grace_s(self._pod)))

    def container_started(self, name: str) -> None:
        """From the container's run."""
        self._set(replace(self._containers[name], started=True))

    def container_ready(self, name: str, *, ready: bool) -> None:
        """From the container's run."""
        self._set(replace(self._containers[name], ready=ready))

    def container_ended(self, name: str, end: Terminated) -> None:
        """From the container's run."""
        self._runs.pop(name, None)
        self._note_end(name, end)

    def container_event(self, name: str, event: tuple[str, str, str]) -> None:
        """From the container's run."""
        type_, reason, message = event
        self._events.of_container(name, cast(Literal["Normal", "Warning"], type_), reason, message)

    def running(self) -> list[RunningProcess]:
        """The containers that run."""
        return [
            RunningProcess(name, run.running.process.pid, run.running.started_ns, run.commands)
            for name, run in self._runs.items()
            if run.running
        ]

    def find_run(self, name: str) -> ContainerRun | None:
        """The container of that name, if it runs."""
        run = self._runs.get(name)
        return run if run is not None and run.running is not None and not run.running.process.exited.done() else None

    # --- the work -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until the pod's object is gone, or the node stops, and nothing of the pod runs."""
        while True:
            wake_at_ns = await self._step()
            if self._outcome is not None and (self._is_removed or self._stops):
                return
            await self._alarm.wait(wake_at_ns)

    async def _step(self) -> int | None:
        """Do what is to be done now; returns when to look again."""
        deadline_ns = self._check_active_deadline()
        plan = lifecycle.plan(
            list(self._containers.values()),
            initialized=self._initialized,
            ending=self._ending is not None,
            now_ns=self._now_ns(),
        )
        self._initialized = plan.initialized
        self._start_containers(plan)
        self._stop_containers(plan)
        self._settle_outcome(plan)
        try:
            await self._write()
        except StatusError as error:
            _log.warning("the status of pod %s cannot be written: %s", pod_text(self._pod), error.message)
            return self._now_ns() + NANOSECONDS
        return min((at for at in (plan.wake_at_ns, deadline_ns) if at is not None), default=None)

    def _check_active_deadline(self) -> int | None:
        """End the pod when it has been active for too long; else when that will be."""
        deadline_ns = pod_ending.active_deadline_ns(self._pod, started_ns=self._began_ns)
        if deadline_ns is None or self._ending is not None or self._outcome is not None:
            return None
        if deadline_ns > self._now_ns():
            return deadline_ns
        self._end(pod_ending.own_grace_s(self._pod), "DeadlineExceeded", pod_ending.DEADLINE_MESSAGE)
        self._events.of_pod("Normal", "DeadlineExceeded", pod_ending.DEADLINE_MESSAGE)
        return None

    def _start_containers(self, plan: PodActions) -> None:
        for name in plan.start:
            if name not in self._starting:
                self._starting.add(name)
                self._host.background.start(self._start(name), f"start of {name} in {pod_text(self._pod)}")

    def _stop_containers(self, plan: PodActions) -> None:
        for name in plan.stop:
            run = self._runs.get(name)
            if run is not None:
                deadline_ns = self._ending.deadline_ns if self._ending else self._own_deadline_ns()
                run.stop(deadline_ns, f"Stopping container {name}")

    def _replace_changed(self, former: Mapping[str, Mapping[str, Any]]) -> None:
        """End containers whose image was changed; those that may not be restarted keep what they run."""
        for name, run in self._runs.items():
            spec = self._specs[name]
            policy = spec.get("restartPolicy") or self._pod["spec"].get("restartPolicy", "Always")
            if spec.get("image") != former[name].get("image") and policy == "Always":
                run.stop(self._own_deadline_ns(), f"Container {name} definition changed, will be restarted")

    def _own_deadline_ns(self) -> int:
        """For sidecars of a pod that has done its work, and for containers that are replaced."""
        return self._now_ns() + pod_ending.own_grace_s(self._pod) * NANOSECONDS

    def _settle_outcome(self, plan: PodActions) -> None:
        if plan.outcome is None or self._starting or self._outcome is not None:
            return
        self._outcome = "Failed" if self._ending and self._ending.reason else plan.outcome
        self._host.addresses.release_pod(self._pod["metadata"]["uid"])

    async def _write(self) -> None:
        if self._is_removed or self._stops:
            return
        facts = PodStatusFacts(
            host_ip=self._host.addresses.node_address,
            pod_ip=self._pod_ip or (self._pod.get("status") or {}).get("podIP", ""),
            started_ns=self._began_ns,
            initialized=self._initialized,
            outcome=self._outcome,
            reason=self._ending.reason if self._ending and self._outcome else "",
            message=self._ending.message if self._ending and self._outcome else "",
        )
        await self._writer.write_status(list(self._containers.values()), facts)
        if self._outcome is not None and pod_ending.deletion_grace_s(self._pod) is not None:
            await self._writer.remove()

    # --- starting -------------------------------------------------------------------------------------------------

    async def _start(self, name: str) -> None:
        """Start one container; whatever goes wrong becomes its state (rule 1)."""
        try:
            await self._start_process(name)
        except ConfigFault as fault:
            self._hold(name, fault)
        except StartFailure as failure:
            self._events.of_container(name, "Warning", "Failed", f"Error: {failure}")
            end = Terminated(container_state.START_ERROR_EXIT_CODE, "StartError", self._now_ns(), message=str(failure))
            self._note_end(name, end)
        except Exception as error:  # rule 1: a full disk, an address block that is used up, or a mistake of ours
            is_foreseen = isinstance(error, OSError | PodscalerError)
            text = "container %s of pod %s could not be started: %s"
            _log.error(text, name, pod_text(self._pod), error, exc_info=not is_foreseen)
            self._hold(name, ConfigFault(f"the node could not prepare the container: {error}"))
        finally:
            self._starting.discard(name)
            self._alarm.ring()

    async def _start_process(self, name: str) -> None:
        spec = self._specs[name]
        place = self._place()
        plans = self._port_plans()
        mapped = container_ports.mapped_ports(plans.values())
        if self._host.port_translator is None:
            await self._writer.annotate_port_map(mapped)
        else:  # there may be ports that a container has bound without declaring them
            await self._writer.extend_port_map(mapped)
        container_id = secrets.token_hex(16)
        ready = await launch.prepare(
            self._host, self._pod, spec, place=place, sources=await self._volumes(place), container_id=container_id
        )
        run = ContainerRun(self._host, self._pod, spec, ready, self, place_ip=place.pod_ip)
        run.port_map = plans[name].mapped
        if self._ending is not None:
            return
        container = self._containers[name]
        started = await run.start(container_id, container.restart_count + (1 if container.ran else 0))
        self._runs[name] = run
        self._set(container_state.began(container, now_ns=started.started_ns, container_id=container_id))
        self._events.started(name)
        run.attend()

    def _place(self) -> PodPlacement:
        """Where the pod runs; its address is taken at the first call."""
        status = self._pod.get("status") or {}
        if self._pod["spec"].get("hostNetwork"):
            self._pod_ip = self._host.addresses.node_address
        elif not self._pod_ip:
            uid = self._pod["metadata"]["uid"]
            self._pod_ip = self._host.addresses.allocate_pod(uid, preferred=status.get("podIP"))
        return PodPlacement(
            self._pod_ip, self._host.addresses.node_address, self._host.node_name, self._host.allocatable
        )

    def _port_plans(self) -> dict[str, container_ports.PortPlan]:
        return {name: self._port_plan(spec) for name, spec in self._specs.items()}

    def _port_plan(self, spec: Mapping[str, Any]) -> container_ports.PortPlan:
        capabilities = self._host.capabilities
        try:
            ids = container_user.identity(
                self._pod, spec, user=capabilities.user, may_change=capabilities.may_change_user
            )
        except ConfigFault:
            return container_ports.PortPlan()  # that container will say so when it is started itself
        return launch.port_plan(self._host, spec, ids)

    async def _volumes(self, place: PodPlacement) -> Mapping[str, str]:
        """The pod's volumes, made once for all containers; a failure is tried again with the next start."""
        if self._sources is None:
            host = self._host
            work = volumes.prepare(
                self._pod,
                place,
                find=host.registry.find,
                paths=host.paths,
                threads=host.threads,
                issue=host.issue_token,
            )
            self._sources = asyncio.get_running_loop().create_task(work)
        task = self._sources
        try:
            return await asyncio.shield(task)
        except ConfigFault as fault:
            self._note_mount_fault(task, fault)
            raise
        except OSError as error:
            message = f"{error.filename or 'volume'}: {error.strerror or error}"
            disk_fault = ConfigFault(message, reason=volume_files.MOUNT_REASON)
            self._note_mount_fault(task, disk_fault)
            raise disk_fault from error
        finally:
            if self._sources is task and task.done() and (task.cancelled() or task.exception() is not None):
                self._sources = None

    def _note_mount_fault(self, task: "asyncio.Task[dict[str, str]]", fault: ConfigFault) -> None:
        """Report it once, however many containers wait for the volumes."""
        if self._sources is task:
            self._events.of_pod("Warning", "FailedMount", f"MountVolume.SetUp failed: {fault.message}")

    def _hold(self, name: str, fault: ConfigFault) -> None:
        if fault.reason != "ContainerCreating":
            self._events.of_container(name, "Warning", "Failed", f"Error: {fault.message}")
        held = container_state.held(self._containers[name], fault.reason, fault.message, now_ns=self._now_ns())
        self._set(held)

    # --- what is known --------------------------------------------------------------------------------------------

    def _note_end(self, name: str, end: Terminated) -> None:
        container = container_state.ended(
            self._containers[name], end, may_restart=self._ending is None, pod=pod_text(self._pod)
        )
        self._events.backing_off(container)
        self._set(container)

    def _set(self, container: ContainerState) -> None:
        self._containers[container.name] = container
        self._alarm.ring()

    def _note_deletion(self) -> None:
        grace_s = pod_ending.deletion_grace_s(self._pod)
        if grace_s is not None:
            self._end(grace_s)

    def _end(self, grace_s: float, reason: str = "", message: str = "") -> None:
        self._ending = pod_ending.ending(self._ending, grace_s, now_ns=self._now_ns(), reason=reason, message=message)
        self._alarm.ring()


def _container_specs(pod: Object) -> dict[str, dict[str, Any]]:
    return {
        entry["name"]: entry for group in ("initContainers", "containers") for entry in pod["spec"].get(group) or []
    }
