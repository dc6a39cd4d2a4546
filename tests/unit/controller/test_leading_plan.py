"""Who should hold which shard."""

from collections import Counter

import pytest

from podscaler.controller.leaderelection import shard_assignment
from podscaler.controller.leaderelection.shard_assignment import MemberView

PATIENCE_S = 2.0


def view(holders: str, members: str, *, free_s: float = 0.0) -> MemberView:
    """Shards as letters of their holders; `.` is free, `-` is on its way out."""
    held = {shard: holder.strip("-") for shard, holder in enumerate(holders) if holder != "."}
    free = {shard: free_s for shard, holder in enumerate(holders) if holder == "."}
    return MemberView(len(holders), held, free, frozenset(members))


@pytest.mark.parametrize(
    ("holders", "members", "expected"),
    [
        ("....", "a", {"a": 4}),
        ("....", "ab", {"a": 2, "b": 2}),
        (".....", "ab", {"a": 3, "b": 2}),
        ("bbbaa", "ab", {"a": 2, "b": 3}),
        ("aabb", "abc", {"a": 2, "b": 1, "c": 1}),
        ("abb.", "abc", {"a": 1, "b": 2, "c": 1}),
        ("aa", "abc", {"a": 1, "b": 1, "c": 0}),
    ],
)
def test_quotas(holders: str, members: str, expected: dict[str, int]) -> None:
    """Each is to hold its share; what does not divide stays with those that hold the most."""
    assert shard_assignment.quotas(view(holders, members)) == expected


@pytest.mark.parametrize(
    ("holders", "members", "expected"),
    [
        ("....", "ab", {"a": [0, 1], "b": [2, 3]}),
        ("aa..", "ab", {"a": [], "b": [2, 3]}),
        ("aa.b", "ab", {"a": [], "b": [2]}),
        ("aa--", "ab", {"a": [], "b": []}),
        ("...", "abc", {"a": [0], "b": [1], "c": [2]}),
    ],
)
def test_claims(holders: str, members: str, expected: dict[str, list[int]]) -> None:
    """Who is below its share tries for that many of the free ones, and those of different members are different."""
    seen = view(holders, members)
    assert {member: shard_assignment.claims(seen, member, PATIENCE_S) for member in members} == expected


def test_what_nobody_takes_is_taken_by_anybody() -> None:
    """A shard that stays free is tried for by those that have their share already."""
    assert shard_assignment.claims(view("aa.b", "ab", free_s=PATIENCE_S), "a", PATIENCE_S) == [2]


@pytest.mark.parametrize(
    ("holders", "members", "expected"),
    [
        ("aaaa", "ab", {"a": [2, 3], "b": []}),
        ("aabb", "ab", {"a": [], "b": []}),
        ("aabb", "abc", {"a": [], "b": [3], "c": []}),
        ("aa-b", "abc", {"a": [], "b": [], "c": []}),
    ],
)
def test_surplus(holders: str, members: str, expected: dict[str, list[int]]) -> None:
    """Who is above its share gives up the last ones, once."""
    seen = view(holders, members)
    assert {member: shard_assignment.surplus(seen, member) for member in members} == expected


def test_what_nobody_else_took_is_kept() -> None:
    """A shard that was taken because it stayed free counts as none above the share, and drives out no other."""
    seen = view("aaab", "abc")
    assert [
        shard_assignment.surplus(seen._replace(kept_shards=kept), "a") for kept in (frozenset[int](), frozenset({2}))
    ] == [
        [2],
        [],
    ]


def test_a_namespace_is_in_one_shard() -> None:
    """All autoscalers of a namespace belong together, and namespaces are spread over the shards."""
    shards = {shard_assignment.shard_of(("shop", name), 16) for name in ("web", "podautoscaler/web", "worker")}
    counts = Counter(shard_assignment.shard_of((f"n{number}", "web"), 16) for number in range(1600))
    assert len(shards) == 1
    assert set(counts) == set(range(16))
    assert max(counts.values()) < 150
