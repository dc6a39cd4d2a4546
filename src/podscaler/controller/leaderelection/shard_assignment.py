"""Assigns shards to members: pure functions, which every member applies to the Leases that it observes.

A member is a process that shares the autoscalers with others; a shard is a part of the namespaces. `sharding` makes a
MemberView, and acquires or releases the shards that `claims` and `surplus` return. If members observe different Leases
for a while, an attempt fails or a shard is handed over in vain; two members never get one shard, as leases decide that.
Example: with 4 shards and 3 members the quotas are 2, 1 and 1. Rules:

1. The quota of a member is the number of shards by the number of members, rounded up for those that hold the most now
   (so that as few as possible move), down for the others.
2. A member below its quota tries for that many of the free shards; members begin at different ones.
3. A shard that nobody acquired for `patience_s` is tried for by everybody: a member that was counted may be gone too.
4. A member above its quota releases the highest-numbered of its shards. A shard that it took by rule 3 does not count
   until the member that should have taken it has expired: else nobody would work on it until then.
5. A member that lets the lease of a shard expire is no member until it renews its own Lease. The Leases of a killed
   process expire one after another: if it counted again once its first shard has a new holder, the quotas would shrink
   for a moment, and shards of live members would move for it.
"""

import math
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from podscaler.controller.leaderelection.election import Election
from podscaler.controller.leaderelection.lease_informer import LeaseInformer, ObservedLease
from podscaler.kube.informers.cache import Key

NOBODY = ""
"""The holder of a shard that is being released."""
EXPIRED_AFTER_DURATIONS = 20
"""A member's Lease that is unchanged for so many of its durations is deleted."""


class MemberView(NamedTuple):
    """The election as one member observes it.

    Attributes:
        shards: the number of shards, which are numbered from 0.
        holders: the identity of the holder by shard; a holder that is no member is about to stop.
        free_s: for how many seconds each shard without a holder has had none.
        members: the identities of all live members, our own included.
        kept_shards: the shards that we acquired by rule 3 less than a lease duration ago.
    """

    shards: int
    holders: Mapping[int, str]
    free_s: Mapping[int, float]
    members: frozenset[str]
    kept_shards: frozenset[int] = frozenset()


def shard_of(key: Key, shards: int) -> int:
    """The shard of an autoscaler: that of its namespace.

    Autoscalers of a namespace may select the same pods, which one process has to detect, and share lists of metrics.
    """
    return zlib.crc32(key[0].encode()) % shards


def quotas(view: MemberView) -> dict[str, int]:
    """The quota of each member (rule 1)."""
    shard_counts = Counter(view.holders.values())
    ranked = sorted(view.members, key=lambda member: (-shard_counts[member], member))
    equal_share, remainder = divmod(view.shards, len(ranked))
    return {member: equal_share + (rank < remainder) for rank, member in enumerate(ranked)}


def claims(view: MemberView, member: str, patience_s: float) -> list[int]:
    """The shards that a member should try to acquire (rules 2 and 3)."""
    free_shards = sorted(view.free_s)
    first_index = sorted(view.members).index(member) * len(free_shards) // len(view.members)
    missing_count = max(quotas(view)[member] - _held_count(view, member), 0)
    claimed_shards = (free_shards[first_index:] + free_shards[:first_index])[:missing_count]
    return sorted({*claimed_shards, *abandoned(view, patience_s)})


def abandoned(view: MemberView, patience_s: float) -> list[int]:
    """The shards that a member tries to acquire, even beyond its quota (rule 3)."""
    return sorted(shard for shard, free_s in view.free_s.items() if free_s >= patience_s)


def surplus(view: MemberView, member: str) -> list[int]:
    """The shards that a member should release (rule 4)."""
    own_shards = sorted(
        shard for shard, holder in view.holders.items() if holder == member and shard not in view.kept_shards
    )
    return own_shards[min(quotas(view)[member], len(own_shards)) :]


def _held_count(view: MemberView, member: str) -> int:
    return sum(holder == member for holder in view.holders.values())


def expiries(
    leases: LeaseInformer, election: Election, earlier_s: Mapping[str, float], *, now_s: float
) -> dict[str, float]:
    """When a shard's lease of each holder was last observed as expired, in s of the monotonic clock (rule 5).

    Args:
        leases: the observed Leases.
        election: the parameters of the election.
        earlier_s: the last result; holders without any Lease are dropped from it.
        now_s: this instant of the monotonic clock.
    """
    holders = {lease.lease.record.holder for lease in leases}
    shard_leases = [leases.find(election.shard_name(shard)) for shard in range(election.shards)]
    expired_holders = {
        lease.lease.record.holder for lease in shard_leases if lease is not None and not lease.is_live(now_s)
    }
    kept_s = {holder: expired_s for holder, expired_s in earlier_s.items() if holder in holders}
    return kept_s | dict.fromkeys(expired_holders, now_s)


def view(
    leases: LeaseInformer,
    election: Election,
    own_shards: Mapping[int, str],
    expired_s: Mapping[str, float],
    *,
    now_s: float,
    began_s: float,
) -> MemberView:
    """The election as this member observes it.

    Args:
        leases: the observed Leases.
        election: the parameters of the election.
        own_shards: the shards that we hold, with our identity, or NOBODY while the shard is being released.
        expired_s: the result of `expiries`.
        now_s: this instant of the monotonic clock.
        began_s: when we became a member; a shard without a Lease counts as free since.
    """
    holders, free_s = dict(own_shards), dict[int, float]()
    for shard in range(election.shards):
        observed_lease = leases.find(election.shard_name(shard))
        if shard in own_shards:
            continue
        if observed_lease is not None and observed_lease.is_live(now_s):
            holder = observed_lease.lease.record.holder
            holders[shard] = NOBODY if holder == election.identity else holder
            continue
        free_s[shard] = now_s - (began_s if observed_lease is None else max(_free_since_s(observed_lease), began_s))
    members = {
        lease.lease.record.holder
        for lease in leases
        if _is_member(lease, election, now_s)
        and lease.first_observed_s > expired_s.get(lease.lease.record.holder, -math.inf)
    }
    return MemberView(election.shards, holders, free_s, frozenset(members | {election.identity}))


def expired_members(leases: LeaseInformer, election: Election, *, now_s: float) -> list[ObservedLease]:
    """The Leases of members that expired long ago."""
    unchanged_max_s = EXPIRED_AFTER_DURATIONS * election.timing.lease_duration_s
    member_leases = [lease for lease in leases if election.is_member(lease.lease.metadata.name)]
    return [
        lease
        for lease in member_leases
        if not lease.is_live(now_s) and now_s - lease.first_observed_s > unchanged_max_s
    ]


def _is_member(observed_lease: ObservedLease, election: Election, now_s: float) -> bool:
    """Whether the Lease is that of a live member of the election, with the same number of shards."""
    lease = observed_lease.lease
    is_of_election = election.is_member(lease.metadata.name) and lease.shards == str(election.shards)
    return is_of_election and observed_lease.is_live(now_s)


def _free_since_s(observed_lease: ObservedLease) -> float:
    record = observed_lease.lease.record
    return observed_lease.first_observed_s + (record.duration_s if record.holder else 0)
