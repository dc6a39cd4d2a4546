"""Who should hold which shard: pure rules, which every member applies to what it sees.

`sharding` makes a View and follows what comes out. Members may see different things for a while: that costs a lost try
or a hand-over too many, and never gives a shard to two, as leases decide that.

1. Each member is to hold its share: the number of shards by the number of members, rounded up for those that hold the
   most now (so that as few as possible move), down for the others.
2. A member below its share tries for that many of the free shards; members begin at different ones.
3. A shard that nobody took for `patience_s` is tried for by everybody: a member that was counted may be gone too.
4. A member above its share gives up the highest-numbered of its shards. What it took by rule 3 does not count until the
   member for which it was meant, and which did not take it, is counted out: else nobody would work on it until then.
"""

import zlib
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from podscaler.kube.informers.cache import Key


class MemberView(NamedTuple):
    """What a member sees.

    Attributes:
        shards: how many there are, numbered from 0.
        holders: who holds which; one that is no member is on its way out.
        free_s: those that nobody holds, with the seconds for which nobody has.
        members: all that are alive, the one that looks included.
        kept: those that the one that looks took by rule 3 less than a lease duration ago.
    """

    shards: int
    holders: Mapping[int, str]
    free_s: Mapping[int, float]
    members: frozenset[str]
    kept: frozenset[int] = frozenset()


def shard_of(key: Key, shards: int) -> int:
    """The shard of an autoscaler: that of its namespace.

    Autoscalers of a namespace may select the same pods, which one process has to notice, and share lists of metrics.
    """
    return zlib.crc32(key[0].encode()) % shards


def quotas(view: MemberView) -> dict[str, int]:
    """How many shards each member should hold (rule 1)."""
    held = Counter(view.holders.values())
    ranked = sorted(view.members, key=lambda member: (-held[member], member))
    least, more = divmod(view.shards, len(ranked))
    return {member: least + (rank < more) for rank, member in enumerate(ranked)}


def claims(view: MemberView, me: str, patience_s: float) -> list[int]:
    """The shards that a member should try for (rules 2 and 3)."""
    free = sorted(view.free_s)
    first = sorted(view.members).index(me) * len(free) // len(view.members)
    missing = max(quotas(view)[me] - _held(view, me), 0)
    mine = (free[first:] + free[:first])[:missing]
    return sorted({*mine, *abandoned(view, patience_s)})


def abandoned(view: MemberView, patience_s: float) -> list[int]:
    """The shards that a member tries for whatever its share (rule 3)."""
    return sorted(shard for shard, free_s in view.free_s.items() if free_s >= patience_s)


def surplus(view: MemberView, me: str) -> list[int]:
    """The shards that a member should give up (rule 4)."""
    mine = sorted(shard for shard, holder in view.holders.items() if holder == me and shard not in view.kept)
    return mine[min(quotas(view)[me], len(mine)) :]


def _held(view: MemberView, me: str) -> int:
    return sum(holder == me for holder in view.holders.values())
