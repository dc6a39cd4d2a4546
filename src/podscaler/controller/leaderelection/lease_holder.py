"""Holds one lease and calls the holder's callbacks, in an order that never lets two processes write one autoscaler.

A single leader (`leadership`) has one LeaseHolder, a sharded controller (`sharding`) has one for each shard. Order:

* After it acquired the lease, it waits SETTLE_S, in which watches deliver the last writes of the holder before, and
  calls `on_started_leading`.
* To release the lease, it first stops new syncs, then calls `on_stopped_leading`, which waits for running syncs and
  writes events and histories, and releases the lease last.
* After it lost the lease, it calls `on_lost_lease`; its write lease (the local deadline until which it may write) ended
  before another process could acquire the lease.
* An exception here is a bug (failures of requests are handled where they arise): leading ends. `on_lost_lease` is
  called, the lease is released (unless `on_lost_lease` raises, too: then it expires), `fault` has the reason, and
  `serve` raises, so that the process ends.

Differs from client-go: a panic in OnStartedLeading ends the process without a release, and others wait for the lease
duration.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.elector import Elector
from podscaler.controller.leaderelection.lease_events import LeaseEventRecorder
from podscaler.controller.leaderelection.shard_ownership import KeyFilter, LeaderCallbacks
from podscaler.controller.leaderelection.telemetry import ElectionMetrics
from podscaler.controller.leaderelection.write_lease import WriteLease

log = logging.getLogger(__name__)

SETTLE_S = 0.25
"""The wait after the acquisition, in which watches deliver the last writes of the holder before."""
MAX_UNRENEWED_S = 20.0
"""A lease that is held and was not renewed for its duration and this much longer makes /healthz fail."""


class LeaseHolder:
    """Holds one lease, and calls the callbacks of its owner when it is acquired and lost.

    Args:
        elector: acquires and renews the lease.
        belongs: whether an autoscaler is synced by this lease.
        clock: for waits and deadlines.
        events: records changes of the holder.
        telemetry: counts which leases are held.

    Attributes:
        is_held: whether this process holds the lease, also while it settles or hands over.
        is_working: whether autoscalers are synced by this lease: from `on_started_leading` until the lease is resigned.
    """

    def __init__(
        self,
        elector: Elector,
        belongs: KeyFilter,
        *,
        clock: Clock,
        events: LeaseEventRecorder,
        telemetry: ElectionMetrics,
    ) -> None:
        self.elector = elector
        self.belongs = belongs
        self.is_held = False
        self.is_working = False
        self._clock = clock
        self._events = events
        self._telemetry = telemetry
        self._resigning = asyncio.Event()
        self._failure = ""
        telemetry.status(elector.lock.name, is_holder=False)

    @property
    def is_resigning(self) -> bool:
        """Whether the lease is about to be released."""
        return self._resigning.is_set()

    @property
    def write_lease(self) -> WriteLease | None:
        """The write lease of syncs; None if nothing is synced by this lease."""
        return self.elector.write_lease if self.is_working else None

    @property
    def held_write_lease(self) -> WriteLease | None:
        """The write lease while the lease is held, as syncs that end before its release still write; else None."""
        return self.elector.write_lease if self.is_held else None

    def resign(self) -> None:
        """Release the lease soon."""
        self._resigning.set()

    def fault(self, lease_duration_s: float) -> str:
        """The reason why /healthz fails; empty if it does not.

        Source: client-go's Check, with the 20 s that kube-controller-manager allows.
        """
        if self._failure:
            return f"leading by the lease {self.elector.lock.name} failed: {self._failure}"
        if self.is_held and self.elector.unrenewed_s > lease_duration_s + MAX_UNRENEWED_S:
            return f"failed election to renew leadership on lease {self.elector.lock.name}"
        return ""

    async def serve(
        self, callbacks: LeaderCallbacks, *, prepare: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        """Try to acquire the lease once; if that succeeds, hold it until it is lost or `resign` is called.

        Args:
            callbacks: start and stop the syncs.
            prepare: awaited between the acquisition and `on_started_leading`.

        Raises the exception of a bug in the callbacks or in renewing; the lease is released by then.
        """
        self._resigning.clear()
        if not await self.elector.attempt():
            return
        self._on_acquired()
        holding = asyncio.get_running_loop().create_task(self.elector.hold())
        try:
            await timeouts.first_of(self._start_leading(callbacks, prepare), holding, self._resigning.wait())
            if not holding.done():
                await timeouts.first_of(holding, self._resigning.wait())
            await self._stop_leading(callbacks, holding)
        except Exception as error:
            await self._end_after_bug(callbacks, holding, error)
            raise
        finally:
            self.is_working = self.is_held = False
            self.elector.write_lease.end()
            await timeouts.end(holding)
            self._telemetry.status(self.elector.lock.name, is_holder=False)

    async def _start_leading(
        self, callbacks: LeaderCallbacks, prepare: Callable[[], Coroutine[Any, Any, None]] | None
    ) -> None:
        """Start leading after the lease was acquired; `prepare`, where given, is awaited before."""
        await self._clock.sleep(SETTLE_S)
        if prepare is not None:
            await prepare()
        self.is_working = True
        callbacks.on_started_leading(self.belongs)

    async def _stop_leading(self, callbacks: LeaderCallbacks, holding: "asyncio.Task[None]") -> None:
        """Stop leading: hand over and release the lease; or report its loss, if `holding`, which renews it, ended."""
        was_working, self.is_working = self.is_working, False
        if was_working and not holding.done():
            await self._hand_over(callbacks, holding)
        self.is_held = False  # writes about other shards do not wait for this lease
        lock = self.elector.lock
        if holding.done():
            log.warning("lease %s is lost", lock)
            await callbacks.on_lost_lease(self.belongs)
        else:
            await timeouts.end(holding)
            await self.elector.release()
            log.info("lease %s is released", lock)
        self._events.record(lock, self.elector.identity, "stopped leading")

    async def _hand_over(self, callbacks: LeaderCallbacks, holding: "asyncio.Task[None]") -> None:
        """Call `on_stopped_leading`; where a request fails, as where the lease is lost, `on_lost_lease`."""
        try:
            await timeouts.first_of(callbacks.on_stopped_leading(self.belongs), holding)
        except PodscalerError as error:
            log.warning("the autoscalers of the lease %s are not handed over in order: %s", self.elector.lock, error)
            await callbacks.on_lost_lease(self.belongs)

    async def _end_after_bug(self, callbacks: LeaderCallbacks, holding: "asyncio.Task[None]", error: Exception) -> None:
        """End leading after a bug. Where `on_lost_lease` raises too, the lease expires by itself."""
        lock = self.elector.lock
        self.is_working = self.is_held = False
        self._failure = repr(error)
        log.error("leading by the lease %s ends by a failure that is a bug", lock, exc_info=error)
        await timeouts.end(holding)
        await callbacks.on_lost_lease(self.belongs)
        await self.elector.release()
        self._events.record(lock, self.elector.identity, "stopped leading")

    def _on_acquired(self) -> None:
        """Log and count that the lease was acquired, and record the event."""
        self.is_held = True
        lock = self.elector.lock
        log.info("successfully acquired lease %s", lock)
        self._telemetry.status(lock.name, is_holder=True)
        self._events.record(lock, self.elector.identity, "became leader")
