"""Where numbers do not fit: wrapping sums, percentages and policies, floats out of range, NaN.

Source: docs/spec/decision.md 1.1 (Integer and float semantics), 6.3 (Utilisation target) to 6.9 (Where overflow shows),
9.3 (Rates and bounds), 13 (Differences of v1.38 alpha). Upstream's validation keeps most of these out, but not its
arithmetic.
"""

from collections.abc import Sequence

import pytest

from podscaler.core import proposals
from podscaler.core.limits import policies
from podscaler.core.limits.policies import PolicyFacts
from podscaler.core.model.emulation import V1_37, V1_38
from podscaler.core.model.history import History, ScaleEvent
from podscaler.core.model.observation import Pod
from podscaler.core.model.settings import DEFAULT, Settings
from podscaler.core.model.spec import Behavior, Policy, Rules
from podscaler.core.model.trace import Outcome, PerPod
from podscaler.core.proposals import MetricResult
from podscaler.testing.decisions import (
    NOW,
    SECOND,
    Json,
    external_metric,
    metric_of,
    object_metric,
    pods,
    pods_metric,
    resource,
    sampled,
    situation,
    values,
)

I32_MAX, I32_MIN = 2**31 - 1, -(2**31)
I64_MAX = 2**63 - 1
ON_1_38 = Settings(emulation=V1_38)


def proposed(entry: Json, used: Sequence[int | None], listed: list[Pod], settings: Settings = DEFAULT) -> MetricResult:
    """What a metric of pods proposes."""
    return proposals.of_metric(metric_of(entry), sampled(*used), situation(listed, settings=settings))


def looked(result: MetricResult) -> tuple[int | None, Outcome | None]:
    """The proposal and how it came about."""
    calculation = result.step.calculation
    assert isinstance(calculation, PerPod)
    return result.step.proposal, calculation.outcome


@pytest.mark.parametrize(
    ("used", "request_milli", "target", "shown", "proposal"),
    [
        ([2147483653], 100, 50, -2147483643, -42949672),
        ([4294967301], 100, 50, 5, 1),
        ([I64_MAX], 1, 50, -100, -2),
        ([-50, -50], 100, 50, -50, -2),
        ([21474836, 21474836], 1, 1, 2147483600, I32_MIN),
        ([-21474836, -21474836], 1, 1, -2147483600, I32_MIN),
        ([0], 100, 0, 0, I32_MIN),
        ([1], 100, 0, 1, I32_MIN),
    ],
    ids=[
        "low 32 bits of the percentage",
        "low 32 bits, positive",
        "the product wraps",
        "negative usage",
        "too many replicas",
        "too few replicas",
        "0/0",
        "1/0",
    ],
)
def test_utilization(used: list[int], request_milli: int, target: int, shown: int, proposal: int) -> None:
    """A percentage keeps its low 32 bits; a count that is no int32 becomes the smallest one."""
    result = proposed(resource(utilization=target), used, pods(len(used), cpu=request_milli))
    assert result.status.resource is not None
    assert (result.status.resource.current.average_utilization, result.step.proposal) == (shown, proposal)


def test_requests_that_add_up_to_nothing() -> None:
    """A sum of requests that wraps to zero is as if no pod were known."""
    result = proposed(resource(utilization=50), [1, 1, 1, 1], pods(4, cpu=2**62))
    assert result.step.failure is not None
    assert result.step.failure.message.endswith("no metrics returned matched known pods")


def test_request_of_a_missing_pod_wraps() -> None:
    """What is assumed for a missing pod is its request times 100, wrapped, by 100."""
    result = proposed(resource(utilization=50), [1, None], [*pods(1), pods(2, cpu=2**62)[1]])
    calculation = result.step.calculation
    assert isinstance(calculation, PerPod)
    assert calculation.pods[1].filled_milli == 0


@pytest.mark.parametrize(
    ("entry", "used", "v1_37", "v1_38"),
    [
        (resource(utilization=1), [32212254, 32212254], (I32_MIN, Outcome.SCALED), (I32_MAX, Outcome.SCALED)),
        (
            resource(utilization=1),
            [32212254, 32212254, None],
            (3, Outcome.WRONG_DIRECTION),
            (I32_MAX, Outcome.REFILLED),
        ),
        (pods_metric("1m"), [I32_MAX, I32_MAX], (I32_MIN, Outcome.SCALED), (I32_MAX, Outcome.SCALED)),
        (pods_metric("1m"), [I32_MAX, I32_MAX, None], (3, Outcome.WRONG_DIRECTION), (I32_MAX, Outcome.REFILLED)),
    ],
    ids=["utilization", "utilization, second look", "average", "average, second look"],
)
def test_overflowing_counts(
    entry: Json, used: list[int | None], v1_37: tuple[int, Outcome], v1_38: tuple[int, Outcome]
) -> None:
    """In v1.37 too many replicas are the smallest int32 (a turn, to the second look), in v1.38 the largest."""
    listed = pods(len(used), cpu=2)
    assert looked(proposed(entry, used, listed)) == v1_37
    assert looked(proposed(entry, used, listed, ON_1_38)) == v1_38


