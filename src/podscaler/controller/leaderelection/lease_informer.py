"""The Leases of an election as this process sees them: who holds what, and since when each has stood still.

Elections look here before they try for a lease, and electors learn from it. It may be late or cut off: nothing is
decided by it alone, as every try reads the Lease itself. A record counts from the instant at which it was seen first.
It may have stood still before that for any time: whether its holder lives is certain once it changes, or has expired.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import lease
from podscaler.controller.leaderelection.lease import LeaderElectionRecord, Lease
from podscaler.kube.client.client import Client, Query
from podscaler.kube.informers import watch_events
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.watch import Reflector, WatchSource


class ObservedLease(NamedTuple):
    """A Lease, and when its record was first seen, by the monotonic clock.

    Attributes:
        is_renewed: whether it was seen to replace one that lasted, so that its holder wrote it at that time.
    """

    lease: Lease
    at_s: float
    is_renewed: bool

    def is_live(self, now_s: float) -> bool:
        """Whether somebody holds it."""
        record = self.lease.record
        return bool(record.holder) and self.at_s + record.duration_s > now_s


class LeaseInformer:
    """See the module.

    Args:
        client: past every fence.
        namespace: the Leases'.
        election: their label.
        clock: when something was seen.
        rng: for the spread of waits.
    """

    def __init__(self, client: Client, *, namespace: str, election: str, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._path = lease.path(namespace)
        self._query: Query = [("labelSelector", f"{lease.ELECTION}={election}")]
        self._seen: dict[str, ObservedLease] = {}
        self._news = asyncio.Event()
        cache: Cache[Lease] = Cache()
        cache.subscribe(self)
        self._watch = Reflector(
            client, WatchSource(self._path, lease.RESOURCE, lease.read, self._query), cache=cache, clock=clock, rng=rng
        )

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._watch.run()

    def find(self, name: str) -> ObservedLease | None:
        """A Lease; None where none of that name is known."""
        return self._seen.get(name)

    def __iter__(self) -> Iterator[ObservedLease]:
        return iter(list(self._seen.values()))

    def forget(self, name: str) -> None:
        """A Lease is gone, or of no use; it is there again when something about it changes."""
        self._seen.pop(name, None)

    def is_certain(self, now_s: float) -> bool:
        """Whether it is known of every holder that it lives or is gone, as those know that looked on before."""
        return all(seen.is_renewed or not seen.is_live(now_s) for seen in self._seen.values())

    async def news(self) -> None:
        """Return when something has changed since the last call returned."""
        await self._news.wait()
        self._news.clear()

    async def look(self) -> None:
        """See the Leases as they are on the server now. Raises StatusError."""
        body = await self._client.get(self._path, subject=lease.RESOURCE, query=self._query)
        for raw in watch_events.page(body).items or ():
            try:
                self._note(lease.read(raw))
            except msgspec.DecodeError as error:
                raise StatusError(f"a Lease cannot be read: {error}", code=0) from error

    def added(self, obj: Lease) -> None:
        """The watch has a new one."""
        self._note(obj)

    def updated(self, old: Lease, new: Lease) -> None:
        """The watch has another version of one."""
        del old
        self._note(new)

    def deleted(self, obj: Lease) -> None:
        """The watch says that one is gone."""
        self.forget(obj.metadata.name)
        self._news.set()

    def _note(self, latest: Lease) -> None:
        name = latest.metadata.name
        known = self._seen.get(name)
        if known is None or known.lease.record != latest.record or known.lease.shards != latest.shards:
            now_s = self._clock.monotonic_s()
            self._seen[name] = ObservedLease(latest, now_s, is_renewed=known is not None and known.is_live(now_s))
            if known is None or _tells(known.lease.record, latest.record):
                self._news.set()


def _tells(old: LeaderElectionRecord, new: LeaderElectionRecord) -> bool:
    """Whether a change is news: not a renewal."""
    return old.holder != new.holder
