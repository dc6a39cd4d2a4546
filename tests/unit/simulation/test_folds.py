"""Changes of measures over folds, and the scores of folds."""

import math

import pytest
import simulated

from podscaler.api.typed import autoscaling
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.simulation.search import folds, scoring
from podscaler.simulation.search.folds import FoldedScores, RelativeChange
from podscaler.simulation.search.scores import Scores
from podscaler.simulation.search.scoring import ScoredPart

REFERENCE = autoscaling.CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1")
SPEC = HorizontalPodAutoscalerSpec(scale_target_ref=REFERENCE, min_replicas=1, max_replicas=10)


def scores(**values: float) -> Scores:
    """Scores that are 0 unless stated otherwise."""
    return Scores(**{field: values.get(field, 0.0) for field in Scores.__struct_fields__})


def folded(*pod_hours: float) -> FoldedScores:
    """Folds with these pod-hours."""
    return FoldedScores(scores(pod_hours=sum(pod_hours)), tuple([scores(pod_hours=each) for each in pod_hours]))


@pytest.mark.parametrize(
    ("candidate", "present", "expected"),
    [
        pytest.param((9, 9), (10, 10), RelativeChange(-0.1, 0.0), id="the same gain in each fold"),
        pytest.param((6, 10), (10, 10), RelativeChange(-0.2, 0.2), id="a gain of one fold"),
        pytest.param((5, 15), (10, 10), RelativeChange(0.0, 0.5), id="gain and loss"),
    ],
)
def test_a_change_has_its_error(candidate, present, expected):
    """In relation to the present value of a fold."""
    found = folds.change("pod-hours", folded(*candidate), folded(*present))
    assert (found.mean, found.error) == (pytest.approx(expected.mean), pytest.approx(expected.error))


def test_without_folds_there_is_no_error():
    """The whole part is compared."""
    found = folds.change("pod-hours", FoldedScores(scores(pod_hours=12)), FoldedScores(scores(pod_hours=10)))
    assert (found.cautious, found.error) == (pytest.approx(0.2), 0.0)


@pytest.mark.parametrize(
    ("own", "other", "is_worse"),
    [
        pytest.param(0.0005, 0, False, id="next to nothing is nothing"),
        pytest.param(0.16, 0, True, id="some instead of nothing"),
        pytest.param(10.05, 10, False, id="half a percent more"),
        pytest.param(10.2, 10, True, id="two percent more"),
    ],
)
def test_when_a_measure_is_worse(own, other, is_worse):
    """From one percent on."""
    found = folds.is_worse("under-amount", scores(under_amount_pct=own), scores(under_amount_pct=other))
    assert found == is_worse


def part(syncs: int = 240) -> ScoredPart:
    """A load that rises and falls, and needs one or two pods."""
    steps = {second: 0.1 if second % 1800 < 900 else 0.4 for second in range(0, syncs * 15, 900)}
    stated = simulated.scenario(simulated.web(simulated.load(steps)), simulated.cpu_spec(), seconds=syncs * 15 - 15)
    return ScoredPart(scenario=stated, from_ms=0, needed=[1 + (index % 120 >= 60) for index in range(syncs)])


def test_folds_add_up_to_the_whole():
    """Sums are those of the part; shares are its averages."""
    (found,) = scoring.fold_evaluator(part(), 4, pytest.fail)([SPEC])
    assert len(found.folds) == 4
    assert math.fsum(each.pod_hours for each in found.folds) == pytest.approx(found.whole.pod_hours)
    averages = math.fsum(each.over_amount_pct for each in found.folds) / 4
    assert averages == pytest.approx(found.whole.over_amount_pct)
    assert [found.whole] == scoring.evaluator(part(), pytest.fail)([SPEC])


@pytest.mark.parametrize(
    ("syncs", "count"),
    [pytest.param(240, 6, id="long"), pytest.param(50, 2, id="short"), pytest.param(10, 1, id="tiny")],
)
def test_short_parts_have_fewer_folds(syncs, count):
    """A fold has at least 20 syncs."""
    assert scoring.fold_count(part(syncs)) == count


def test_the_exact_engine_has_no_folds():
    """It would simulate each beginning anew."""
    workload = simulated.web(simulated.load({0: 0.1}), pod=simulated.pod(crashes_per_hour=0.001))
    stated = simulated.scenario(workload, simulated.cpu_spec(), seconds=3585)
    assert scoring.fold_count(ScoredPart(scenario=stated, from_ms=0, needed=[1] * 240)) == 1
