"""PodDisruptionBudgets: the status that their controller keeps, in virtual time."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from workload_world import WorkloadWorld, opened

from podscaler.controlplane.controllers.apps import disruption_budgets
from podscaler.controlplane.controllers.apps.disruption import DisruptionBudgets
from podscaler.controlplane.controllers.apps.disruption_budgets import BudgetFacts
from podscaler.controlplane.controllers.apps.statefulset import StatefulSets
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build

BUDGETS = "poddisruptionbudgets.policy"
NOW_NS = VirtualClock().now_ns()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WorkloadWorld]:
    """StatefulSets and budgets are kept."""
    async with opened(tmp_path, StatefulSets, DisruptionBudgets) as found:
        yield found


def budget(**spec: Any) -> dict[str, Any]:
    """A budget for the pods of `db`."""
    metadata = {"name": "db", "namespace": "default"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "db"}}, **spec}}


def counts(pods: int, wanted: int, **spec: Any) -> tuple[int, int, int, int]:
    """Expected, desired, healthy and allowed for so many ready pods."""
    selected = [build.pod(f"db-{number}", ready_at=NOW_NS) for number in range(pods)]
    found = disruption_budgets.status(BudgetFacts(budget(**spec), selected, wanted, NOW_NS))
    return found["expectedPods"], found["desiredHealthy"], found["currentHealthy"], found["disruptionsAllowed"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"minAvailable": 2}, (3, 2, 3, 1), id="at least two"),
        pytest.param({"minAvailable": 3}, (3, 3, 3, 0), id="at least all"),
        pytest.param({"minAvailable": 4}, (3, 4, 3, 0), id="more than there are"),
        pytest.param({"minAvailable": "50%"}, (4, 2, 3, 1), id="half of what is wanted"),
        pytest.param({"minAvailable": "51%"}, (4, 3, 3, 0), id="a share is rounded up"),
        pytest.param({"maxUnavailable": 1}, (4, 3, 3, 0), id="one of four is missing already"),
        pytest.param({"maxUnavailable": "26%"}, (4, 2, 3, 1), id="a share that may be missing"),
        pytest.param({"maxUnavailable": 9}, (4, 0, 3, 3), id="all may be missing"),
        pytest.param({}, (3, 1, 3, 2), id="one if nothing is said"),
    ],
)
def test_bounds(spec: dict[str, Any], expected: tuple[int, int, int, int]) -> None:
    """Three pods are ready, of four that the controller wants."""
    assert counts(3, 4, **spec) == expected


async def test_a_budget_follows_its_pods(world: WorkloadWorld) -> None:
    """Its whole status; what does not change is not written again."""
    await world.registry.create("statefulsets.apps", build.stateful_set(replicas=3))
    await world.registry.create(BUDGETS, budget(maxUnavailable=1))
    await world.pass_time(5)
    before = world.get(BUDGETS, "db")
    (condition,) = before["status"].pop("conditions")
    assert before["status"] == {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "expectedPods": 3,
    }
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )
    await world.pass_time(5)
    assert world.get(BUDGETS, "db")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_an_eviction_that_comes_to_nothing_is_forgotten(world: WorkloadWorld) -> None:
    """Two minutes after it was allowed its pod counts as healthy again."""
    await world.registry.create("statefulsets.apps", build.stateful_set(replicas=2))
    await world.registry.create(BUDGETS, budget(maxUnavailable=1))
    await world.pass_time(5)

    def allow(newest: dict[str, Any]) -> None:
        newest["status"].update(disruptedPods={"db-0": "2026-01-01T00:00:05Z"}, disruptionsAllowed=0)

    await world.registry.mutate(BUDGETS, "default", "db", allow, subresource="status")
    await world.pass_time(60)
    assert world.get(BUDGETS, "db")["status"]["currentHealthy"] == 1
    await world.pass_time(90)
    status = world.get(BUDGETS, "db")["status"]
    assert (status["currentHealthy"], status["disruptionsAllowed"], "disruptedPods" in status) == (2, 1, False)
