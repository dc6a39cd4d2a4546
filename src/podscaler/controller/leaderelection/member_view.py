"""What a member makes of the Leases that it sees: a View for the plan, and the Leases that nobody needs any more.

`sharding` looks before each step.
"""

from collections.abc import Mapping

from podscaler.controller.leaderelection.election import Election
from podscaler.controller.leaderelection.lease_informer import LeaseInformer, ObservedLease
from podscaler.controller.leaderelection.shard_assignment import MemberView

NOBODY = ""
"""Holds what is changing hands."""
EXPIRED_AFTER_DURATIONS = 20
"""A member's Lease that has stood still for so many of its durations is removed."""


def view(
    roster: LeaseInformer, election: Election, own: Mapping[int, str], *, now_s: float, began_s: float
) -> MemberView:
    """What is to be known for the plan.

    Args:
        roster: what is seen of others.
        election: who we are, and how many shards there are.
        own: the shards that we deal with: held by us, or by NOBODY while they are given back.
        now_s: this instant of the monotonic clock.
        began_s: when we began to look; what was not there then counts as free since.
    """
    holders, free_s, ailing = dict(own), dict[int, float](), set[str]()
    for shard in range(election.shards):
        seen = roster.find(election.shard_name(shard))
        if shard in own:
            continue
        if seen is not None and seen.is_live(now_s):
            holder = seen.lease.record.holder
            holders[shard] = NOBODY if holder == election.identity else holder
            continue
        free_s[shard] = now_s - (began_s if seen is None else max(_free_since_s(seen), began_s))
        if seen is not None:
            ailing.add(seen.lease.record.holder)
    members = {each.lease.record.holder for each in roster if _is_member(each, election, now_s)} - ailing
    return MemberView(election.shards, holders, free_s, frozenset(members | {election.identity}))


def expired_members(roster: LeaseInformer, election: Election, *, now_s: float) -> list[ObservedLease]:
    """The Leases of members that are gone since long."""
    return [
        seen
        for seen in roster
        if election.is_member(seen.lease.metadata.name)
        and not seen.is_live(now_s)
        and now_s - seen.at_s > EXPIRED_AFTER_DURATIONS * election.timing.lease_duration_s
    ]


def _is_member(seen: ObservedLease, election: Election, now_s: float) -> bool:
    is_ours = election.is_member(seen.lease.metadata.name) and seen.lease.shards == str(election.shards)
    return is_ours and seen.is_live(now_s)


def _free_since_s(seen: ObservedLease) -> float:
    record = seen.lease.record
    return seen.at_s + (record.duration_s if record.holder else 0)
