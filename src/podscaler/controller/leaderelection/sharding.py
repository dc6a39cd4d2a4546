"""Several controllers work, each on its shards: `--shards`.

`podscaler controller` runs a Sharding beside its Controller. Each process is a member, by a Lease of its own, and has
an LeaseHolder for each shard, which it enters and leaves as `assignment` says. Rules:

1. A member works on a shard only while it holds both the shard's Lease and its own.
2. A process that comes while somebody splits the work in another way (`Election.others`) waits. Otherwise it says that
   it is there, and looks again: if somebody does so now, it takes itself back and comes again later.
3. A process becomes a member once it knows of every holder of a Lease whether it lives, which takes a retry period, or
   the lease duration where one was killed: all members count the same ones.
4. A member whose own Lease is lost gives up everything and begins anew.
5. A failure that is a bug, in one shard or in sharing them, ends all: every shard and the own Lease are given back,
   then `run` raises.

Source: docs/decisions/sharding.md.
"""

import asyncio
import logging
import random
from functools import partial

from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import lease, shard_assignment, timeouts
from podscaler.controller.leaderelection.election import JITTER_FACTOR, Election
from podscaler.controller.leaderelection.elector import Elector
from podscaler.controller.leaderelection.lease_events import LeaseEventRecorder
from podscaler.controller.leaderelection.lease_holder import LeaseHolder
from podscaler.controller.leaderelection.lease_informer import LeaseInformer
from podscaler.controller.leaderelection.shard_ownership import LeaderCallbacks
from podscaler.controller.leaderelection.telemetry import ElectionMetrics, ShardMetrics
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

LOOKS_IN_RETRY_PERIOD = 4
"""A lease that expires is noticed so much sooner than by a retry period."""


