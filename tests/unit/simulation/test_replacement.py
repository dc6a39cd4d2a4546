"""Which pods a workload makes and removes next."""

from random import Random

import pytest

from podscaler.simulation.model.workloads import RolloutModel
from podscaler.simulation.world import pod_replacement
from podscaler.simulation.world.pods import VirtualPod


def pods(states: str) -> list[VirtualPod]:
    """Pods by letters: R and r ready, U and u not ready; upper case of the new revision, lower case of the old one."""
    made = []
    for number, letter in enumerate(states):
        pod = VirtualPod(letter, number, 0, int(letter.isupper()), Random(0))
        pod.is_ready = letter in "Rr"
        made.append(pod)
    return made


def next_changes(states: str, replicas: int, *, surge: int | str = 0, unavailable: int | str = 0, is_ordered=False):
    """The number of pods to make, and the numbers of those to remove."""
    rollout = RolloutModel(max_surge=surge, max_unavailable=unavailable)
    changes = pod_replacement.next_changes(pods(states), replicas, 1, rollout, is_ordered=is_ordered)
    return changes.make, [pod.number for pod in changes.remove]


@pytest.mark.parametrize(
    ("states", "replicas", "changes"),
    [
        pytest.param("RR", 2, (0, []), id="as wanted"),
        pytest.param("RR", 5, (3, []), id="more"),
        pytest.param("RRR", 1, (0, [2, 1]), id="fewer: the youngest first"),
        pytest.param("RUR", 2, (0, [1]), id="fewer: one that is not ready first"),
    ],
)
def test_replicas(states, replicas, changes):
    """Without a rollout pods are made or removed at once."""
    assert next_changes(states, replicas) == changes


@pytest.mark.parametrize(
    ("states", "changes"),
    [
        pytest.param("rrrr", (1, []), id="a quarter more first"),
        pytest.param("rrrrU", (0, []), id="wait until it is ready"),
        pytest.param("rrrrR", (0, [3]), id="then one of the old"),
        pytest.param("uuuu", (1, [3, 2, 1, 0]), id="old ones that are not ready serve nobody"),
    ],
)
def test_rolling_update(states, changes):
    """maxSurge 25 %, maxUnavailable 0 of four replicas."""
    assert next_changes(states, 4, surge="25%") == changes


def test_percentages_round_up_and_down():
    """25 % of three is one pod more, and none less."""
    assert next_changes("rrr", 3, surge="25%", unavailable="25%") == (1, [])


@pytest.mark.parametrize(
    ("states", "replicas", "changes"),
    [
        pytest.param("R", 3, (1, []), id="one after another"),
        pytest.param("RU", 3, (0, []), id="not before the last is ready"),
        pytest.param("RRR", 1, (0, [2]), id="the last first"),
        pytest.param("rrr", 3, (0, [2]), id="a rollout from the last one on"),
        pytest.param("rrU", 3, (0, []), id="a rollout waits for each"),
    ],
)
def test_ordinals(states, replicas, changes):
    """A StatefulSet changes one pod at a time."""
    assert next_changes(states, replicas, is_ordered=True) == changes
