"""Proportional scaling of several ReplicaSets."""

import pytest

from podscaler.controlplane.controllers.deployment import revisions, rollout
from podscaler.testing import workloads as build


def sets(*sizes, maximum=None):
    notes = {} if maximum is None else {revisions.MAX_REPLICAS: str(maximum)}
    return [
        build.replica_set(f"rs{age}", size, created_at=age * 10**9, annotations=notes) for age, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("given", "wanted", "surge", "expected"),
    [
        pytest.param(sets(5, 5, maximum=10), 12, 0, {"rs1": 6, "rs0": 6}, id="equal sets share alike"),
        pytest.param(sets(5, 8, maximum=13), 15, 3, {"rs1": 11, "rs0": 7}, id="the documentation's example"),
        pytest.param(sets(5, 5, maximum=10), 11, 0, {"rs1": 6, "rs0": 5}, id="up: the odd one goes to the newest"),
        pytest.param(sets(5, 5, maximum=10), 9, 0, {"rs0": 4, "rs1": 5}, id="down: the odd one comes from the oldest"),
        pytest.param(sets(9, 1, maximum=10), 20, 0, {"rs0": 18, "rs1": 2}, id="in proportion"),
        pytest.param(sets(3, 2, maximum=5), 0, 2, {"rs0": 0, "rs1": 0}, id="to zero: no surge is left"),
        pytest.param(sets(5, 5, maximum=10), 10, 0, {"rs0": 5, "rs1": 5}, id="nothing to add, nothing changes"),
        pytest.param(sets(5, 5), 20, 0, {"rs1": 10, "rs0": 10}, id="without a note: against the pods there are"),
        pytest.param(sets(1, 1, 1, maximum=3), 2, 0, {"rs0": 0, "rs1": 1, "rs2": 1}, id="three ones to two"),
    ],
)
def test_the_difference_is_shared(given, wanted, surge, expected):
    """Everybody gets a share by size; what rounding leaves goes to the largest."""
    shares = rollout.proportional_sizes(given, desired_replicas=wanted, surge=surge, current_pods=10)
    assert {one["metadata"]["name"]: size for one, size in shares} == expected


def test_no_note_and_no_pods_gives_no_share_but_the_rest():
    """Where nothing is known of the size before, the largest set takes all."""
    shares = rollout.proportional_sizes(sets(2, 1), desired_replicas=5, surge=0, current_pods=0)
    assert [(one["metadata"]["name"], size) for one, size in shares] == [("rs0", 4), ("rs1", 1)]
