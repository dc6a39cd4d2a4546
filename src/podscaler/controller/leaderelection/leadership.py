"""One controller works, others stand by: `--leader-elect`.

`podscaler controller` runs a Leadership beside its Controller. Those that stand by follow everything, so that taking
over needs no list; a watch of the Lease tells them at once when it is released, and the retry period goes on beside it.

Differs from kube-controller-manager: losing the lease does not end the process. The work is dropped, everything that
was remembered is forgotten (the next leader reads the histories), and it stands by like the others. A bug that ends
leading does end the process (`podscaler.controller.leaderelection.lease_holder`).

Source: client-go's leader election; docs/high-availability.md.
"""

import asyncio
import logging
import random

from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
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


class Leadership:
    """See the module; a ShardOwnership.

    Args:
        client: past every fence.
        election: what is elected, and who we are.
        clock: this machine's.
        rng: for the spread of tries.
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
        """As ShardOwnership."""
        del key
        return self._holder.write_lease

    def weakest(self) -> WriteLease | None:
        """The write lease for what is written beside syncs; None where nothing may be written."""
        return self._holder.held_write_lease

    def fault(self) -> str:
        """What /healthz has to say; empty where all is well."""
        return self._holder.fault(self._timing.lease_duration_s)

    def stop(self) -> None:
        """Make `run` end, after a hand-over in good order if we lead."""
        self._stopping.set()
        self._holder.leave()

    async def run(self, callbacks: LeaderCallbacks) -> None:
        """Stand by, lead, and stand by again, until `stop` is called or until cancelled.

        Raises what fails in leading, which is a bug; the lease is given back by then.
        """
        watching = supervision.keep_running("the watch of leases", self._leases.run, self._clock)
        following = asyncio.get_running_loop().create_task(watching)
        try:
            await timeouts.first_of(callbacks.wait_listed(), self._stopping.wait())
            log.info("attempting to acquire leader lease %s...", self._holder.elector.lock)
            while not self._stopping.is_set():
                self._learned()
                await self._holder.serve(callbacks, prepare=self._wait_alone)
                await timeouts.first_of(self._next_try(), self._stopping.wait())
        finally:
            await timeouts.end(following)
            await self._events.finish()

    async def _wait_alone(self) -> None:
        """Return once no process is at work that shares the work in another way."""
        while True:
            try:
                others = await timeouts.within(
                    self._clock, self._timing.attempt_s, self._election.others(self._leases, self._clock)
                )
            except StatusError as error:
                others = [f"unknown ({error})"]
            text = ", ".join(others)
            if text != self._other_holders:
                self._other_holders = text
                log.warning("controllers with other --shards are at work: %s", text or "none any more")
            if not others:
                return
            await self._clock.sleep(self._timing.retry_period_s)

    async def _next_try(self) -> None:
        """Wait for the jittered retry period, or until the lease is seen to be free."""
        spread = self._rng.random()
        delay_s = self._timing.retry_period_s * (1 + spread * JITTER_FACTOR)
        expires_in_s = self._learned().expires_in_s
        if expires_in_s > 0:
            delay_s = min(delay_s, expires_in_s + spread * self._timing.retry_period_s / 10)
        await timeouts.first_of(self._clock.sleep(delay_s), self._wait_released())

    async def _wait_released(self) -> None:
        while True:
            await self._leases.news()
            if self._leases.find(self._election.name) is not None and not self._learned().holder:
                return

    def _learned(self) -> Elector:
        """The elector, knowing what the roster knows."""
        elector, seen = self._holder.elector, self._leases.find(self._election.name)
        if seen is not None and not elector.is_leader:
            elector.observe(seen.lease.record, seen.at_s)
        return elector
