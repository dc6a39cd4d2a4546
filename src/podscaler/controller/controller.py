"""The controller's main loop: watches autoscalers and pods, syncs each autoscaler once a period and when it is edited.

`podscaler.controller.assembly` makes one, `podscaler controller` and `podscaler up` run it. Rules:

1. A new autoscaler and one with a new generation are synced at once; other changes wait for the next period, which an
   immediate sync neither shifts nor resets. A period counts from when the sync before was due. The autoscalers that
   exist at the start are synced one after the other, in the order of their names and at least 50 a second, so that they
   are not all due at the same time in each period.
2. A failure of the API server does not end the controller. A part that fails by a bug is logged and started again.

How a key is synced is in `podscaler.controller.worker`. A further background task: in `podscaler.controller.assembly`.

Source: docs/spec/controller.md 1 (State) to 3 (Processing one key).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.controller.coexistence.standby import WriteGate
from podscaler.controller.informers.controller_informers import ControllerInformers
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.telemetry.current_sync import SyncHandler
from podscaler.controller.telemetry.server_health import ServerHealth
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.controller.work_assignment import FLUSH_TIMEOUT_S, STOP_TIMEOUT_S, WorkAssignment
from podscaler.controller.worker import KeyProcessor

log = logging.getLogger(__name__)

Service = Callable[[], Coroutine[Any, Any, None]]
"""A background task: runs until it is cancelled; the controller starts it again where it fails."""


@dataclass(frozen=True, slots=True)
class ControllerServices:
    """The background tasks that run beside the syncs, and what is called at the end.

    Attributes:
        always: tasks that run from the start, by their names in the log and in the metric of panics.
        working: tasks that run from when everything is listed until the end.
        flush: writes the events that wait.
        close: writes the histories that wait.
        summarize: logs a summary at the end; None if there is none.
    """

    always: Mapping[str, Service]
    working: Mapping[str, Service]
    flush: Service
    close: Service
    summarize: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """The parts from which /metrics and /readyz are served.

    Attributes:
        telemetry: the controller's Prometheus metrics.
        health: whether the API server responds and accepts the credentials.
        gate: whether another controller blocks all writes.
    """

    telemetry: Telemetry
    health: ServerHealth
    gate: WriteGate


class Controller:
    """One controller, from `run` until it is cancelled, by the module's rules.

    Args:
        informers: the autoscalers and the pods.
        assignment: decides which autoscalers this process syncs.
        processor: syncs the autoscaler of a key.
        services: the background tasks.
        status: metrics and health.
        clock: limits the waits at the end.
    """

    def __init__(
        self,
        informers: ControllerInformers,
        assignment: WorkAssignment,
        *,
        processor: KeyProcessor,
        services: ControllerServices,
        status: ControllerStatus,
        clock: Clock,
    ) -> None:
        self.informers = informers
        self.assignment = assignment
        self.processor = processor
        self._services = services
        self.telemetry = status.telemetry
        self.health = status.health
        self._gate = status.gate
        self._clock = clock
        self._stopping = asyncio.Event()
        informers.autoscalers.subscribe(self)

    def unready(self) -> list[str]:
        """Why the controller does not work yet, one reason an item; empty when it works."""
        return [*self.health.unready(), *self.informers.unready()] or self._gate.unready()

    async def run(self) -> None:
        """Work until `stop` is called, or until cancelled."""
        background = self._start(self._services.always)
        try:
            await timeouts.first_of(self._wait_synced(), self._stopping.wait())
            if not self._stopping.is_set():
                self.assignment.open()
                background += self._start(self._services.working)
                await self._stopping.wait()
                await timeouts.first_of(self.assignment.syncs.wait_ended(), self._clock.sleep(STOP_TIMEOUT_S))
            await timeouts.first_of(self._services.flush(), self._clock.sleep(FLUSH_TIMEOUT_S))
        finally:  # after a cancellation waiting events are dropped; histories are written in any case
            await self.assignment.close()
            await timeouts.end(*background)
            await timeouts.first_of(self._services.close(), self._clock.sleep(FLUSH_TIMEOUT_S))
            if self._services.summarize is not None:
                self._services.summarize()

    def wrap(self, wrapper: Callable[[SyncHandler], SyncHandler]) -> None:
        """Have every sync pass through `wrapper(reconciler)`; call it before `run`."""
        self.processor.wrap(wrapper)

    async def wait_stopped(self) -> None:
        """Wait until `stop` is called."""
        await self._stopping.wait()

    def stop(self) -> None:
        """Make `run` end once the running syncs have ended."""
        self._stopping.set()
        self.assignment.shut_down()

    def added(self, autoscaler: Autoscaler) -> None:
        """The watch has a new autoscaler: sync it at once."""
        self.assignment.register(autoscaler.key)

    def updated(self, old: Autoscaler, new: Autoscaler) -> None:
        """The watch has a newer version: sync it at once if it was edited, else within a period."""
        if self.informers.autoscalers.is_urgent(old, new):
            self.assignment.register(new.key)
        else:
            self.assignment.queue_within_period(new.key)

    def deleted(self, autoscaler: Autoscaler) -> None:
        """The watch reports that an autoscaler was deleted."""
        self.assignment.unregister(autoscaler.key, autoscaler.metadata.uid)

    async def wait_listed(self) -> None:
        """Wait until all autoscalers and pods are listed."""
        await self.informers.wait_synced()

    async def _wait_synced(self) -> None:
        await self.wait_listed()
        log.info("following %d autoscalers and %d pods", len(self.informers.autoscalers), len(self.informers.pods))

    def _start(self, services: Mapping[str, Service]) -> list[asyncio.Task[None]]:
        loop = asyncio.get_running_loop()
        return [loop.create_task(self._keep_running(name, service), name=name) for name, service in services.items()]

    async def _keep_running(self, name: str, service: Service) -> None:
        count = partial(self.telemetry.panicked, name.removeprefix("the "))
        await supervision.keep_running(name, service, self._clock, on_failure=count)
