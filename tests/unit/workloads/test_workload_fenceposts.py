"""maxSurge and maxUnavailable in pods."""

import pytest

from podscaler.controlplane.controllers.deployment import rollout_bounds
from podscaler.testing import workloads as build


@pytest.mark.parametrize(
    ("surge", "unavailable", "wanted", "expected"),
    [
        pytest.param("25%", "25%", 3, (1, 0), id="surge is rounded up, unavailability down"),
        pytest.param("25%", "25%", 4, (1, 1), id="whole shares stay"),
        pytest.param("25%", "25%", 10, (3, 2), id="2.5 is 3 above and 2 below"),
        pytest.param("100%", "0%", 5, (5, 0), id="double first"),
        pytest.param(0, 1, 5, (0, 1), id="numbers are pods"),
        pytest.param(2, "10%", 9, (2, 0), id="mixed"),
        pytest.param(0, 0, 5, (0, 1), id="both zero: one may be missing"),
        pytest.param(0, "10%", 5, (0, 1), id="both rounded to zero: one may be missing"),
        pytest.param("1%", "1%", 0, (0, 1), id="no replicas"),
        pytest.param("29%", "29%", 100, (29, 29), id="exact where binary fractions are not"),
    ],
)
def test_bounds_are_resolved_as_upstream_does(surge, unavailable, wanted, expected):
    """Percentages of the wanted replicas: surge up, unavailable down, never both zero."""
    assert rollout_bounds.resolve(surge, unavailable, wanted) == expected


def test_a_bound_that_is_no_percentage_is_refused():
    """Validation keeps such texts out; here they are a ValueError."""
    with pytest.raises(ValueError, match="'many' is neither a number nor a percentage"):
        rollout_bounds.resolve("many", 0, 1)


@pytest.mark.parametrize(
    ("replicas", "strategy", "expected"),
    [
        pytest.param(2, None, (1, 0), id="the defaults are 25% each"),
        pytest.param(0, None, (0, 0), id="none wanted: none may be missing"),
        pytest.param(
            2,
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 9}},
            (0, 2),
            id="at most all",
        ),
        pytest.param(4, {"type": "Recreate"}, (0, 0), id="Recreate has no bounds"),
    ],
)
def test_bounds_of_a_deployment(replicas, strategy, expected):
    """What a Deployment's strategy allows."""
    deployment = build.deployment(replicas=replicas, strategy=strategy or {"type": "RollingUpdate"})
    assert (rollout_bounds.max_surge(deployment), rollout_bounds.max_unavailable(deployment)) == expected
