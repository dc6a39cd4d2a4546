"""Finds the process that manages an autoscaler, from the Leases of an election in which the caller takes no part.

Called by `podscaler explain`, which reads the Leases once. So whether a Lease has expired is decided by the holder's
timestamp and the local clock: the clocks of two machines are compared, which elections never do.
"""

from collections.abc import Iterable
from typing import NamedTuple

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.leaderelection import lease, shard_assignment
from podscaler.controller.leaderelection.lease import Lease
from podscaler.kube.informers.cache import Key


class Holding(NamedTuple):
    """The Lease whose holder manages an autoscaler.

    Attributes:
        name: the name of the Lease.
        holder: the identity of the (last) holder; empty if the Lease was released.
        renewed_at: the last renewal by the holder's clock, in ns since the epoch; None: not known.
        is_live: whether the Lease has not expired, by the local clock.
        shard: the autoscaler's shard; None if there is a single leader.
        shards: the number of shards; 0 if there is a single leader.
    """

    name: str
    holder: str
    renewed_at: int | None
    is_live: bool
    shard: int | None
    shards: int


def find(leases: Iterable[Lease], election: str, key: Key, *, now_ns: int) -> Holding | None:
    """The Lease whose holder manages an autoscaler; None if there is none.

    If the number of shards was changed, Leases with both numbers may exist: the live one counts, else the one that was
    renewed last.

    Args:
        leases: all Leases of the election, in any order.
        election: the name of the election.
        key: the autoscaler's key.
        now_ns: this instant, in ns since the epoch.
    """
    candidates = (_holding(observed_lease, election, key, now_ns) for observed_lease in leases)
    holdings = [holding for holding in candidates if holding is not None]
    return max(holdings, key=lambda holding: (holding.is_live, holding.renewed_at or 0), default=None)


def _holding(observed: Lease, election: str, key: Key, now_ns: int) -> Holding | None:
    """The Lease as a Holding; None if it belongs to another shard, or to a member."""
    shards = int(observed.shards) if observed.shards.isascii() and observed.shards.isdigit() else 0
    shard = shard_assignment.shard_of(key, shards) if shards else None
    name = election if shard is None else lease.shard_name(election, shard)
    if observed.metadata.name != name:
        return None
    record = observed.record
    renewed_at = _instant(record.renewed_at)
    is_live = bool(record.holder) and renewed_at is not None and now_ns < renewed_at + record.duration_s * NANOSECONDS
    return Holding(name=name, holder=record.holder, renewed_at=renewed_at, is_live=is_live, shard=shard, shards=shards)


def _instant(time_text: str | None) -> int | None:
    """A time of a Lease in ns since the epoch; None if it is absent or invalid."""
    try:
        return instants.parse(time_text) if time_text else None
    except ValueError:  # written by hand: the other fields may be valid
        return None
