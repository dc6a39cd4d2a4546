"""What an explanation says about last values, ignored metrics and fallback replicas."""

import pytest

from podscaler.core.model import history
from podscaler.core.model.history import History
from podscaler.explain import explained
from podscaler.explain.explained import Explanation
from podscaler.explain.explanation_parts import Line
from podscaler.testing.decisions import (
    DOWN,
    NOW,
    SECOND,
    Json,
    decided,
    external_metric,
    observed,
    resource,
    scaler,
    using,
    values,
)

MINUTE = 60 * SECOND
ERROR = (
    "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
    "the server is currently unable to handle the request"
)
ALL: Json = {"keepLastFor": "5m", "ignoreFailed": True, "fallback": {"replicas": 4, "after": "10m"}}
LONG_AGO = History((history.Recommendation(1, NOW - 3600 * SECOND),))


def explain(seconds: int, *metrics: Json, current: int = 5) -> Explanation:
    """Metrics of which the first was read at NOW and fails after so many seconds; the others propose 3."""
    spec = scaler(*metrics, on_failure=ALL)
    others = [values(3000) for _ in metrics[1:]]
    first = using(current, 810) if metrics[0]["type"] == "Resource" else values(8000)
    past = decided(spec, observed(first, *others, replicas=current), LONG_AGO).history
    past = decided(spec, observed(DOWN, *others, replicas=current), past, NOW + SECOND).history
    return explained.of_decision(decided(spec, observed(DOWN, *others, replicas=current), past, NOW + seconds * SECOND))


def lines(explanation: Explanation, *labels: str) -> list[Line]:
    """The lines with these labels."""
    return [line for section in explanation.steps for line in section.lines if line.label in labels]


QUEUE = external_metric(average="1")
TOTAL = external_metric(value="1")


@pytest.mark.parametrize(
    ("explanation", "summary"),
    [
        (
            explain(61, QUEUE),
            "goes from 5 to 8: external metric queue cannot be read, and was 1600m a pod 1 min 1 s ago, "
            f"target 1 a pod; the error is: {ERROR}",
        ),
        (
            explain(61, resource(utilization=50)),
            "goes from 5 to 9: cpu cannot be read, and was 81 % of requests 1 min 1 s ago, target 50 %; "
            "the error is: failed to get cpu utilization: unable to get metrics for resource "
            "cpu: unable to fetch metrics from resource metrics API: "
            "the server is currently unable to handle the request",
        ),
        (
            explain(2, QUEUE, current=8),
            "stays at 8: external metric queue cannot be read, and was 1 a pod 2 s ago, target 1 a pod, "
            f"which comes to 8 again; the error is: {ERROR}",
        ),
        (
            explain(1000, QUEUE, external_metric(average="1")),
            "goes from 5 to 3: external metric queue is 3 in total, target 1 a pod; 1 of its 2 metrics cannot be "
            f"evaluated, which prevents no scale-down: metrics[0]: {ERROR}",
        ),
        (
            explain(1000, QUEUE),
            "goes from 5 to 4: no metric can be read for 16 min 39 s, and the fallback replicas are 4; "
            f"the error is: {ERROR}",
        ),
    ],
    ids=["last value", "last utilization", "steady", "ignored", "fallback"],
)
def test_the_sentence(explanation: Explanation, summary: str) -> None:
    """It says that a value is old, and how old, or that the fallback replicas apply."""
    assert explanation.summary == f"default/web {summary}."


def test_fallback_replicas_that_wait() -> None:
    """A window holds them back like any proposal."""
    spec = scaler(QUEUE, on_failure={"fallback": {"replicas": 1, "after": "0s"}})
    past = History((history.Recommendation(5, NOW - MINUTE),))
    assert explained.of_decision(decided(spec, observed(DOWN, replicas=5), past)).summary.startswith(
        "default/web stays at 5: no metric can be read, and the fallback replicas are 1, but a recommendation of 5 "
        "from 1 min ago holds back scaling down for 5 min; earliest change in 4 min, to 1"
    )


def test_the_steps_of_a_last_value() -> None:
    """The policy, the failure, the value with its age, and what it asked for."""
    assert lines(explain(61, QUEUE), "policy", "failed", "last value", "proposal", "metrics") == [
        Line(
            "policy",
            "for metrics that fail: their last values count for 5 min, the others may scale down, "
            "4 replicas after 10 min without any metric",
        ),
        Line("failed", ERROR),
        Line("last value", "1600m a pod 1 min 1 s ago"),
        Line("proposal", "8, as then"),
        Line("metrics", "8 by metrics[0]; failed: metrics[0]"),
    ]


def test_the_steps_of_fallback_replicas() -> None:
    """Since when no metric can be read, and the replicas."""
    assert lines(explain(1000, QUEUE), "unread", "metrics") == [
        Line("unread", "no metric can be read since 2026-01-01T00:00:01Z, 16 min 39 s ago"),
        Line("metrics", "no metric can be read for 16 min 39 s, and the fallback replicas are 4; failed: metrics[0]"),
    ]


def test_an_invalid_policy() -> None:
    """The explanation names the fault."""
    spec = scaler(QUEUE, on_failure={"keepLastFor": "soon"})
    found = explained.of_decision(decided(spec, observed(DOWN)))
    assert lines(found, "policy") == [
        Line(
            "policy",
            "the failure policy is invalid and does not count: spec.onMetricFailure.keepLastFor: "
            '"soon" is not a duration such as 90s or 5m',
        )
    ]
