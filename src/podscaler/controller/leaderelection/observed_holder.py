"""The holder of the Lease that counts for an autoscaler, as seen by a process that takes no part in the election.

`podscaler explain` reads it. It has one reading of the Leases and the holders' timestamps: whether a Lease is live is
decided by comparing the clocks of two machines, which elections never do.
"""

from collections.abc import Iterable
from typing import NamedTuple

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.leaderelection import lease, shard_assignment
from podscaler.controller.leaderelection.lease import Lease
from podscaler.kube.informers.cache import Key


class Holding(NamedTuple):
    """The Lease that counts for an autoscaler.

    Attributes:
        name: of the Lease.
        holder: the identity of the (last) holder; empty: it was released.
        renewed_at: the instant of the last renewal by the holder's clock; None: not known.
        is_live: whether it has not expired, by the local clock.
        shard: of the autoscaler; None: there is a single leader.
        shards: their number; 0: there is a single leader.
    """

    name: str
    holder: str
    renewed_at: int | None
    is_live: bool
    shard: int | None
    shards: int


def find(leases: Iterable[Lease], election: str, key: Key, *, now: int) -> Holding | None:
    """The Lease that counts for an autoscaler; None where there is none.

    Where Leases with several numbers of shards are left, it is one that is live, else the one that was renewed last.

    Args:
        leases: of the election, in any order.
        election: its name.
        key: of the autoscaler.
        now: this instant, in ns since the epoch.
    """
    found = [each for each in (_holding(one, election, key, now) for one in leases) if each is not None]
    return max(found, key=lambda each: (each.is_live, each.renewed_at or 0), default=None)


def _holding(found: Lease, election: str, key: Key, now: int) -> Holding | None:
    """A Lease as the one that counts; None where it is that of another shard, or of a member."""
    shards = int(found.shards) if found.shards.isascii() and found.shards.isdigit() else 0
    shard = shard_assignment.shard_of(key, shards) if shards else None
    name = election if shard is None else lease.shard_name(election, shard)
    if found.metadata.name != name:
        return None
    record = found.record
    renewed_at = _instant(record.renewed_at)
    is_live = bool(record.holder) and renewed_at is not None and now < renewed_at + record.duration_s * NANOSECONDS
    return Holding(name, record.holder, renewed_at, is_live, shard, shards)


def _instant(text: str | None) -> int | None:
    try:
        return instants.parse(text) if text else None
    except ValueError:  # written by hand: the other fields may be valid
        return None