@pytest.mark.parametrize("make", [object_metric, external_metric], ids=["Object", "External"])
@pytest.mark.parametrize(
    ("target", "usage", "replicas", "proposal"),
    [
        ("1", I32_MAX * 1000, 1, I32_MAX),
        ("1", I32_MAX * 1000 + 1, 1, I32_MAX),
        ("1", -I32_MAX * 1000, 1, -I32_MAX),
        ("1m", -I64_MAX, 1, I32_MIN),
        ("0", 1, 1, I32_MAX),
        ("0", -1, 1, I32_MIN),
        ("0", 0, 1, I32_MIN),
        ("1", I32_MAX * 1000, 0, I32_MAX),
        ("1", I32_MAX * 1000 + 1, 0, I32_MIN),
        ("0", 0, 0, I32_MIN),
    ],
)
def test_value_targets(make: type, target: str, usage: int, replicas: int, proposal: int) -> None:
    """Totals saturate upwards unless the target is at zero; what is no number is the smallest int32."""
    scene = situation(pods(replicas), replicas=replicas)
    assert proposals.of_metric(metric_of(make(value=target)), values(usage), scene).step.proposal == proposal


@pytest.mark.parametrize(
    ("usage", "proposal", "reported"),
    [(1, 1, "-9223372036854775808m"), (0, 0, "-9223372036854775808m"), (-1500, -1, "-9223372036854775808m")],
)
def test_average_over_no_replicas(usage: int, proposal: int, reported: str) -> None:
    """Over no replicas the ratio is infinite or no number; the proposal stands, the report is the smallest int64."""
    scene = situation([], replicas=0, status_replicas=0)
    result = proposals.of_metric(metric_of(object_metric(average="1")), values(usage), scene)
    assert result.status.object is not None
    assert (result.step.proposal, result.status.object.current.average_value) == (proposal, reported)


def rates(
    rules: Rules, *, ups: tuple[int, ...] = (), downs: tuple[int, ...] = (), version: str = "1.37"
) -> PolicyFacts:
    """The same rules in both directions, with changes of a moment ago."""
    past = History((), *[tuple(ScaleEvent(change, NOW) for change in changes) for changes in (ups, downs)])
    return PolicyFacts(Behavior(rules, rules), past, NOW, V1_38 if version == "1.38" else V1_37)


def only(kind: str, value: int, select: str = "Max") -> Rules:
    """One policy of a minute."""
    return Rules(0, select, (Policy(kind, value, 60 * SECOND),), None, 60 * SECOND)


@pytest.mark.parametrize(("select", "up", "down"), [("Max", 7, 7), ("Min", I32_MAX, I32_MIN)])
def test_no_policies(select: str, up: int, down: int) -> None:
    """Without any policy (which the API refuses) the start value of the selection survives: Max allows no change."""
    none = rates(Rules(0, select, (), None, 0))
    limits = (policies.scale_up_limit(none, 7).limit, policies.scale_down_limit(none, 7).limit)
    assert limits == (up, down)


@pytest.mark.parametrize(
    ("rules", "ups", "downs", "current", "up", "down"),
    [
        (only("Pods", I32_MAX), (), (), 1, 1, 1 - I32_MAX),
        (only("Pods", I32_MAX), (), (), 0, I32_MAX, -I32_MAX),
        (only("Pods", I32_MAX), (10,), (), 5, I32_MAX - 5, 5),
        (only("Pods", 1), (I32_MAX, I32_MAX), (), 5, 8, 5),
        (only("Percent", 100), (10,), (), 5, 5, 0),
        (only("Percent", I32_MAX), (), (), 200, 200, I32_MIN),
        (only("Percent", 100), (), (I32_MAX,), 5, 5, 0),
    ],
    ids=[
        "up wraps below zero",
        "from zero it fits",
        "down wraps above the start",
        "the sum of changes wraps",
        "a negative start",
        "a percentage out of range",
        "removed ones wrap",
    ],
)
def test_policies(rules: Rules, ups: tuple[int, ...], downs: tuple[int, ...], current: int, up: int, down: int) -> None:
    """Pods policies wrap, percentages out of range are the smallest int32; the current count is the nearest limit."""
    found = rates(rules, ups=ups, downs=downs)
    limits = (policies.scale_up_limit(found, current).limit, policies.scale_down_limit(found, current).limit)
    assert limits == (up, down)


@pytest.mark.parametrize("version", ["1.37", "1.38"])
def test_pods_policies_wrap_in_all_versions(version: str) -> None:
    """v1.38 saturates percentages only."""
    found = rates(only("Pods", I32_MAX), version=version)
    assert policies.scale_up_limit(found, 1).limit == 1
