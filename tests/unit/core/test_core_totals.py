"""The replica calculator of metrics with one value for all pods, as tables.

Source: docs/spec/decision.md 6.5 (Object, Value target) to 6.9 (Where overflow shows), 14 (Test vectors).
"""

import pytest

from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core import proposals
from podscaler.core.model.emulation import V1_38
from podscaler.core.model.observation import IncompleteObservation, Measurement, Pod, PodSamples
from podscaler.core.model.settings import Settings
from podscaler.core.proposals import MetricResult
from podscaler.testing.decisions import (
    DOWN,
    Json,
    external_metric,
    metric_of,
    object_metric,
    pod,
    pods,
    situation,
    values,
)

I32_MIN = -(2**31)
I32_MAX = 2**31 - 1
I64_MAX = 2**63 - 1


def proposed(
    entry: Json, answer: Measurement, *, replicas: int = 3, status: int | None = None, listed: list[Pod] | None = None
) -> MetricResult:
    """What a metric proposes."""
    pods_listed = pods(replicas) if listed is None else listed
    scene = situation(pods_listed, replicas=replicas, status_replicas=status)
    return proposals.of_metric(metric_of(entry), answer, scene)


def current(result: MetricResult) -> MetricValueStatus:
    """The reported value."""
    source = result.status.object or result.status.external
    assert source is not None
    return source.current


@pytest.mark.parametrize("make", [object_metric, external_metric], ids=["Object", "External"])
@pytest.mark.parametrize(
    ("target", "usage", "replicas", "proposal"),
    [
        ("10", 20_000, 3, 6),
        ("10", 11_000, 3, 3),
        ("10", 11_001, 3, 4),
        ("10", 9_000, 3, 3),
        ("10", 8_999, 3, 3),
        ("10", 5_000, 3, 2),
        ("10", 0, 3, 0),
        ("10", -5_000, 3, -1),
        ("10", 100, 0, 1),
        ("10", 25_000, 0, 3),
        ("10", 0, 0, 0),
        ("1m", I64_MAX, 3, I32_MAX),
        ("1m", I64_MAX, 0, I32_MIN),
    ],
)
def test_value_target(make: type, target: str, usage: int, replicas: int, proposal: int) -> None:
    """Ready pods times the ratio outside tolerance; from zero the ratio alone, rounded up, without saturation."""
    result = proposed(make(value=target), values(usage), replicas=replicas)
    assert result.step.proposal == proposal


def test_value_target_counts_ready_pods() -> None:
    """Pods that are not ready do not multiply."""
    listed = [pod("a"), pod("b", ready="False"), pod("c", phase="Pending")]
    assert proposed(object_metric(value="1"), values(2000), listed=listed).step.proposal == 2


def test_value_target_looks_at_pods_only_outside_tolerance() -> None:
    """Without pods a value within tolerance still means no change; outside it is an error."""
    within = proposed(object_metric(value="1"), values(1000), listed=[])
    outside = proposed(object_metric(value="1"), values(2000), listed=[])
    assert outside.step.failure is not None
    assert (within.step.proposal, outside.step.failure.message) == (
        3,
        "unable to calculate ready pods: no pods returned by selector while calculating replica count",
    )


@pytest.mark.parametrize(
    ("make", "target", "usage", "status", "proposal", "reported"),
    [
        (object_metric, "10", 60_000, 3, 6, "20"),
        (object_metric, "10", 33_000, 3, 3, "11"),
        (object_metric, "10", 33_001, 3, 4, "11001m"),
        (object_metric, "1", 5_000, 0, 5, "-9223372036854775808m"),
        (object_metric, "1", 0, 0, 0, "-9223372036854775808m"),
        (object_metric, "1m", 10**17, 3, I32_MIN, "33333333333333332m"),
        (external_metric, "1", 4_000, 3, 4, "1334m"),
        (external_metric, "1m", 10**17, 3, I32_MAX, "33333333333333332m"),
        (external_metric, "1", 0, 0, 0, "-9223372036854775808m"),
        (external_metric, "1", I64_MAX, 0, I32_MAX, "9223372036854775807m"),
    ],
)
def test_average_target(make: type, target: str, usage: int, status: int, proposal: int, reported: str) -> None:
    """The value over the target, unless it is close to the target times the replicas of the status."""
    result = proposed(make(average=target), values(usage), status=status)
    assert (result.step.proposal, current(result)) == (proposal, MetricValueStatus(average_value=reported))


