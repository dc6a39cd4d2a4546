"""The replica calculator of metrics with a value for each pod, as tables.

Source: docs/spec/decision.md 6.3 (Utilisation target), 6.4 (Plain per-pod value), 14 (Test vectors). Unless said
otherwise each pod requests 1000m of CPU and is long ready.
"""

from collections.abc import Sequence

import pytest

from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core import proposals
from podscaler.core.model.observation import IncompleteObservation, Pod, PodSamples
from podscaler.core.model.trace import Outcome, PerPod
from podscaler.core.proposals import MetricResult
from podscaler.testing.decisions import (
    DOWN,
    Json,
    metric_of,
    pod,
    pods,
    pods_metric,
    resource,
    sampled,
    situation,
    values,
)

I32_MIN = -(2**31)


def proposed(
    entry: Json, samples: PodSamples, listed: Sequence[Pod], *, replicas: int | None = None, tolerance: float = 0.1
) -> MetricResult:
    """What a metric proposes."""
    return proposals.of_metric(metric_of(entry), samples, situation(listed, replicas=replicas, tolerance=tolerance))


def outcome(result: MetricResult) -> tuple[int | None, Outcome | None]:
    """The replicas, and how they came about."""
    calculation = result.step.calculation
    assert isinstance(calculation, PerPod)
    return result.step.proposal, calculation.outcome


@pytest.mark.parametrize(
    ("target", "used", "expected"),
    [
        (30, [300, 500, 700], (5, Outcome.SCALED)),
        (30, [200, 300, 400], (3, Outcome.WITHIN_TOLERANCE)),
        (70, [770, 770], (2, Outcome.WITHIN_TOLERANCE)),
        (70, [780, 780], (3, Outcome.SCALED)),
        (50, [450, 450], (2, Outcome.WITHIN_TOLERANCE)),
        (50, [440, 440], (2, Outcome.SCALED)),
        (100, [100, 100, 100, 100], (1, Outcome.SCALED)),
        (50, [0, 0], (0, Outcome.SCALED)),
        (50, [509, 509], (2, Outcome.WITHIN_TOLERANCE)),
    ],
)
def test_all_pods_counted(target: int, used: list[int], expected: tuple[int, Outcome]) -> None:
    """With a sample of every pod: ready pods times the ratio of whole percents, unless it is within tolerance."""
    assert outcome(proposed(resource(utilization=target), sampled(*used), pods(len(used)))) == expected


def test_utilization_is_cut_to_whole_percents() -> None:
    """Usage of 55.9 % on a target of 50 % counts as 55 %, which is within tolerance."""
    result = proposed(resource(utilization=50), sampled(559, 559), pods(2))
    assert outcome(result) == (2, Outcome.WITHIN_TOLERANCE)


@pytest.mark.parametrize(
    ("used", "unready", "replicas", "expected"),
    [
        ([950] * 8 + [None], 1, 10, (10, Outcome.STILL_WITHIN_TOLERANCE)),
        ([350, 350, 350, None, None], 0, 5, (5, Outcome.REFILLED)),
        ([100, 100, 100, None], 0, 4, (2, Outcome.REFILLED)),
        ([2000, 2000, None], 0, 3, (6, Outcome.REFILLED)),
        ([800, None, None], 0, 3, (3, Outcome.DIRECTION_REVERSED)),
        ([600, None], 0, 2, (2, Outcome.DIRECTION_REVERSED)),
        ([2000, 2000], 2, 8, (8, Outcome.WRONG_DIRECTION)),
        ([350, 350], 2, 4, (1, Outcome.SCALED)),
    ],
    ids=[
        "one pending, one missing",
        "missing ones count at their request",
        "missing ones damp a scale-down",
        "missing ones count as idle",
        "filled in, the ratio turns around",
        "filled in once, it turns around too",
        "fewer than there are already",
        "unready ones vanish below target",
    ],
)
def test_missing_and_unready(
    used: list[int | None], unready: int, replicas: int, expected: tuple[int, Outcome]
) -> None:
    """Missing and unready pods are filled in so that they damp the change (target 70 %)."""
    listed = [*pods(len(used)), *[pod(f"u{index}", phase="Pending") for index in range(unready)]]
    assert outcome(proposed(resource(utilization=70), sampled(*used), listed, replicas=replicas)) == expected


def test_unready_pods_vanish_below_target() -> None:
    """10 replicas, 5 of them pending, ratio 0.5: the ready ones alone are scaled, ceil(2.5) = 3."""
    listed = [*pods(5), *[pod(f"u{index}", phase="Pending") for index in range(5)]]
    result = proposed(resource(utilization=50), sampled(*[250] * 5), listed)
    assert outcome(result) == (3, Outcome.SCALED)


def test_a_missing_pod_at_ratio_one_is_not_added() -> None:
    """On target exactly, nothing is assumed for a missing pod."""
    result = proposed(resource(utilization=50), sampled(500, None), pods(2))
    calculation = result.step.calculation
    assert isinstance(calculation, PerPod)
    assert (calculation.second, calculation.pods[1].filled_milli) == (calculation.first, None)


def test_missing_pods_use_their_request_at_most() -> None:
    """On a target above 100 % a missing pod is assumed at the target, below it at its request."""
    for target, assumed in ((150, 1500), (60, 1000)):
        result = proposed(resource(utilization=target), sampled(100, None), pods(2))
        assert isinstance(result.step.calculation, PerPod)
        assert result.step.calculation.pods[1].filled_milli == assumed


