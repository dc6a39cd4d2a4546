"""A pod without a process (`runtimeClassName: simulated`), for tests and experiments with thousands of pods.

`node_agent` makes one instead of a `PodWorker`. It has an address, runs at once, is ready after
`podscaler.dev/simulated-startup-seconds` (default 0) since it began, and goes at once when it is deleted. Its usage
comes from annotations too, which are the metrics' business. After a restart of the node it is as it was.
"""

import logging
from dataclasses import replace
from typing import Final

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.containers import container_state, pod_ending
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role, Running, Terminated
from podscaler.controlplane.kubelet.containers.host import Host
from podscaler.controlplane.kubelet.pods.pod_events import PodEvents, pod_text
from podscaler.controlplane.kubelet.pods.pod_status import PodStatusFacts
from podscaler.controlplane.kubelet.pods.running import RunningProcess
from podscaler.controlplane.kubelet.pods.status_writer import PodWriter
from podscaler.controlplane.kubelet.processes.notification import Alarm
from podscaler.controlplane.registry.registry import Object

RUNTIME_CLASS: Final = "simulated"
STARTUP_ANNOTATION: Final = "podscaler.dev/simulated-startup-seconds"

_log = logging.getLogger(__name__)


class SimulatedPod:
    """See the module; the methods are those of `PodWorker`."""

    def __init__(self, host: Host, pod: Object) -> None:
        self._host = host
        self._pod = pod
        self._alarm = Alarm(host.clock)
        self._writer = PodWriter(host.registry, host.clock, pod)
        self._events = PodEvents(host.events, pod)
        self._is_removed = False
        self._stops = False
        start = (pod.get("status") or {}).get("startTime")
        self._began_ns = instants.parse(start) if start else host.clock.now_ns()

    def update(self, pod: Object) -> None:
        """The object has a new version."""
        self._pod = pod
        self._alarm.ring()

    def forget(self) -> None:
        """The object is gone."""
        self._is_removed = True
        self._alarm.ring()

    def shut_down(self) -> None:
        """The node stops."""
        self._stops = True
        self._alarm.ring()

    def running(self) -> list[RunningProcess]:
        """No processes."""
        return []

    async def run(self) -> None:
        """Work until the pod's object is gone, or the node stops."""
        ready_at_ns = self._began_ns + round(self._startup_s() * NANOSECONDS)
        try:
            while not (self._is_removed or self._stops):
                try:
                    is_ready = await self._write(ready_at_ns)
                    wake_at_ns = None if is_ready else ready_at_ns
                except StatusError as error:
                    _log.warning("the status of pod %s cannot be written: %s", pod_text(self._pod), error.message)
                    wake_at_ns = self._host.clock.now_ns() + NANOSECONDS
                await self._alarm.wait(wake_at_ns)
        finally:
            self._host.addresses.release_pod(self._pod["metadata"]["uid"])

    async def _write(self, ready_at_ns: int) -> bool:
        """Store what is true now; returns whether the pod is ready."""
        if pod_ending.deletion_grace_s(self._pod) is not None:
            await self._writer.remove()
            return True
        is_ready = self._host.clock.now_ns() >= ready_at_ns
        containers = [self._shown(c, is_ready=is_ready) for c in container_state.fresh(self._pod["spec"])]
        facts = PodStatusFacts(
            host_ip=self._host.addresses.node_address,
            pod_ip=self._host.addresses.allocate_pod(
                self._pod["metadata"]["uid"], preferred=(self._pod.get("status") or {}).get("podIP")
            ),
            started_ns=self._began_ns,
            initialized=True,
        )
        await self._writer.write_status(containers, facts)
        return is_ready

    def _shown(self, container: ContainerState, *, is_ready: bool) -> ContainerState:
        container_id = f"simulated-{self._pod['metadata']['uid']}-{container.name}"
        begun = container_state.began(container, now_ns=self._began_ns, container_id=container_id)
        if container.role is Role.INIT:
            end = Terminated(0, "Completed", self._began_ns, self._began_ns, container_id)
            return replace(begun, state=end, retry_at_ns=None)
        return replace(begun, state=Running(self._began_ns, container_id), ready=is_ready, started=True)

    def _startup_s(self) -> float:
        text = (self._pod["metadata"].get("annotations") or {}).get(STARTUP_ANNOTATION, "0")
        try:
            return max(0.0, float(text))
        except ValueError:
            message = f"the annotation {STARTUP_ANNOTATION} is no number of seconds: {text!r}; taken as 0"
            self._events.of_pod("Warning", "InvalidAnnotation", message)
            return 0.0


def is_simulated(pod: Object) -> bool:
    """Whether the pod asks to run without a process."""
    return bool(pod["spec"].get("runtimeClassName") == RUNTIME_CLASS)
