"""Runs leader election with one lease: one controller works, the others are on standby (`--leader-elect`).

`podscaler controller` runs a Leadership beside its Controller. A standby controller watches everything, so that it
needs no list when it takes over; it sees a release in a watch of the Lease at once, and also tries once a retry period.

Differs from kube-controller-manager: losing the lease does not end the process. Its syncs are cancelled, the state of
all autoscalers is dropped (the next leader reads the kept histories), and it is on standby again. A bug that ends
leading does end the process (`podscaler.controller.leaderelection.lease_holder`).

Source: client-go's leader election; docs/high-availability.md.
"""

import asyncio
import logging
import random

from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.election import JITTER_FACTOR, Election
from podscaler.controller.leaderelection.elector import Elector
from podscaler.controller.leaderelection.lease_events import LeaseEventRecorder
from podscaler.controller.leaderelection.lease_holder import LeaseHolder
from podscaler.controller.leaderelection.lease_informer import LeaseInformer
from podscaler.controller.leaderelection.shard_ownership import LeaderCallbacks, every_key
from podscaler.controller.leaderelection.telemetry import ElectionMetrics
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

EXPIRY_JITTER_RATIO = 0.1
"""Up to this part of a retry period, at random, a candidate waits after the lease has expired."""


class Leadership:
    """Leader election with a single lease; a ShardOwnership of all autoscalers.

    Args:
        client: a client whose writes need no lease.
        election: the parameters.
        telemetry: the metrics.
    """

    def __init__(
        self, client: Client, election: Election, *, clock: Clock, rng: random.Random, telemetry: ElectionMetrics
    ) -> None:
        self._election = election
        self._timing = election.timing
        self._clock = clock
        self._rng = rng
        self._leases = LeaseInformer(client, namespace=election.namespace, election=election.name, clock=clock, rng=rng)
        self._events = LeaseEventRecorder(client, clock)
        lock = election.lock(client, election.name)
        elector = Elector(lock, self._timing, identity=election.identity, clock=clock, telemetry=telemetry)
        self._holder = LeaseHolder(elector, every_key, clock=clock, events=self._events, telemetry=telemetry)
        self._other_holders = ""
        self._stopping = asyncio.Event()

    def find(self, key: Key) -> WriteLease | None:
        del key
        return self._holder.write_lease

    def weakest(self) -> WriteLease | None:
        """The write lease for writes outside of syncs; None if nothing may be written."""
        return self._holder.held_write_lease

    def fault(self) -> str:
        """The reason why /healthz fails; empty if it does not."""
        return self._holder.fault(self._timing.lease_duration_s)

    def stop(self) -> None:
        """Make `run` end; a leader hands over and releases the lease first."""
        self._stopping.set()
        self._holder.resign()

    async def run(self, callbacks: LeaderCallbacks) -> None:
        """Acquire the lease and lead, again and again, until `stop` is called or until cancelled.

        Raises the exception of a bug in leading; the lease is released by then.
        """
        watching = supervision.keep_running("the watch of leases", self._leases.run, self._clock)
        following = asyncio.get_running_loop().create_task(watching)
        try:
            await timeouts.first_of(callbacks.wait_listed(), self._stopping.wait())
            log.info("attempting to acquire leader lease %s...", self._holder.elector.lock)
            while not self._stopping.is_set():
                self._observe_lease()
                await self._holder.serve(callbacks, prepare=self._wait_no_conflict)
                await timeouts.first_of(self._wait_for_next_try(), self._stopping.wait())
        finally:
            await timeouts.end(following)
            await self._events.finish()

    async def _wait_no_conflict(self) -> None:
        """Return once no holder with another number of shards is live."""
        while True:
            conflict = await self._election.find_conflict(self._leases, self._clock)
            if conflict != self._other_holders:
                self._other_holders = conflict
                log.warning("controllers with other --shards are at work: %s", conflict or "none any more")
            if not conflict:
                return
            await self._clock.sleep(self._timing.retry_period_s)

    async def _wait_for_next_try(self) -> None:
        """Wait for the jittered retry period, or until the lease is observed to be free."""
        spread = self._rng.random()
        delay_s = self._timing.retry_period_s * (1 + spread * JITTER_FACTOR)
        expires_in_s = self._observe_lease().expires_in_s
        if expires_in_s > 0:
            # soon after the lease expires, but not at the same instant as other candidates
            delay_s = min(delay_s, expires_in_s + spread * self._timing.retry_period_s * EXPIRY_JITTER_RATIO)
        await timeouts.first_of(self._clock.sleep(delay_s), self._wait_released())

    async def _wait_released(self) -> None:
        """Wait until the watch delivers a Lease without a holder."""
        while True:
            await self._leases.wait_changed()
            if self._leases.find(self._election.name) is not None and not self._observe_lease().holder:
                return

    def _observe_lease(self) -> Elector:
        """The elector, after it took the record that the lease informer observed last."""
        elector, observed_lease = self._holder.elector, self._leases.find(self._election.name)
        if observed_lease is not None and not elector.is_leader:
            elector.observe(observed_lease.lease.record, observed_lease.first_observed_s)
        return elector
