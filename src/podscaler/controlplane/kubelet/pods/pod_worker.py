"""The worker of one pod: runs its containers from the binding to the node until the pod is gone.

`kubelet.node_agent` makes a `PodWorker` for each pod and runs it as a task. Everything that happens (a new version of
the object, the exit of a process, the verdict of a probe, a deadline) changes the worker's state and wakes it. A sync
then computes the next actions (`pod_actions`), starts and stops containers, and writes the status if it has changed. A
sync does not wait for containers to start or stop, so that each pod reacts at once. A new cause to end a pod: a call of
`_terminate`.

Rules:

1. A failure to start a container is a state of that container (with a reason, an event and a retry), never an error.
2. The object is deleted only when no container of the pod runs.
3. When the node stops, containers are stopped and the status is kept: the next run continues from it
   (`restored_containers`).

Source: pkg/kubelet/pod_workers.go, syncPod and computePodActions (kubelet).
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.controlplane.kubelet.containers import container_state, pod_termination
from podscaler.controlplane.kubelet.containers.container_run import ContainerRun
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Terminated
from podscaler.controlplane.kubelet.containers.dependencies import Dependencies, release_address
from podscaler.controlplane.kubelet.containers.pod_termination import PodTermination
from podscaler.controlplane.kubelet.launching import container_ports
from podscaler.controlplane.kubelet.pods import container_setup, pod_actions, pod_status, restored_containers
from podscaler.controlplane.kubelet.pods.pod_actions import PodActions
from podscaler.controlplane.kubelet.pods.pod_events import PodEvents, pod_text
from podscaler.controlplane.kubelet.pods.pod_status import PodStatusFacts
from podscaler.controlplane.kubelet.pods.pod_writer import PodWriter
from podscaler.controlplane.kubelet.pods.worker import RunningProcess
from podscaler.controlplane.kubelet.probes.probe_loop import ContainerEvent
from podscaler.controlplane.kubelet.processes.notification import Notification
from podscaler.controlplane.kubelet.processes.processes import StartFailure
from podscaler.controlplane.kubelet.volumes import volume_files, volumes
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement
from podscaler.controlplane.registry.registry import Object

WRITE_RETRY_NS: Final = NANOSECONDS
"""The delay after which a status that could not be written is written again."""
VISIBLE_MIN_NS: Final = NANOSECONDS // 2
"""How long a pod whose deletion with a grace period is seen is kept at least, however soon its processes end."""

_log = logging.getLogger(__name__)


class PodWorker:
    """Starts and stops the containers of one pod. Implements `worker.Worker` and `container_run.ContainerListener`.

    Args:
        pod: a pod that is bound to this node.
    """

    def __init__(self, deps: Dependencies, pod: Object) -> None:
        self._deps = deps
        self._pod = pod
        self._clock = deps.clock
        self._started_ns = self._clock.now_ns()
        self._containers = {
            container.name: container for container in restored_containers.restore(pod, now_ns=self._started_ns)
        }
        self._specs = pod_status.container_specs(pod["spec"])
        self._runs: dict[str, ContainerRun] = {}  # name of a container -> its present start
        self._starting: set[str] = set()  # names of the containers whose start is in progress
        self._volumes_task: asyncio.Task[dict[str, str]] | None = None  # creates the volumes: name -> path
        self._is_initialized = False  # whether regular containers may run
        self._termination: PodTermination | None = None
        self._deletion_seen_ns: int | None = None  # when the deletionTimestamp was seen first
        self._is_object_gone = False
        self._is_node_stopping = False
        self._pod_ip = ""
        self._outcome: pod_actions.Outcome | None = None  # the final phase, once no container runs or is to run
        self._wakeup = Notification(deps.clock)
        self._events = PodEvents(deps.events, pod)
        self._writer = PodWriter(deps.registry, deps.clock, pod)
        self._terminate_if_deleted()

    # --- notifications from the node and from containers ----------------------------------------------------------

    def update(self, pod: Object) -> None:
        """Take over a new version of the object."""
        self._pod = pod
        former_specs, self._specs = self._specs, pod_status.container_specs(pod["spec"])
        self._restart_changed(former_specs)
        self._terminate_if_deleted()
        self._wakeup.notify()

    def forget(self) -> None:
        """Terminate the pod at once: its object is gone."""
        self._is_object_gone = True
        self._terminate(pod_termination.REMOVED_GRACE_S)

    def shut_down(self) -> None:
        """Terminate the pod within the node's grace period: the node stops."""
        self._is_node_stopping = True
        self._terminate(min(self._deps.settings.stop_grace_s, pod_termination.own_grace_s(self._pod)))

    def container_started(self, name: str) -> None:
        """Set `ContainerState.started`."""
        self._set_state(replace(self._containers[name], started=True))

    def container_ready(self, name: str, *, ready: bool) -> None:
        """Set `ContainerState.ready`."""
        self._set_state(replace(self._containers[name], ready=ready))

    def container_ended(self, name: str, end: Terminated) -> None:
        """Apply the exit of the container, which may lead to a restart."""
        self._runs.pop(name, None)
        self._apply_exit(name, end)

    def container_event(self, name: str, event: ContainerEvent) -> None:
        """Record an event of the container."""
        type_, reason, message = event
        self._events.record_container_event(name, type_, reason, message)

    def running_processes(self) -> list[RunningProcess]:
        """The containers that have a process now."""
        return [
            RunningProcess(name, started.process.pid, started.started_ns, container_run.command_pids)
            for name, container_run in self._runs.items()
            if (started := container_run.started) is not None
        ]

    def find_run(self, name: str) -> ContainerRun | None:
        """The run of the container `name`, None unless its process runs."""
        container_run = self._runs.get(name)
        if container_run is None or container_run.started is None:
            return None
        return None if container_run.started.process.exited.done() else container_run

    # --- sync -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the pod; returns when its object is gone or the node stops, and no container runs."""
        while True:
            wake_at_ns = await self._sync_pod()
            if self._outcome is not None and (self._is_object_gone or self._is_node_stopping):
                return
            await self._wakeup.wait(wake_at_ns)

    async def _sync_pod(self) -> int | None:
        """Carry out the next actions and write the status.

        Returns the instant (ns) at which the next sync is due at the latest, None if only a change makes it due.
        """
        deadline_ns = self._check_active_deadline()
        actions = pod_actions.compute_pod_actions(
            list(self._containers.values()),
            initialized=self._is_initialized,
            terminating=self._termination is not None,
            now_ns=self._clock.now_ns(),
        )
        self._is_initialized = actions.initialized
        self._start_containers(actions)
        self._stop_containers(actions)
        self._set_outcome(actions)
        try:
            await self._write_status()
        except StatusError as error:
            _log.warning("the status of pod %s cannot be written: %s", pod_text(self._pod), error.message)
            return self._clock.now_ns() + WRITE_RETRY_NS
        due_instants = [instant_ns for instant_ns in (actions.wake_at_ns, deadline_ns) if instant_ns is not None]
        return min(due_instants, default=None)

    def _check_active_deadline(self) -> int | None:
        """Terminate the pod if its activeDeadlineSeconds are over.

        Returns the deadline (ns) if they are not; None without one, and where the pod is terminated or has ended.
        """
        deadline_ns = pod_termination.active_deadline_ns(self._pod, started_ns=self._started_ns)
        if deadline_ns is None or self._termination is not None or self._outcome is not None:
            return None
        if deadline_ns > self._clock.now_ns():
            return deadline_ns
        self._terminate(pod_termination.own_grace_s(self._pod), "DeadlineExceeded", pod_termination.DEADLINE_MESSAGE)
        self._events.record_pod_event("Normal", "DeadlineExceeded", pod_termination.DEADLINE_MESSAGE)
        return None

    def _start_containers(self, actions: PodActions) -> None:
        """Begin to start the containers of `actions.start`, except those whose start is in progress."""
        for name in actions.start:
            if name not in self._starting:
                self._starting.add(name)
                self._deps.background.start(self._start_container(name), f"start of {name} in {pod_text(self._pod)}")

    def _stop_containers(self, actions: PodActions) -> None:
        """Begin to stop the containers of `actions.stop`; for those that stop already, the deadline can get nearer."""
        for name in actions.stop:
            container_run = self._runs.get(name)
            if container_run is not None:
                deadline_ns = self._termination.deadline_ns if self._termination else self._own_deadline_ns()
                container_run.stop(deadline_ns, f"Stopping container {name}")

    def _restart_changed(self, former_specs: Mapping[str, Mapping[str, Any]]) -> None:
        """Stop containers whose image was changed, if their policy restarts them.

        Args:
            former_specs: name -> core/v1 Container of the version before.
        """
        for name, container_run in self._runs.items():
            spec = self._specs[name]
            policy = spec.get("restartPolicy") or self._pod["spec"].get("restartPolicy", "Always")
            if spec.get("image") != former_specs[name].get("image") and policy == "Always":
                container_run.stop(self._own_deadline_ns(), f"Container {name} definition changed, will be restarted")

    def _own_deadline_ns(self) -> int:
        """The deadline of sidecars of a finished pod, and of containers that are restarted with another image."""
        return self._clock.now_ns() + pod_termination.own_grace_s(self._pod) * NANOSECONDS

    def _set_outcome(self, actions: PodActions) -> None:
        """Set the outcome when the pod has ended, and release its address, which needs a task only with a namespace."""
        if actions.outcome is None or self._starting or self._outcome is not None:
            return
        is_past_deadline = self._termination is not None and bool(self._termination.reason)  # no other cause has one
        self._outcome = "Failed" if is_past_deadline else actions.outcome
        uid = self._pod["metadata"]["uid"]
        if self._deps.pod_networks is None:
            self._deps.addresses.release_pod(uid)
        else:
            self._deps.background.start(release_address(self._deps, uid), f"release of the address of pod {uid}")

    async def _write_status(self) -> None:
        """Write the status; remove a pod that is being deleted and has ended from the registry. Raises StatusError."""
        if self._is_object_gone or self._is_node_stopping:  # rule 3: the status is kept
            return
        finished_termination = self._termination if self._outcome is not None else None
        facts = PodStatusFacts(
            host_ip=self._deps.addresses.node_address,
            pod_ip=self._pod_ip or (self._pod.get("status") or {}).get("podIP", ""),
            started_ns=self._started_ns,
            initialized=self._is_initialized,
            outcome=self._outcome,
            reason=finished_termination.reason if finished_termination else "",
            message=finished_termination.message if finished_termination else "",
        )
        await self._writer.write_status(list(self._containers.values()), facts)
        if self._outcome is not None and pod_termination.deletion_grace_s(self._pod) is not None:
            await self._await_visibility()
            await self._writer.remove()

    async def _await_visibility(self) -> None:
        """Wait until clients that poll have seen the deletionTimestamp, as with a kubelet, which takes longer."""
        if self._deletion_seen_ns is not None and pod_termination.deletion_grace_s(self._pod):
            remaining_ns = self._deletion_seen_ns + VISIBLE_MIN_NS - self._clock.now_ns()
            await self._clock.sleep(max(remaining_ns, 0) / NANOSECONDS)

    # --- starting -------------------------------------------------------------------------------------------------

    async def _start_container(self, name: str) -> None:
        """Start one container; a failure becomes its state (rule 1)."""
        try:
            await self._start_process(name)
        except ContainerConfigError as error:
            self._apply_failed_creation(name, error)
        except StartFailure as failure:
            self._events.record_container_event(name, "Warning", "Failed", f"Error: {failure}")
            end = Terminated(
                container_state.START_ERROR_EXIT_CODE, "StartError", self._clock.now_ns(), message=str(failure)
            )
            self._apply_exit(name, end)
        except Exception as error:  # rule 1: a full disk, an exhausted address block, or a bug
            is_expected = isinstance(error, OSError | PodscalerError)
            log_message = "container %s of pod %s could not be started: %s"
            _log.error(log_message, name, pod_text(self._pod), error, exc_info=not is_expected)
            self._apply_failed_creation(
                name, ContainerConfigError(f"the node could not prepare the container: {error}")
            )
        finally:
            self._starting.discard(name)
            self._wakeup.notify()

    async def _start_process(self, name: str) -> None:
        """Prepare a container and start its process; only prepare it if the pod is terminated meanwhile.

        Raises ContainerConfigError, StartFailure, OSError, StatusError (port map), PodNetworkError, AddressesExhausted.
        """
        spec = self._specs[name]
        placement = self._ensure_placement()
        mapped = container_ports.mapped_ports(self._port_plan(container) for container in self._specs.values())
        if self._deps.port_translator is None:
            await self._writer.replace_port_map(mapped)
        else:  # keep the ports that a container has bound without declaring them
            await self._writer.extend_port_map(mapped)
        if container_setup.has_own_network(self._deps, self._pod) and self._deps.pod_networks is not None:
            await self._deps.pod_networks.ensure(placement.pod_ip)
        container_id = secrets.token_hex(16)
        config = await container_setup.prepare(
            self._deps,
            self._pod,
            spec,
            placement=placement,
            volume_paths=await self._get_volume_paths(placement),
            container_id=container_id,
        )
        container_run = ContainerRun(self._deps, self._pod, spec, config, self, pod_ip=placement.pod_ip)
        if self._termination is not None:
            return
        container = self._containers[name]
        started = await container_run.start(container_id, container.next_start_number)
        self._runs[name] = container_run
        self._set_state(container_state.after_start(container, now_ns=started.started_ns, container_id=container_id))
        self._events.record_started(name)
        container_run.run_hooks_and_probes()

    def _ensure_placement(self) -> PodPlacement:
        """The pod's addresses; allocates its own at the first call, if possible that of its status."""
        status = self._pod.get("status") or {}
        if self._pod["spec"].get("hostNetwork"):
            self._pod_ip = self._deps.addresses.node_address
        elif not self._pod_ip:
            uid = self._pod["metadata"]["uid"]
            self._pod_ip = self._deps.addresses.allocate_pod(uid, preferred=status.get("podIP"))
        return PodPlacement(
            self._pod_ip, self._deps.addresses.node_address, self._deps.node_name, self._deps.allocatable
        )

    def _port_plan(self, spec: Mapping[str, Any]) -> container_ports.PortPlan:
        """The ports of a container; none if it cannot run as the user of its spec."""
        try:
            user = container_setup.find_user(self._deps, self._pod, spec)
        except ContainerConfigError:
            return container_ports.PortPlan()  # the error is raised again when that container itself is started
        return container_setup.port_plan(self._deps, self._pod, spec, user)

    async def _get_volume_paths(self, placement: PodPlacement) -> Mapping[str, str]:
        """The paths of the pod's volumes: name -> path. They are created once for all containers.

        A failure is reported as an event and retried at the next start of a container. Raises ContainerConfigError.
        """
        if self._volumes_task is None:
            deps = self._deps
            creation = volumes.prepare(
                self._pod,
                placement,
                sources=self._volume_sources(),
                paths=deps.paths,
                threads=deps.threads,
            )
            self._volumes_task = asyncio.get_running_loop().create_task(creation)
        task = self._volumes_task
        try:
            return await asyncio.shield(task)
        except ContainerConfigError as error:
            self._report_mount_error(task, error)
            raise
        except OSError as error:
            disk_error = volume_files.mount_error(f"{error.filename or 'volume'}: {error.strerror or error}")
            self._report_mount_error(task, disk_error)
            raise disk_error from error
        finally:
            has_failed = task.done() and (task.cancelled() or task.exception() is not None)
            if self._volumes_task is task and has_failed:  # else another start has begun a new task already
                self._volumes_task = None

    async def refresh_volumes(self, resource: str, name: str) -> None:
        """Write the present content of an object into the pod's volumes. A failure is logged.

        Args:
            resource: `configmaps` or `secrets` of the pod's namespace, or TRUST_BUNDLES.
            name: the name of the object.
        """
        task = None if self._termination else self._volumes_task
        if task is None or not any(
            volume_files.has_object(pod_volume, resource, name) for pod_volume in self._pod_volumes()
        ):
            return  # not created yet (that will read the present content), not needed any more, or not concerned
        deps = self._deps
        try:
            await asyncio.shield(task)
            await volumes.refresh(
                self._pod,
                self._ensure_placement(),
                (resource, name),
                sources=self._volume_sources(),
                paths=deps.paths,
                threads=deps.threads,
            )
        except (ContainerConfigError, OSError) as error:
            _log.warning("volumes of pod %s keep the former content of %s: %s", pod_text(self._pod), name, error)

    def _volume_sources(self) -> volume_files.VolumeSources:
        """The lookups and the issuer of tokens from which the files of volumes come."""
        registry = self._deps.registry
        return volume_files.VolumeSources(
            registry.find, lambda: registry.list(volume_files.TRUST_BUNDLES), self._deps.issue_token
        )

    def _pod_volumes(self) -> list[Mapping[str, Any]]:
        return self._pod["spec"].get("volumes") or []

    def _report_mount_error(self, task: "asyncio.Task[dict[str, str]]", error: ContainerConfigError) -> None:
        """Record one event for a failed `task`, however many containers wait for it: the first one resets the task."""
        if self._volumes_task is task:
            self._events.record_pod_event("Warning", "FailedMount", f"MountVolume.SetUp failed: {error.message}")

    def _apply_failed_creation(self, name: str, error: ContainerConfigError) -> None:
        """Set the waiting state of a container that cannot be created, with an event unless its volumes have one."""
        if error.reason != volume_files.MOUNT_REASON:
            self._events.record_container_event(name, "Warning", "Failed", f"Error: {error.message}")
        container, now_ns = self._containers[name], self._clock.now_ns()
        self._set_state(container_state.after_failed_creation(container, error.reason, error.message, now_ns=now_ns))

    # --- state ----------------------------------------------------------------------------------------------------

    def _apply_exit(self, name: str, end: Terminated) -> None:
        """Set the state of a container after its process has ended with `end`, or could not be started."""
        container = container_state.after_exit(
            self._containers[name], end, may_restart=self._termination is None, pod_text=pod_text(self._pod)
        )
        self._events.record_back_off(container)
        self._set_state(container)

    def _set_state(self, container: ContainerState) -> None:
        self._containers[container.name] = container
        self._wakeup.notify()

    def _terminate_if_deleted(self) -> None:
        """Terminate the pod if its object is being deleted."""
        grace_s = pod_termination.deletion_grace_s(self._pod)
        if grace_s is not None:
            if self._deletion_seen_ns is None:
                self._deletion_seen_ns = self._clock.now_ns()
            self._terminate(grace_s)

    def _terminate(self, grace_s: float, reason: str = "", message: str = "") -> None:
        """Terminate the pod within `grace_s` seconds, or sooner if it is being terminated already.

        Args:
            reason, message: of the pod's status; empty for a deletion, and where the node stops.
        """
        self._termination = pod_termination.terminate(
            self._termination, grace_s, now_ns=self._clock.now_ns(), reason=reason, message=message
        )
        self._wakeup.notify()
