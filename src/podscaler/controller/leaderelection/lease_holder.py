"""A lease, and the part of the work that its holder does.

An election has one LeaseHolder for everything, a sharded one has one for each shard. What it does in order, so that no
two processes ever write about one autoscaler:

* Having got the lease, it waits SETTLE_S, in which watches tell what the one before wrote last, and takes the work up.
* Giving it back, it first stops giving out work, then waits for syncs on their way, has events and histories written,
  and only then releases the lease.
* Having lost it, it stops and forgets; its write lease has ended before anybody else could get the lease.
* An exception on this path is a bug (what the world causes is handled where it arises): leading ends. The part is
  dropped, the lease released once nothing of the part runs any more, `fault` says so, and `serve` raises, so that the
  process ends.

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
MAX_UNRENEWED_S = 20.0
"""How much longer than its duration a lease that we hold may stand still before the process counts as ill."""


class LeaseHolder:
    """See the module.

    Args:
        elector: of the lease.
        belongs: what belongs to it.
        clock: for waits.
        events: tells of changes, by events.
        telemetry: tells of changes, by metrics.
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
        self._leaving = asyncio.Event()
        self._failure = ""
        telemetry.status(elector.lock.name, is_holder=False)

    @property
    def is_leaving(self) -> bool:
        """Whether the lease is about to be given back."""
        return self._leaving.is_set()

    @property
    def write_lease(self) -> WriteLease | None:
        """By which its work is done; None where it is not ours."""
        return self.elector.write_lease if self.is_working else None

    @property
    def held_write_lease(self) -> WriteLease | None:
        """As long as the lease is held: what is being given back is still written."""
        return self.elector.write_lease if self.is_held else None

    def leave(self) -> None:
        """Give the lease back soon."""
        self._leaving.set()

    def fault(self, lease_duration_s: float) -> str:
        """What is wrong with the process; empty where nothing is.

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
        """Try to get the lease once; having got it, do the work until it is lost or given back.

        Args:
            callbacks: what is told.
            prepare: what to do between getting the lease and taking up the work.

        Raises whatever fails in the work or in renewing, which is a bug; the lease is given back by then.
        """
        self._leaving.clear()
        if not await self.elector.attempt():
            return
        self._got()
        holding = asyncio.get_running_loop().create_task(self.elector.hold())
        try:
            await timeouts.first_of(self._begin(callbacks, prepare), holding, self._leaving.wait())
            if not holding.done():
                await timeouts.first_of(holding, self._leaving.wait())
            await self._end(callbacks, holding)
        except Exception as error:
            await self._fail(callbacks, holding, error)
            raise
        finally:
            self.is_working = self.is_held = False
            self.elector.write_lease.end()
            await timeouts.end(holding)
            self._telemetry.status(self.elector.lock.name, is_holder=False)

    async def _begin(self, callbacks: LeaderCallbacks, prepare: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        await self._clock.sleep(SETTLE_S)
        if prepare is not None:
            await prepare()
        self.is_working = True
        callbacks.on_started_leading(self.belongs)

    async def _end(self, callbacks: LeaderCallbacks, holding: "asyncio.Task[None]") -> None:
        was_working, self.is_working = self.is_working, False
        if was_working and not holding.done():
            await self._hand_over(callbacks, holding)
        self.is_held = False  # what is written about other parts does not wait for this lease
        lock = self.elector.lock
        if holding.done():
            log.warning("lease %s is lost", lock)
            await callbacks.on_lost_lease(self.belongs)
        else:
            await timeouts.end(holding)
            await self.elector.release()
            log.info("lease %s is released", lock)
        self._events.say(lock, self.elector.identity, "stopped leading")

    async def _hand_over(self, callbacks: LeaderCallbacks, holding: "asyncio.Task[None]") -> None:
        """Hand the part over; what the world prevents is lost, as where the lease is."""
        try:
            await timeouts.first_of(callbacks.on_stopped_leading(self.belongs), holding)
        except PodscalerError as error:
            log.warning("the work by the lease %s is not handed over in order: %s", self.elector.lock, error)
            await callbacks.on_lost_lease(self.belongs)

    async def _fail(self, callbacks: LeaderCallbacks, holding: "asyncio.Task[None]", error: Exception) -> None:
        """End leading after a failure that is a bug. Raises what `drop` raises: the lease then expires by itself."""
        lock = self.elector.lock
        self.is_working = self.is_held = False
        self._failure = repr(error)
        log.error("leading by the lease %s ends by a failure that is a bug", lock, exc_info=error)
        await timeouts.end(holding)
        await callbacks.on_lost_lease(self.belongs)
        await self.elector.release()
        self._events.say(lock, self.elector.identity, "stopped leading")

    def _got(self) -> None:
        self.is_held = True
        lock = self.elector.lock
        log.info("successfully acquired lease %s", lock)
        self._telemetry.status(lock.name, is_holder=True)
        self._events.say(lock, self.elector.identity, "became leader")
