"""The elasticity metrics, with numbers that can be checked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.simulation.evaluation.elasticity import Elasticity, deviation, elastic_speedup, elasticity

COUNTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=60)


def test_the_worked_example_of_the_module():
    """Two of four samples differ: one lacks 2 of 4 pods, one has 1 too many for 2."""
    assert elasticity([2, 2, 4, 4], [2, 3, 2, 4]) == Elasticity(
        under_accuracy_pct=12.5,
        over_accuracy_pct=12.5,
        under_timeshare_pct=25.0,
        over_timeshare_pct=25.0,
        instability_pct=100.0,
        jitter=0.5,
        samples=4,
    )


@pytest.mark.parametrize(
    ("needed", "supplied", "instability_pct"),
    [
        pytest.param([1, 2, 3], [1, 2, 3], 0.0, id="both-rise"),
        pytest.param([1, 2, 3], [5, 6, 9], 0.0, id="the-size-of-a-change-does-not-count"),
        pytest.param([1, 2, 1], [1, 2, 3], 50.0, id="one-falls-while-the-other-rises"),
        pytest.param([1, 1, 1], [1, 2, 2], 50.0, id="one-stays-while-the-other-rises"),
        pytest.param([1], [4], None, id="one-sample-has-no-change"),
    ],
)
def test_instability_counts_different_directions(needed: list[int], supplied: list[int], instability_pct: float):
    """100 / (T - 1) times the number of samples at which the signs of the changes differ."""
    assert elasticity(needed, supplied).instability_pct == instability_pct


def test_a_sample_without_demand_has_no_accuracy():
    """It is left out of the thetas and counted; the timeshares have it."""
    found = elasticity([0, 2], [3, 1])
    assert (found.under_accuracy_pct, found.over_accuracy_pct) == (50.0, 0.0)
    assert (found.over_timeshare_pct, found.undefined_samples) == (50.0, 1)


def test_without_any_demand_accuracy_is_undefined():
    """No number stands for an accuracy that does not exist."""
    found = elasticity([0, 0], [1, 0])
    assert (found.under_accuracy_pct, found.over_accuracy_pct, deviation(found)) == (None, None, None)


@pytest.mark.parametrize(
    ("needed", "supplied", "sentence"),
    [
        pytest.param([], [], "at least one", id="no-samples"),
        pytest.param([1], [1, 2], "equally many", id="different-lengths"),
        pytest.param([1], [-1], "negative", id="negative-count"),
    ],
)
def test_wrong_samples_are_rejected(needed: list[int], supplied: list[int], sentence: str):
    """A sentence says what is needed."""
    with pytest.raises(ValueError, match=sentence):
        elasticity(needed, supplied)


def of(under: float | None, over: float, under_time: float, over_time: float) -> Elasticity:
    """Metrics with these four values."""
    return Elasticity(
        under_accuracy_pct=under,
        over_accuracy_pct=over,
        under_timeshare_pct=under_time,
        over_timeshare_pct=over_time,
        instability_pct=0.0,
        jitter=0.0,
        samples=10,
    )


def test_elastic_speedup_is_the_geometric_mean():
    """(8/4 * 10/5 * 20/10 * 20/10) ^ (1/4) = 16 ^ (1/4) = 2."""
    assert elastic_speedup(of(8, 10, 20, 20), of(4, 5, 10, 10)) == pytest.approx(2.0)


@pytest.mark.parametrize("candidate", [of(0, 5, 0, 10), of(None, 5, 0, 10)], ids=["a-zero", "an-undefined-metric"])
def test_elastic_speedup_may_be_undefined(candidate: Elasticity):
    """A ratio to 0 does not exist."""
    assert elastic_speedup(of(8, 10, 20, 20), candidate) is None


def test_deviation_is_a_distance():
    """sqrt(3^2 + 4^2 + 0 + 0 + 0) = 5, and 3 + 4 = 7 for the order 1."""
    assert (deviation(of(3, 4, 0, 0)), deviation(of(3, 4, 0, 0), 1)) == (5.0, 7.0)


def test_a_distance_has_an_order():
    """0 is none."""
    with pytest.raises(ValueError, match="1 or more"):
        deviation(of(3, 4, 0, 0), 0)


@given(COUNTS)
def test_a_supply_that_equals_the_demand_is_perfect(counts: list[tuple[int, int]]):
    """All metrics that are defined are 0."""
    needed = [need for need, _ in counts]
    found = elasticity(needed, needed)
    assert {
        found.under_accuracy_pct or 0.0,
        found.over_accuracy_pct or 0.0,
        found.under_timeshare_pct,
        found.over_timeshare_pct,
        found.instability_pct or 0.0,
        found.jitter,
    } == {0.0}


@given(COUNTS)
def test_bounds(counts: list[tuple[int, int]]):
    """No time counts twice, and no more than all needed pods are missing."""
    found = elasticity(*zip(*counts, strict=True))
    assert 0 <= found.under_timeshare_pct + found.over_timeshare_pct <= 100
    assert 0 <= (found.under_accuracy_pct or 0) <= 100
    assert 0 <= (found.instability_pct or 0) <= 100


@given(COUNTS)
def test_repeating_every_sample_keeps_accuracy_and_timeshares(counts: list[tuple[int, int]]):
    """They are averages over time, whatever the distance of the samples."""
    once, twice = (elasticity(*zip(*samples, strict=True)) for samples in (counts, [c for c in counts for _ in "ab"]))
    assert once.under_timeshare_pct == pytest.approx(twice.under_timeshare_pct)
    assert (once.over_accuracy_pct or 0) == pytest.approx(twice.over_accuracy_pct or 0)