def test_unlisted_samples_count_as_entries_only() -> None:
    """A sample of a pod that is gone is not summed for utilization, but multiplies in the second look."""
    result = proposed(resource(utilization=50), sampled(1000, None, gone=5000), pods(2))
    calculation = result.step.calculation
    assert isinstance(calculation, PerPod)
    assert calculation.first is not None
    assert (calculation.first.usage_milli, calculation.second_pods, outcome(result)) == (
        1000,
        3,
        (2, Outcome.STILL_WITHIN_TOLERANCE),
    )


def test_unlisted_samples_enter_averages() -> None:
    """For an average target a sample of a pod that is gone counts like any other."""
    result = proposed(pods_metric("1"), sampled(1000, gone=5000), pods(1))
    assert result.status.pods is not None
    assert (result.status.pods.current, result.step.proposal) == (MetricValueStatus(average_value="3"), 3)


@pytest.mark.parametrize(
    ("used", "target", "expected"),
    [
        ([2000, 4000, 6000], "2", (6, Outcome.SCALED)),
        ([1000, 1000], "1", (2, Outcome.WITHIN_TOLERANCE)),
        ([1, 2], "1m", (2, Outcome.WITHIN_TOLERANCE)),
        ([-3, -4], "1m", (-6, Outcome.SCALED)),
        ([2**63 - 1, 1], "1m", (I32_MIN, Outcome.SCALED)),
    ],
    ids=["scaled", "on target", "the average is cut", "negative, cut toward zero", "the sum wraps"],
)
def test_average_target(used: list[int], target: str, expected: tuple[int, Outcome]) -> None:
    """An average target compares the mean of all samples, in thousandths cut toward zero."""
    assert outcome(proposed(pods_metric(target), sampled(*used), pods(len(used)))) == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [([500, None], (2, Outcome.REFILLED)), ([4000, None], (4, Outcome.REFILLED))],
    ids=["on target before a scale-down", "zero before a scale-up"],
)
def test_missing_pods_of_an_average(used: list[int | None], expected: tuple[int, Outcome]) -> None:
    """A missing pod is assumed on target before a scale-down and idle before a scale-up."""
    assert outcome(proposed(pods_metric("1"), sampled(*used), pods(2))) == expected


@pytest.mark.parametrize(
    ("entry", "used", "current"),
    [
        (resource(utilization=30), 500, MetricValueStatus(average_value="500m", average_utilization=50)),
        (resource(average="100m"), 1500, MetricValueStatus(average_value="1500m")),
        (resource("memory", average="1Gi"), 104_857_600_000, MetricValueStatus(average_value="100Mi")),
        (pods_metric("1"), 104_857_600_000, MetricValueStatus(average_value="104857600")),
    ],
    ids=["utilization", "average", "memory is binary", "custom metrics are decimal"],
)
def test_reported_value(entry: Json, used: int, current: MetricValueStatus) -> None:
    """Status reports the first reading: the average, and the percentage where the target is one."""
    result = proposed(entry, sampled(used), [pod("p0", cpu=1000, memory=1)])
    source = result.status.resource or result.status.pods
    assert source is not None
    assert source.current == current


@pytest.mark.parametrize(
    ("entry", "samples", "listed", "message"),
    [
        (
            resource(utilization=50),
            DOWN,
            pods(1),
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from"
            f" resource metrics API: {DOWN.message}",
        ),
        (
            resource(average="1"),
            PodSamples({}, is_empty=True),
            pods(1),
            "failed to get cpu usage: unable to get metrics for resource cpu: no metrics returned from resource"
            " metrics API",
        ),
        (
            pods_metric(),
            DOWN,
            pods(1),
            f"unable to get metric rps: unable to fetch metrics from custom metrics API: {DOWN.message}",
        ),
        (
            pods_metric(),
            PodSamples({}, is_empty=True),
            pods(1),
            "unable to get metric rps: no metrics returned from custom metrics API",
        ),
        (pods_metric(), sampled(1), [], "no pods returned by selector while calculating replica count"),
        (
            resource(utilization=50),
            sampled(1),
            [],
            "failed to get cpu utilization: no pods returned by selector while calculating replica count",
        ),
        (
            pods_metric(),
            sampled(1),
            pods(1, phase="Pending"),
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
        (
            resource(utilization=50),
            sampled(1, 1),
            [*pods(2), pod("x", phase="Failed", memory=1)],
            "failed to get cpu utilization: missing request for cpu in container app of Pod x",
        ),
        (
            resource(utilization=50),
            sampled(gone=1),
            pods(1),
            "failed to get cpu utilization: no metrics returned matched known pods",
        ),
        (
            resource(utilization=50),
            sampled(1),
            pods(1, cpu=0),
            "failed to get cpu utilization: no metrics returned matched known pods",
        ),
    ],
    ids=[
        "resource API fails",
        "resource API is empty",
        "custom API fails",
        "custom API is empty",
        "no pods",
        "no pods, resource",
        "all unready",
        "request missing on an ignored pod",
        "only strangers",
        "requests add up to nothing",
    ],
)
def test_failures(entry: Json, samples: PodSamples, listed: list[Pod], message: str) -> None:
    """What keeps a metric from a proposal, in upstream's words."""
    failure = proposed(entry, samples, listed).step.failure
    assert failure is not None
    assert failure.message == message


def test_a_failing_metric_still_shows_its_pods() -> None:
    """The trace of a failed metric names the pods and their rules as far as it came."""
    result = proposed(resource(utilization=50), sampled(1), pods(1, phase="Pending"))
    calculation = result.step.calculation
    assert isinstance(calculation, PerPod)
    assert [(each.pod, each.rule) for each in calculation.pods] == [("p0", "Pending")]


def test_wrong_kind_of_answer() -> None:
    """An answer of another metrics API is a mistake of the caller."""
    with pytest.raises(IncompleteObservation, match="an answer by pod is needed"):
        proposals.of_metric(metric_of(pods_metric()), values(1), situation(pods(1)))
