"""The worker of a pod without processes (`runtimeClassName: simulated`), for tests with thousands of pods.

`node_agent` makes one in place of a `PodWorker`. The pod has an address, is Running at once, is ready
`podscaler.dev/simulated-startup-seconds` (default 0) after its start, and is removed at once when it is deleted. A
restart of the node does not change it. `podscaler.controlplane.metrics.resource` reads its usage from other
annotations. The status is that of a pod whose containers run since the start of the pod (`_simulated_state`).
"""

import logging
import math
from dataclasses import replace
from typing import Final

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.containers import container_state, pod_termination
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role, Running, Terminated
from podscaler.controlplane.kubelet.containers.dependencies import Dependencies
from podscaler.controlplane.kubelet.pods.pod_events import PodEvents, pod_text
from podscaler.controlplane.kubelet.pods.pod_status import PodStatusFacts
from podscaler.controlplane.kubelet.pods.pod_writer import PodWriter
from podscaler.controlplane.kubelet.pods.worker import RunningProcess
from podscaler.controlplane.kubelet.processes.notification import Notification
from podscaler.controlplane.registry.registry import Object

RUNTIME_CLASS: Final = "simulated"
STARTUP_ANNOTATION: Final = "podscaler.dev/simulated-startup-seconds"
STARTUP_MAX_S: Final = 366 * 86_400.0
"""A pod that would start later does so after a year: the instant fits the clock's nanoseconds in any case."""
WRITE_RETRY_NS: Final = NANOSECONDS
"""The delay after which a status that could not be written is written again."""

_log = logging.getLogger(__name__)


class SimulatedPod:
    """The worker of one simulated pod, which has no processes. Implements `worker.Worker`."""

    def __init__(self, deps: Dependencies, pod: Object) -> None:
        self._deps = deps
        self._pod = pod
        self._wakeup = Notification(deps.clock)
        self._writer = PodWriter(deps.registry, deps.clock, pod)
        self._events = PodEvents(deps.events, pod)
        self._is_done = False
        start = (pod.get("status") or {}).get("startTime")
        self._started_ns = instants.parse(start) if start else deps.clock.now_ns()

    def update(self, pod: Object) -> None:
        """Take over a new version of the object."""
        self._pod = pod
        self._wakeup.notify()

    def forget(self) -> None:
        """End the worker: the object is gone."""
        self._is_done = True
        self._wakeup.notify()

    def shut_down(self) -> None:
        """End the worker, as the node stops; the object and its status are kept, as in `forget`."""
        self.forget()

    def running_processes(self) -> list[RunningProcess]:
        """Return []: there are no processes."""
        return []

    async def run(self) -> None:
        """Write the pod's status until its object is gone, or the node stops. Raises AddressesExhausted."""
        ready_at_ns = self._started_ns + round(self._startup_s() * NANOSECONDS)
        try:
            while not self._is_done:
                try:
                    is_ready = await self._write_status(ready_at_ns)
                    wake_at_ns = None if is_ready else ready_at_ns
                except StatusError as error:
                    _log.warning("the status of pod %s cannot be written: %s", pod_text(self._pod), error.message)
                    wake_at_ns = self._deps.clock.now_ns() + WRITE_RETRY_NS
                await self._wakeup.wait(wake_at_ns)
        finally:
            self._deps.addresses.release_pod(self._pod["metadata"]["uid"])

    async def _write_status(self, ready_at_ns: int) -> bool:
        """Write the status, or remove a deleted pod; returns False if the pod is not ready yet.

        Args:
            ready_at_ns: the instant from which the pod is ready.

        Raises StatusError, AddressesExhausted.
        """
        if pod_termination.deletion_grace_s(self._pod) is not None:
            await self._writer.remove()
            return True
        is_ready = self._deps.clock.now_ns() >= ready_at_ns
        containers = [
            self._simulated_state(container, is_ready=is_ready)
            for container in container_state.initial_states(self._pod["spec"])
        ]
        facts = PodStatusFacts(
            host_ip=self._deps.addresses.node_address,
            pod_ip=self._deps.addresses.allocate_pod(
                self._pod["metadata"]["uid"], preferred=(self._pod.get("status") or {}).get("podIP")
            ),
            started_ns=self._started_ns,
            initialized=True,
        )
        await self._writer.write_status(containers, facts)
        return is_ready

    def _simulated_state(self, container: ContainerState, *, is_ready: bool) -> ContainerState:
        """The state of a container as if it had started with the pod; an init container has succeeded at once."""
        container_id = f"simulated-{self._pod['metadata']['uid']}-{container.name}"
        started = container_state.after_start(container, now_ns=self._started_ns, container_id=container_id)
        if container.role is Role.INIT:
            end = Terminated(0, "Completed", self._started_ns, self._started_ns, container_id)
            return replace(started, state=end, start_due_ns=None)
        return replace(started, state=Running(self._started_ns, container_id), ready=is_ready, started=True)

    def _startup_s(self) -> float:
        """The seconds from start to readiness in STARTUP_ANNOTATION; 0 for less, and, with an event, for no number."""
        annotation = (self._pod["metadata"].get("annotations") or {}).get(STARTUP_ANNOTATION, "0")
        try:
            startup_s = float(annotation)
        except ValueError:
            startup_s = math.nan
        if math.isfinite(startup_s):
            return min(max(0.0, startup_s), STARTUP_MAX_S)
        message = f"the annotation {STARTUP_ANNOTATION} is not a number of seconds: {annotation!r}; taken as 0"
        self._events.record_pod_event("Warning", "InvalidAnnotation", message)
        return 0.0


def is_simulated(pod: Object) -> bool:
    """Whether the pod's runtimeClassName is `simulated`; `metrics.resource.simulated` decides likewise."""
    return bool(pod["spec"].get("runtimeClassName") == RUNTIME_CLASS)
