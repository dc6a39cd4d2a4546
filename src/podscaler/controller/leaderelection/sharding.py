"""Runs leader election with shards: several controllers work, each on the shards that it holds (`--shards`).

`podscaler controller` runs a Sharding beside its Controller. Each process is a member by a Lease of its own, and has a
LeaseHolder for each shard, which acquires and releases as `shard_assignment` says. Rules:

1. A member works on a shard only while it holds both the shard's Lease and its own.
2. A process waits while a holder with another number of shards is live (`Election.conflicting_holders`). Otherwise it
   acquires its own Lease and checks again: if there is one now, it releases its Lease and tries again later.
3. A process becomes a member once it is certain of every holder whether it is live, which takes a retry period, or the
   lease duration where one was killed: so all members count the same ones.
4. A member whose own Lease is lost releases all shards and begins again.
5. A failure that is a bug, in one shard or in sharing them, ends all: every shard and the own Lease are released, then
   `run` raises.

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

STEPS_IN_RETRY_PERIOD = 4
"""How often the assignment is checked in a retry period, so that an expired lease is found sooner."""


class Sharding:
    """Leader election with a lease for each shard, by the module's rules; a ShardOwnership.

    Args:
        client: a client whose writes need no lease.
        election: the parameters.
        telemetry: the metrics of leases.
        shard_metrics: the metrics of shards.
    """

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        clock: Clock,
        rng: random.Random,
        telemetry: ElectionMetrics,
        shard_metrics: ShardMetrics,
    ) -> None:
        self._client = client
        self._election = election
        self._timing = election.timing
        self._clock = clock
        self._rng = rng
        self._shard_metrics = shard_metrics
        self._telemetry = telemetry
        self._leases = LeaseInformer(client, namespace=election.namespace, election=election.name, clock=clock, rng=rng)
        self._events = LeaseEventRecorder(client, clock)
        self._member_elector = self._elector(election.member_name)
        self._holders = [self._holder(shard) for shard in range(election.shards)]
        self._kept_until_s: dict[int, float] = {}
        self._expired_s: dict[str, float] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._began_s = 0.0
        self._other_holders = ""
        self._failures: list[BaseException] = []
        self._stopping = asyncio.Event()

    def find(self, key: Key) -> WriteLease | None:
        return self._holders[shard_assignment.shard_of(key, self._election.shards)].write_lease

    def weakest(self) -> WriteLease | None:
        """The write lease for writes outside of syncs: the one that ends first; None if nothing may be written."""
        write_leases = [write_lease for holder in self._holders if (write_lease := holder.held_write_lease) is not None]
        return min(write_leases, key=WriteLease.remaining_s, default=None)

    def fault(self) -> str:
        """The reason why /healthz fails; empty if it does not."""
        if self._failures:
            return f"sharing the work failed: {self._failures[0]!r}"
        faults = (holder.fault(self._timing.lease_duration_s) for holder in self._holders)
        return next(filter(None, faults), "")

    def stop(self) -> None:
        """Make `run` end, after all shards were handed over and released."""
        self._stopping.set()

    async def run(self, callbacks: LeaderCallbacks) -> None:
        """Be a member until `stop` is called or until cancelled. Raises the exception of a bug (rule 5)."""
        watching = supervision.keep_running("the watch of leases", self._leases.run, self._clock)
        following = asyncio.get_running_loop().create_task(watching)
        try:
            await timeouts.first_of(callbacks.wait_listed(), self._stopping.wait())
            while not self._stopping.is_set():
                if await self._join():
                    await self._work_as_member(callbacks)
                delay_s = self._timing.retry_period_s * (1 + self._rng.random() * JITTER_FACTOR)
                await timeouts.first_of(self._clock.sleep(delay_s), self._stopping.wait())
        finally:
            await timeouts.end(following, *self._serving.values())
            await self._events.finish()

    async def _join(self) -> bool:
        """Try to become a member (rules 2 and 3); returns whether that succeeded."""
        if await self._has_conflicting_holders():
            return False
        while not self._leases.is_certain(self._clock.monotonic_s()):
            await timeouts.first_of(self._wait_changed(), self._stopping.wait())
            if self._stopping.is_set():
                return False
        if not await self._member_elector.attempt():
            return False
        if await self._has_conflicting_holders():
            await self._member_elector.release()
            return False
        return True

    async def _has_conflicting_holders(self) -> bool:
        """Whether a holder with another number of shards is live, or that cannot be read."""
        conflict = await self._election.find_conflict(self._leases, self._clock)
        if conflict != self._other_holders:
            self._other_holders = conflict
            log.warning("controllers with other --shards are at work: %s", conflict or "none any more")
        return bool(conflict)

    async def _work_as_member(self, callbacks: LeaderCallbacks) -> None:
        """Hold the assigned shards until our own Lease is lost or `stop` is called."""
        log.info("sharing %d shards as %s", self._election.shards, self._election.identity)
        self._began_s = self._clock.monotonic_s()
        renewing = asyncio.get_running_loop().create_task(self._member_elector.hold())
        try:
            await self._follow_assignment(callbacks, renewing)
            for shard in self._serving:
                self._holders[shard].resign()
            await asyncio.gather(*self._serving.values(), return_exceptions=True)
            if not renewing.done():
                await timeouts.end(renewing)
                await self._leave()
        finally:
            await timeouts.end(renewing)
        if self._failures:
            raise self._failures[0]

    async def _follow_assignment(self, callbacks: LeaderCallbacks, renewing: "asyncio.Task[None]") -> None:
        """Return when our own Lease is lost, `stop` is called, or something failed (rule 5)."""
        try:
            while not (renewing.done() or self._stopping.is_set() or self._failures):
                await self._apply_assignment(callbacks)
                await timeouts.first_of(self._wait_changed(), renewing, self._stopping.wait())
        except Exception as error:
            log.exception("sharing the work ends by a failure that is a bug")
            self._failures.append(error)

    async def _apply_assignment(self, callbacks: LeaderCallbacks) -> None:
        """Release surplus shards and try to acquire claimed ones, by the Leases as they are observed now."""
        identity, now_s = self._election.identity, self._clock.monotonic_s()
        own_shards = {
            shard: shard_assignment.NOBODY if self._holders[shard].is_resigning else identity for shard in self._serving
        }
        self._expired_s = shard_assignment.expiries(self._leases, self._election, self._expired_s, now_s=now_s)
        view = shard_assignment.view(
            self._leases, self._election, own_shards, self._expired_s, now_s=now_s, began_s=self._began_s
        )
        view = view._replace(
            kept_shards=frozenset(shard for shard, until_s in self._kept_until_s.items() if until_s > now_s)
        )
        held_count = sum(holder.is_held for holder in self._holders)
        self._shard_metrics.show(held_shards=held_count, free=len(view.free_s), members=len(view.members))
        for shard in shard_assignment.surplus(view, identity):
            log.info("shard %d is released to others", shard)
            self._holders[shard].resign()
        kept_until_s = now_s + self._timing.lease_duration_s
        patience_s = self._timing.retry_period_s
        self._kept_until_s |= dict.fromkeys(shard_assignment.abandoned(view, patience_s), kept_until_s)
        for shard in shard_assignment.claims(view, identity, patience_s):
            self._claim(shard, callbacks)
        if min(view.members) == identity:
            await self._delete_expired_member(now_s)

    def _claim(self, shard: int, callbacks: LeaderCallbacks) -> None:
        """Start a task that tries to acquire the shard's lease, and serves it while it is held."""
        holder, observed_lease = self._holders[shard], self._leases.find(self._election.shard_name(shard))
        if observed_lease is not None:
            holder.elector.observe(observed_lease.lease.record, observed_lease.first_observed_s)
        task = asyncio.get_running_loop().create_task(holder.serve(callbacks))
        self._serving[shard] = task
        task.add_done_callback(partial(self._on_serving_done, shard))

    def _on_serving_done(self, shard: int, task: "asyncio.Task[None]") -> None:
        """A callback of a shard's task: keep its exception, which ends the election (rule 5)."""
        del self._serving[shard]
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self._failures.append(failure)

    async def _wait_changed(self) -> None:
        step_s = self._timing.retry_period_s / STEPS_IN_RETRY_PERIOD
        await timeouts.first_of(self._clock.sleep(step_s), self._leases.wait_changed())

    async def _leave(self) -> None:
        """Release and delete our own Lease; one that cannot be deleted stays as released."""
        if await self._member_elector.release():
            try:
                await timeouts.within(self._clock, self._timing.attempt_s, self._member_elector.lock.delete())
            except StatusError as error:
                log.info("the lease %s is not deleted: %s", self._member_elector.lock, error)

    async def _delete_expired_member(self, now_s: float) -> None:
        """Delete one Lease of a member that expired long ago."""
        for observed_lease in shard_assignment.expired_members(self._leases, self._election, now_s=now_s)[:1]:
            meta = observed_lease.lease.metadata
            path = lease.path(meta.namespace, meta.name)
            removal = self._client.delete(
                path, subject=f"{lease.RESOURCE} {meta.name}", body=lease.delete_options_if_unchanged(meta)
            )
            try:
                await timeouts.within(self._clock, self._timing.attempt_s, removal)
            except StatusError as error:
                log.info("the lease %s of an expired member is not deleted: %s", meta.name, error)
            self._leases.forget(meta.name)

    def _elector(self, name: str, within: WriteLease | None = None) -> Elector:
        """An elector for the Lease of that name; `within` is a write lease that bounds the elector's own."""
        election, lock = self._election, self._election.lock(self._client, name)
        identity, telemetry = election.identity, self._telemetry
        return Elector(lock, self._timing, identity=identity, clock=self._clock, telemetry=telemetry, within=within)

    def _holder(self, shard: int) -> LeaseHolder:
        """The holder of the Lease of a shard."""
        elector = self._elector(self._election.shard_name(shard), self._member_elector.write_lease)
        belongs = partial(_belongs, shard, self._election.shards)
        return LeaseHolder(elector, belongs, clock=self._clock, events=self._events, telemetry=self._telemetry)


def _belongs(shard: int, shards: int, key: Key) -> bool:
    return shard_assignment.shard_of(key, shards) == shard