@pytest.mark.parametrize(
    ("added", "by_value", "by_average"),
    [
        ((1000, 2000), "3", "1"),
        ((5000, -1000), "4", "1334m"),
        ((-1000, 5000), "4", "9223372036854775807m"),
        ((I64_MAX, 1), "9223372036854775807m", "9223372036854775807m"),
        ((I64_MAX, 1, -5), "9223372036854775807m", "9223372036854775807m"),
        ((-5, I64_MAX), "9223372036854775802m", "9223372036854775807m"),
    ],
)
def test_sums_of_external_values(added: tuple[int, ...], by_value: str, by_average: str) -> None:
    """Values are added in order; Value targets stop at the largest int64, AverageValue targets at a negative sum."""
    total = proposed(external_metric(value="1"), values(*added))
    average = proposed(external_metric(average="1"), values(*added))
    assert (current(total).value, current(average).average_value) == (by_value, by_average)


@pytest.mark.parametrize(
    ("entry", "proposal", "reported"),
    [
        (object_metric(average="1m"), I32_MAX, "100T"),
        (external_metric(average="1m"), I32_MAX, "100T"),
        (object_metric(value="1m"), I32_MAX, "100T"),
    ],
    ids=["Object average", "External average", "Object value from zero"],
)
def test_version_1_38(entry: Json, proposal: int, reported: str) -> None:
    """v1.38 saturates everywhere, and reports the total where the status shows no replicas."""
    scene = situation([], replicas=0, status_replicas=0, settings=Settings(emulation=V1_38))
    result = proposals.of_metric(metric_of(entry), values(10**17), scene)
    shown = current(result).value or current(result).average_value
    assert (result.step.proposal, shown) == (proposal, reported)


FETCH_OBJECT = "unable to get metric rps on Ingress default/main: unable to fetch metrics from custom metrics API: "
FETCH_EXTERNAL = "unable to get external metric default/queue/nil: "


@pytest.mark.parametrize(
    ("entry", "answer", "message"),
    [
        (object_metric(value="1"), DOWN, f"{FETCH_OBJECT}{DOWN.message}"),
        (
            object_metric(value="1"),
            values(),
            f"{FETCH_OBJECT}the custom metrics API server returned 0 results when we asked for exactly one",
        ),
        (
            object_metric(average="1"),
            values(1, 2),
            f"{FETCH_OBJECT}the custom metrics API server returned 2 results when we asked for exactly one",
        ),
        (
            external_metric(value="1"),
            DOWN,
            f"{FETCH_EXTERNAL}unable to fetch metrics from external metrics API: {DOWN.message}",
        ),
        (
            external_metric(average="1"),
            values(),
            f"{FETCH_EXTERNAL}no metrics returned from external metrics API",
        ),
    ],
    ids=["object fails", "no value", "two values", "external fails", "external is empty"],
)
def test_failures(entry: Json, answer: Measurement, message: str) -> None:
    """What keeps a metric from a proposal, in upstream's words."""
    failure = proposed(entry, answer).step.failure
    assert failure is not None
    assert failure.message == message


@pytest.mark.parametrize("entry", [object_metric(value="1"), external_metric(value="1")])
def test_wrong_kind_of_answer(entry: Json) -> None:
    """An answer by pod is a mistake of the caller."""
    with pytest.raises(IncompleteObservation, match="an answer with values is needed"):
        proposed(entry, PodSamples({}))