class Sharding:
    """See the module's rules; a ShardOwnership.

    Args:
        client: past every fence.
        election: how many shards, and who we are.
        clock: this machine's.
        rng: for the spread of tries.
        telemetry: the metrics of leases.
        figures: the metrics of shards.
    """

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        clock: Clock,
        rng: random.Random,
        telemetry: ElectionMetrics,
        figures: ShardMetrics,
    ) -> None:
        self._client = client
        self._election = election
        self._timing = election.timing
        self._clock = clock
        self._rng = rng
        self._figures = figures
        self._telemetry = telemetry
        self._leases = LeaseInformer(client, namespace=election.namespace, election=election.name, clock=clock, rng=rng)
        self._events = LeaseEventRecorder(client, clock)
        self._member = self._elector(election.member_name)
        self._holders = [self._holder(shard) for shard in range(election.shards)]
        self._kept_until_s: dict[int, float] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._began_s = 0.0
        self._other_holders = ""
        self._failures: list[BaseException] = []
        self._stopping = asyncio.Event()

    def find(self, key: Key) -> WriteLease | None:
        """As ShardOwnership."""
        return self._holders[shard_assignment.shard_of(key, self._election.shards)].write_lease

    def weakest(self) -> WriteLease | None:
        """The write lease for what is written beside syncs: that which ends first; None where nothing may be written."""
        held = [write_lease for office in self._holders if (write_lease := office.held_write_lease) is not None]
        return min(held, key=WriteLease.remaining_s, default=None)

    def fault(self) -> str:
        """What /healthz has to say; empty where all is well."""
        if self._failures:
            return f"sharing the work failed: {self._failures[0]!r}"
        faults = (office.fault(self._timing.lease_duration_s) for office in self._holders)
        return next(filter(None, faults), "")

    def stop(self) -> None:
        """Make `run` end, after a hand-over in good order."""
        self._stopping.set()

    async def run(self, callbacks: LeaderCallbacks) -> None:
        """Be a member until `stop` is called or until cancelled. Raises what fails, which is a bug (rule 5)."""
        watching = supervision.keep_running("the watch of leases", self._leases.run, self._clock)
        following = asyncio.get_running_loop().create_task(watching)
        try:
            await timeouts.first_of(callbacks.wait_listed(), self._stopping.wait())
            while not self._stopping.is_set():
                if await self._join():
                    await self._take_part(callbacks)
                delay_s = self._timing.retry_period_s * (1 + self._rng.random() * JITTER_FACTOR)
                await timeouts.first_of(self._clock.sleep(delay_s), self._stopping.wait())
        finally:
            await timeouts.end(following, *self._serving.values())
            await self._events.finish()

    async def _join(self) -> bool:
        """Become a member (rules 2 and 3); whether that was possible."""
        if await self._finds_others():
            return False
        while not self._leases.is_certain(self._clock.monotonic_s()):
            await timeouts.first_of(self._next_look(), self._stopping.wait())
            if self._stopping.is_set():
                return False
        if not await self._member.attempt():
            return False
        if await self._finds_others():
            await self._member.release()
            return False
        return True

    async def _finds_others(self) -> bool:
        """Whether somebody splits the work in another way, or that is not known."""
        looking = self._election.others(self._leases, self._clock)
        try:
            others = ", ".join(await timeouts.within(self._clock, self._timing.attempt_s, looking))
        except StatusError as error:
            others = f"unknown ({error})"
        if others != self._other_holders:
            self._other_holders = others
            log.warning("controllers with other --shards are at work: %s", others or "none any more")
        return bool(others)

    async def _take_part(self, callbacks: LeaderCallbacks) -> None:
        """Hold what the plan says, until our own Lease is lost or we are told to stop."""
        log.info("sharing %d shards as %s", self._election.shards, self._election.identity)
        self._began_s = self._clock.monotonic_s()
        renewing = asyncio.get_running_loop().create_task(self._member.hold())
        try:
            await self._follow_plans(callbacks, renewing)
            for shard in self._serving:
                self._holders[shard].leave()
            await asyncio.gather(*self._serving.values(), return_exceptions=True)
            if not renewing.done():
                await timeouts.end(renewing)
                await self._resign()
        finally:
            await timeouts.end(renewing)
        if self._failures:
            raise self._failures[0]

    async def _follow_plans(self, callbacks: LeaderCallbacks, renewing: "asyncio.Task[None]") -> None:
        """Return when our own Lease is lost, when we are told to stop, or when something failed (rule 5)."""
        try:
            while not (renewing.done() or self._stopping.is_set() or self._failures):
                await self._follow_plan(callbacks)
                await timeouts.first_of(self._next_look(), renewing, self._stopping.wait())
        except Exception as error:
            log.exception("sharing the work ends by a failure that is a bug")
            self._failures.append(error)

    async def _follow_plan(self, callbacks: LeaderCallbacks) -> None:
        me, now_s = self._election.identity, self._clock.monotonic_s()
        own = {shard: shard_assignment.NOBODY if self._holders[shard].is_leaving else me for shard in self._serving}
        view = shard_assignment.view(self._leases, self._election, own, now_s=now_s, began_s=self._began_s)
        view = view._replace(kept=frozenset(shard for shard, until_s in self._kept_until_s.items() if until_s > now_s))
        held = sum(office.is_held for office in self._holders)
        self._figures.show(held=held, free=len(view.free_s), members=len(view.members))
        for shard in shard_assignment.surplus(view, me):
            log.info("shard %d is given up to others", shard)
            self._holders[shard].leave()
        kept_until_s = now_s + self._timing.lease_duration_s
        patience_s = self._timing.retry_period_s
        self._kept_until_s |= dict.fromkeys(shard_assignment.abandoned(view, patience_s), kept_until_s)
        for shard in shard_assignment.claims(view, me, patience_s):
            self._claim(shard, callbacks)
        if min(view.members) == me:
            await self._delete_expired_member(now_s)

    def _claim(self, shard: int, callbacks: LeaderCallbacks) -> None:
        office, seen = self._holders[shard], self._leases.find(self._election.shard_name(shard))
        if seen is not None:
            office.elector.observe(seen.lease.record, seen.at_s)
        task = asyncio.get_running_loop().create_task(office.serve(callbacks))
        self._serving[shard] = task
        task.add_done_callback(partial(self._served, shard))

    def _served(self, shard: int, task: "asyncio.Task[None]") -> None:
        del self._serving[shard]
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self._failures.append(failure)

    async def _next_look(self) -> None:
        every_s = self._timing.retry_period_s / LOOKS_IN_RETRY_PERIOD
        await timeouts.first_of(self._clock.sleep(every_s), self._leases.news())

    async def _resign(self) -> None:
        """Be no member any more; where the Lease cannot be removed, it says that nobody holds it."""
        if await self._member.release():
            try:
                await timeouts.within(self._clock, self._timing.attempt_s, self._member.lock.delete())
            except StatusError as error:
                log.info("the lease %s stays: %s", self._member.lock, error)

    async def _delete_expired_member(self, now_s: float) -> None:
        """Remove one Lease of a member that is gone since long."""
        for seen in shard_assignment.expired_members(self._leases, self._election, now_s=now_s)[:1]:
            meta = seen.lease.metadata
            where = lease.path(meta.namespace, meta.name)
            removal = self._client.delete(where, subject=f"{lease.RESOURCE} {meta.name}", body=lease.only_if(meta))
            try:
                await timeouts.within(self._clock, self._timing.attempt_s, removal)
            except StatusError as error:
                log.info("the lease %s of a member that is gone stays: %s", meta.name, error)
            self._leases.forget(meta.name)

    def _elector(self, name: str, within: WriteLease | None = None) -> Elector:
        election, lock = self._election, self._election.lock(self._client, name)
        identity, telemetry = election.identity, self._telemetry
        return Elector(lock, self._timing, identity=identity, clock=self._clock, telemetry=telemetry, within=within)

    def _holder(self, shard: int) -> LeaseHolder:
        elector = self._elector(self._election.shard_name(shard), self._member.write_lease)
        belongs = partial(_belongs, shard, self._election.shards)
        return LeaseHolder(elector, belongs, clock=self._clock, events=self._events, telemetry=self._telemetry)


def _belongs(shard: int, shards: int, key: Key) -> bool:
    return shard_assignment.shard_of(key, shards) == shard
