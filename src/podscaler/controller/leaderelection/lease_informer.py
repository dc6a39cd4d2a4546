"""Watches an election's Leases: their holders, and since when each record is unchanged.

`leadership` and `sharding` run one and look up a Lease before they try to acquire it; they hand its records to
`elector.Elector.observe`. The watch may be late or disconnected: no decision rests on it alone, as every attempt reads
the Lease itself. The age of a record counts from the instant at which it was observed first. It may be older than that,
so whether its holder is alive is certain only once the record changes or expires.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import NamedTuple

from podscaler.api.machinery.meta import is_newer_version
from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.controller.leaderelection import lease
from podscaler.controller.leaderelection.lease import LeaderElectionRecord, Lease
from podscaler.kube.client.client import Client, Query
from podscaler.kube.informers import watch_events
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector, WatchSource


class ObservedLease(NamedTuple):
    """A Lease, and when its record was observed first.

    Attributes:
        lease: the Lease.
        first_observed_s: when the record (or the label of its shards) was observed first, by the monotonic clock.
        replaced_live_record: whether it replaced a live record, so that its holder wrote it at about that instant.
    """

    lease: Lease
    first_observed_s: float
    replaced_live_record: bool

    def is_live(self, now_s: float) -> bool:
        """Whether the Lease has a holder and has not expired."""
        record = self.lease.record
        return bool(record.holder) and self.first_observed_s + record.duration_s > now_s


class LeaseInformer:
    """The observed Leases of one election, by name.

    Args:
        client: reads the Leases.
        namespace: the namespace of the Leases.
        election: the value of their election label.
        clock: for the age of records.
        rng: for the back-off of the watch.
    """

    def __init__(self, client: Client, *, namespace: str, election: str, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._path = lease.path(namespace)
        self._query: Query = [("labelSelector", f"{lease.ELECTION}={election}")]
        self._observed_by_name: dict[str, ObservedLease] = {}
        self._changed = asyncio.Event()
        self._cache: Cache[Lease] = Cache()
        self._cache.subscribe(self)
        source = WatchSource(self._path, lease.RESOURCE, lease.parse, self._query)
        self._watch = Reflector(client, source, cache=self._cache, clock=clock, rng=rng)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._watch.run()

    def find(self, name: str) -> ObservedLease | None:
        """The Lease of that name; None if no such Lease was observed."""
        return self._observed_by_name.get(name)

    def __iter__(self) -> Iterator[ObservedLease]:
        return iter(list(self._observed_by_name.values()))

    def forget(self, name: str) -> None:
        """Drop a Lease; the next event about it adds it again."""
        self._observed_by_name.pop(name, None)

    def is_certain(self, now_s: float) -> bool:
        """Whether the liveness of every holder is known: each Lease was renewed while observed, or has expired."""
        return all(
            observed.replaced_live_record or not observed.is_live(now_s) for observed in self._observed_by_name.values()
        )

    async def wait_changed(self) -> None:
        """Return when a Lease was added or deleted, or its holder has changed, since the last call returned.

        One task may wait at a time: the return clears the event.
        """
        await self._changed.wait()
        self._changed.clear()

    async def refresh(self) -> None:
        """Read all Leases from the API server now. Raises StatusError.

        Leases that the response does not contain stay until the watch reports their deletion. A response that is older
        than what the watch has delivered meanwhile is dropped: it would restore holders that have released their Leases
        since, until those Leases change again.
        """
        page = watch_events.page(await self._client.get(self._path, subject=lease.RESOURCE, query=self._query))
        if is_newer_version(self._cache.version, page.metadata.resource_version):
            return
        for lease_json in page.items or ():
            try:
                self._store_version(lease.parse(lease_json))
            except JSON_DECODE_ERRORS as error:
                raise StatusError(f"a Lease cannot be read: {error}", code=0) from error

    def added(self, new_lease: Lease) -> None:
        """The watch reports a new Lease."""
        self._store_version(new_lease)

    def updated(self, old: Lease, new: Lease) -> None:
        """The watch reports a newer version of a Lease."""
        del old
        self._store_version(new)

    def deleted(self, deleted_lease: Lease) -> None:
        """The watch reports that a Lease was deleted."""
        self.forget(deleted_lease.metadata.name)
        self._changed.set()

    def _store_version(self, latest: Lease) -> None:
        """Store a version of a Lease with the instant of its first observation, unless a newer one is stored.

        An event of a late watch can be older than what `refresh` has read. A version with the same record and shards
        (another field was changed) changes nothing: the age of the record counts on.
        """
        name = latest.metadata.name
        observed = self._observed_by_name.get(name)
        if observed is not None and is_newer_version(
            observed.lease.metadata.resource_version, latest.metadata.resource_version
        ):
            return
        if observed is None or observed.lease.record != latest.record or observed.lease.shards != latest.shards:
            now_s = self._clock.monotonic_s()
            self._observed_by_name[name] = ObservedLease(
                latest, now_s, replaced_live_record=observed is not None and observed.is_live(now_s)
            )
            if observed is None or _is_new_holder(observed.lease.record, latest.record):
                self._changed.set()


def _is_new_holder(old: LeaderElectionRecord, new: LeaderElectionRecord) -> bool:
    """Whether the holder has changed: the record is not only renewed."""
    return old.holder != new.holder
