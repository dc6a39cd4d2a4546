"""Who holds the Lease for an autoscaler, as an onlooker sees it."""

import msgspec
import pytest

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.leaderelection import lease, shard_assignment
from podscaler.controller.leaderelection import observed_holder as holding
from podscaler.controller.leaderelection.lease import Lease
from podscaler.controller.leaderelection.observed_holder import Holding

KEY = ("shop", "podautoscaler/web")
SHARD = shard_assignment.shard_of(KEY, 8)
NOW = instants.parse("2026-03-03T10:00:15Z")
RENEWED = "2026-03-03T10:00:10.000000Z"
RENEWED_AT = NOW - 5 * NANOSECONDS


def a_lease(name: str, shards: str, *, holder: str = "pod-a", renewed: str | None = RENEWED) -> Lease:
    """A Lease of 15 s."""
    annotations = {lease.SHARDS: shards} if shards else {}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return lease.parse(msgspec.json.encode({"metadata": {"name": name, "annotations": annotations}, "spec": spec}))


WHOLE = a_lease("podscaler-controller", "0")
OURS = a_lease(f"podscaler-controller-shard-{SHARD}", "8")
ANOTHER = a_lease(f"podscaler-controller-shard-{(SHARD + 1) % 8}", "8", holder="pod-b")
MEMBER = a_lease("podscaler-controller-member-0123456789", "8")
RELEASED = a_lease("podscaler-controller", "0", holder="")
STALE = a_lease("podscaler-controller", "0", renewed="2026-03-03T10:00:00Z")


@pytest.mark.parametrize(
    ("leases", "expected"),
    [
        ([], None),
        ([ANOTHER, MEMBER], None),
        ([WHOLE], Holding("podscaler-controller", "pod-a", RENEWED_AT, is_live=True, shard=None, shards=0)),
        ([ANOTHER, MEMBER, OURS], Holding(OURS.metadata.name, "pod-a", RENEWED_AT, True, SHARD, 8)),
        ([RELEASED], Holding("podscaler-controller", "", RENEWED_AT, is_live=False, shard=None, shards=0)),
        ([RELEASED, OURS], Holding(OURS.metadata.name, "pod-a", RENEWED_AT, True, SHARD, 8)),
        ([STALE], Holding("podscaler-controller", "pod-a", NOW - 15 * NANOSECONDS, False, None, 0)),
        (
            [a_lease("podscaler-controller", "0", renewed="2026-03-03T10:00:00.000001Z")],
            Holding("podscaler-controller", "pod-a", NOW - 15 * NANOSECONDS + 1000, True, None, 0),
        ),
        (
            [a_lease("podscaler-controller", "", renewed=None)],
            Holding("podscaler-controller", "pod-a", None, False, None, 0),
        ),
        (
            [a_lease("podscaler-controller", "many", renewed="noon")],
            Holding("podscaler-controller", "pod-a", None, False, None, 0),
        ),
    ],
    ids=[
        "none",
        "of others",
        "a lone leader",
        "a shard",
        "released",
        "split into shards since",
        "just over",
        "all but over",
        "by somebody else's hand",
        "without sense",
    ],
)
def test_the_lease_that_counts(leases: list[Lease], expected: Holding | None) -> None:
    """That of the lone leader, or of the shard of the autoscaler's namespace; the one that lasts."""
    assert holding.find(leases, "podscaler-controller", KEY, now_ns=NOW) == expected
