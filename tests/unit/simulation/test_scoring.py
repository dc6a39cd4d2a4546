"""Candidates scored on the two parts of a load."""

import msgspec
import pytest
import simulated

from podscaler.api.typed import autoscaling
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.simulation.search import scoring
from podscaler.simulation.search.scoring import ScoredPart

REFERENCE = autoscaling.CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1")


def wire(minimum: int, **more) -> HorizontalPodAutoscalerSpec:
    """An autoscaler over CPU at 50 %."""
    target = autoscaling.MetricTarget(type="Utilization", average_utilization=50)
    source = autoscaling.ResourceMetricSource(name="cpu", target=target)
    metric = autoscaling.MetricSpec(type="Resource", resource=source)
    return HorizontalPodAutoscalerSpec(
        scale_target_ref=REFERENCE, min_replicas=minimum, max_replicas=10, metrics=(metric,), **more
    )


def parts(**more):
    """A scenario of 20 syncs: no load, then half a core in its second half; two pods are needed for it."""
    load = simulated.load({0: 0, 150: 0.4})
    stated = simulated.scenario(simulated.web(load, **more), simulated.cpu_spec(), seconds=285)
    return scoring.split(ScoredPart(scenario=stated, from_ms=0, needed=[1] * 10 + [2] * 10), 0.5)


def test_the_first_part_ends_where_the_later_one_begins():
    """Both together are the whole scenario."""
    first, later = parts()
    assert (first.scenario.duration_ms, first.from_ms) == (149_999, 0)
    assert (later.scenario.duration_ms, later.from_ms) == (285_000, 150_000)


def test_pods_are_counted_in_their_part():
    """Three pods always: 2.5 minutes of each part, and surplus in both."""
    first, later = (scoring.evaluator(part, pytest.fail)([wire(3)])[0] for part in parts())
    assert first.pod_hours == pytest.approx(3 * 135 / 3600, abs=0.05)
    assert first.over_provisioned_pct > 80
    assert (first.lost_pct, first.scale_changes) == (0, 1)
    assert later.scale_changes == 1


def test_too_few_pods_are_counted():
    """One pod is too few until the second one is ready."""
    _, later = parts()
    (scores,) = scoring.evaluator(later, pytest.fail)([wire(1)])
    assert 0 < scores.under_provisioned_pct < 50
    assert scores.under_amount_pct == pytest.approx(scores.under_provisioned_pct / 2)


def test_what_the_batch_engine_does_not_cover_is_told():
    """Pods that crash are simulated by the exact engine."""
    first, _ = parts(pod=simulated.pod(crashes_per_hour=0.001))
    told = []
    scoring.evaluator(first, told.append)([wire(1), wire(2)])
    assert told == ["pods with random durations or crashes are not covered"] * 2


def test_a_part_without_syncs():
    """Shares that leave nothing for one of the parts."""
    with pytest.raises(ValueError, match="a load of 3 syncs cannot be divided at 1%"):
        scoring.split(msgspec.structs.replace(parts()[0], needed=[1, 1, 1]), 0.01)
