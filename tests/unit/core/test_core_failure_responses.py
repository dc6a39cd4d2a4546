"""Decisions while metrics cannot be read: last values, ignored metrics, fallback replicas.

Each metric is an External one whose value over its target is the proposal.
"""

import msgspec
import pytest

from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core.decision import Decision
from podscaler.core.model import history
from podscaler.core.model.history import History
from podscaler.core.model.observation import Measurement
from podscaler.core.model.trace import Combination, FailurePolicyStep, FailureResponse, KeptProposal
from podscaler.testing.decisions import (
    DOWN,
    NOW,
    NOW_TEXT,
    SECOND,
    Json,
    condition_rows,
    conditions,
    decided,
    event_rows,
    external_metric,
    messages,
    observed,
    scaler,
    values,
)

MINUTE = 60 * SECOND
KEEP: Json = {"keepLastFor": "5m"}
IGNORE: Json = {"ignoreFailed": True}
FALLBACK: Json = {"fallback": {"replicas": 4, "after": "10m"}}
ERROR = (
    "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
    "the server is currently unable to handle the request"
)
QUEUE = external_metric(average="1")
JOBS = external_metric(average="2")


def answer(proposal: int | None, target: int) -> Measurement:
    """The measurement that gives a proposal (None: a failure)."""
    return DOWN if proposal is None else values(proposal * target * 1000)


def sync(
    policy: Json | None, *proposals: int | None, past: History = history.EMPTY, now: int = NOW, replicas: int = 5
) -> Decision:
    """The decision with metrics that propose these counts (None: failing)."""
    spec = scaler(QUEUE, JOBS, on_failure=policy) if len(proposals) == 2 else scaler(QUEUE, on_failure=policy)
    answers = [answer(each, index + 1) for index, each in enumerate(proposals)]
    return decided(spec, observed(*answers, replicas=replicas), past, now)


def active(decision: Decision) -> tuple[str, str]:
    """Status and reason of ScalingActive."""
    return next((status, reason) for kind, status, reason in condition_rows(decision) if kind == "ScalingActive")


@pytest.mark.parametrize(
    ("age", "replicas"),
    [(1, 8), (5 * MINUTE, 8), (5 * MINUTE + 1, None)],
    ids=["just failed", "for the whole time", "too old"],
)
def test_the_last_value_counts_for_its_time(age: int, replicas: int | None) -> None:
    """The proposal of the last sync that could read the metric holds, its instant plus 5 minutes included."""
    before = sync(KEEP, 8)
    assert sync(KEEP, None, past=before.history, now=NOW + age).replicas == replicas


def test_a_kept_value_is_visible() -> None:
    """Condition, events, status, error and trace say that the value is old."""
    decision = sync(KEEP, None, past=sync(KEEP, 8).history, now=NOW + MINUTE)
    failure = f"the HPA uses the last value of external metric queue(nil), read at {NOW_TEXT}: {ERROR}"
    assert (active(decision), messages(decision)["ScalingActive"]) == (("True", "LastMetricValueKept"), failure)
    assert event_rows(decision)[:2] == [
        ("Warning", "FailedGetExternalMetric", ERROR),
        ("Warning", "LastMetricValueKept", failure),
    ]
    assert decision.status.current_metrics == sync(KEEP, 8).status.current_metrics
    assert decision.error.startswith("invalid metrics (1 invalid out of 1), first error is: ")
    assert decision.trace.metrics[0].kept == KeptProposal(NOW, MetricValueStatus(average_value="1600m"))
    assert decision.trace.failure_policy == FailurePolicyStep(keep_last_ns=5 * MINUTE)


def test_a_kept_value_takes_part_in_the_choice() -> None:
    """The largest proposal wins, whether it was read now or before."""
    past = sync(KEEP, 8, 6).history
    assert [sync(KEEP, *each, past=past).replicas for each in ((None, 6), (None, 9), (8, None))] == [8, 9, 8]


def test_the_last_value_of_an_edited_metric_does_not_count() -> None:
    """With another target the old proposal says nothing."""
    past = sync(KEEP, 8).history
    other = decided(scaler(JOBS, on_failure=KEEP), observed(DOWN, replicas=5), past)
    assert (other.replicas, other.history.last_proposals) == (None, ())


def test_a_kept_value_is_not_renewed() -> None:
    """Syncs without a value leave the instant of the last one as it is."""
    past = sync(KEEP, 8).history
    later = sync(KEEP, None, past=past, now=NOW + MINUTE).history
    assert later.last_proposals == past.last_proposals


@pytest.mark.parametrize(
    ("proposals", "replicas", "reason"),
    [
        ((None, 3), 3, "FailedMetricIgnored"),
        ((None, 8), 8, "ValidMetricFound"),
        ((None, 5), None, "ValidMetricFound"),
        ((None, None), None, "FailedGetExternalMetric"),
    ],
    ids=["down", "up", "no change", "all fail"],
)
def test_ignoring(proposals: tuple[int | None, int | None], replicas: int | None, reason: str) -> None:
    """A failed metric no longer prevents a scale-down; without any metric there is no conclusion still."""
    decision = sync(IGNORE, *proposals, past=RECENT)
    assert (decision.replicas, active(decision)[1]) == (replicas, reason)


RECENT = History((history.Recommendation(1, NOW - MINUTE),))


def test_an_ignored_metric_is_named() -> None:
    """The event names the metric and its error."""
    decision = sync(IGNORE, None, 3, past=RECENT)
    assert event_rows(decision)[1] == (
        "Warning",
        "FailedMetricIgnored",
        f"the HPA ignores external metric queue(nil): {ERROR}",
    )


def test_last_values_count_before_failures_are_ignored() -> None:
    """While the last value of a metric counts, it is not ignored; afterwards it is."""
    policy, past = KEEP | IGNORE, sync(KEEP, 5, 3).history
    kept = sync(policy, None, 3, past=past, now=NOW + MINUTE)
    ignored = sync(policy, None, 3, past=past, now=NOW + 6 * MINUTE)
    assert [(each.trace.limits and each.trace.limits.wanted, active(each)[1]) for each in (kept, ignored)] == [
        (5, "LastMetricValueKept"),
        (3, "FailedMetricIgnored"),
    ]


@pytest.mark.parametrize(
    ("seconds", "replicas"), [(0, None), (599, None), (600, 4)], ids=["first", "just before", "after 10 minutes"]
)
def test_fallback_replicas_apply_after_their_time(seconds: int, replicas: int | None) -> None:
    """The time begins with the first of the syncs in a row that could read no metric."""
    past = sync(FALLBACK, None, replicas=3).history
    decision = sync(FALLBACK, None, past=past, now=NOW + seconds * SECOND, replicas=3)
    assert decision.replicas == replicas


def test_fallback_replicas_are_visible() -> None:
    """The rescale has a reason of its own, and the trace the instant since which nothing could be read."""
    past = sync(FALLBACK, None, replicas=3).history
    decision = sync(FALLBACK, None, past=past, now=NOW + 10 * MINUTE, replicas=3)
    applied = f"the HPA applies the fallback replicas (4): {ERROR}"
    assert event_rows(decision) == [
        ("Warning", "FailedGetExternalMetric", ERROR),
        ("Warning", "FallbackReplicasApplied", applied),
        ("Normal", "SuccessfulRescale", "New size: 4; reason: no metric could be read, fallback replicas"),
    ]
    assert (active(decision), messages(decision)["ScalingActive"]) == (("True", "FallbackReplicasApplied"), applied)
    assert decision.trace.combination == Combination(
        4, None, (0,), decision.error, responses=(FailureResponse.FALLBACK,)
    )
    assert decision.trace.failure_policy == FailurePolicyStep(
        fallback_replicas=4, fallback_after_ns=10 * MINUTE, unread_since=NOW
    )


def test_one_metric_that_can_be_read_ends_the_row() -> None:
    """The time begins anew, even where the sync concludes nothing."""
    past = sync(FALLBACK, None, None).history
    between = sync(FALLBACK, None, 3, past=past, now=NOW + 9 * MINUTE)
    assert (between.replicas, between.history.unread_since) == (None, None)


def test_a_paused_target_ends_the_row() -> None:
    """A target that others scaled to zero is left alone, and its time does not go on."""
    past = sync(FALLBACK, None).history
    assert sync(FALLBACK, None, past=past, replicas=0).history.unread_since is None


def test_last_values_count_before_fallback_replicas() -> None:
    """The fallback waits for the end of the last values, although nothing could be read for longer."""
    policy = {"keepLastFor": "30m", "fallback": {"replicas": 4, "after": "1m"}}
    past = sync(policy, None, past=sync(policy, 8).history, now=NOW + SECOND).history
    rows = [sync(policy, None, past=past, now=NOW + minutes * MINUTE) for minutes in (30, 31)]
    assert [each.trace.combination and each.trace.combination.proposal for each in rows] == [8, 4]


@pytest.mark.parametrize(
    ("fallback", "current", "bounds", "replicas"),
    [(20, 5, (2, 8), 8), (0, 5, (2, 8), 2), (20, 2, (2, 50), 4)],
    ids=["maximum", "minimum", "at most twice the replicas, or 4"],
)
def test_fallback_replicas_are_limited(fallback: int, current: int, bounds: tuple[int, int], replicas: int) -> None:
    """Bounds and rates apply as to any proposal."""
    policy = {"fallback": {"replicas": fallback, "after": "0s"}}
    spec = scaler(QUEUE, least=bounds[0], most=bounds[1], on_failure=policy)
    past = History((history.Recommendation(1, NOW - 301 * SECOND),))
    assert decided(spec, observed(DOWN, replicas=current), past).replicas == replicas


def test_fallback_replicas_wait_for_the_window() -> None:
    """Recent recommendations hold back a scale-down to the fallback, too."""
    policy = {"fallback": {"replicas": 1, "after": "0s"}}
    past = History((history.Recommendation(5, NOW - 60 * SECOND),))
    decision = sync(policy, None, past=past)
    assert (decision.replicas, decision.trace.stabilization and decision.trace.stabilization.result) == (None, 5)


def test_fallback_replicas_wake_a_target_that_was_scaled_to_zero() -> None:
    """While nobody knows the length of the queue, there are workers."""
    spec = scaler(QUEUE, least=0, on_failure={"fallback": {"replicas": 2, "after": "0s"}})
    decision = decided(spec, observed(DOWN, replicas=0, before=conditions(ScaledToZero="True")))
    assert decision.replicas == 2


def test_fallback_replicas_of_zero() -> None:
    """They need a minimum of 0, and set ScaledToZero, so that the metric can wake the target again."""
    spec = scaler(QUEUE, least=0, on_failure={"fallback": {"replicas": 0, "after": "0s"}})
    past = History((history.Recommendation(1, NOW - 301 * SECOND),))
    decision = decided(spec, observed(DOWN, replicas=1), past)
    assert (decision.replicas, condition_rows(decision)[-1]) == (0, ("ScaledToZero", "True", "ScaledToZero"))


def test_unknown_pods_are_no_metric_failure() -> None:
    """Where the target's pods cannot be determined, no policy applies."""
    spec = scaler(QUEUE, on_failure={"fallback": {"replicas": 2, "after": "0s"}})
    decision = decided(spec, observed(replicas=5, selector=""))
    assert (decision.replicas, active(decision)) == (None, ("False", "InvalidSelector"))


def test_an_invalid_policy_changes_nothing_but_an_event() -> None:
    """The decision is the one without a policy."""
    past = sync(KEEP | FALLBACK, 8).history
    plain = sync(None, None, past=past)
    invalid = sync({"keepLastFor": "soon"}, None, past=past)
    fault = 'spec.onMetricFailure.keepLastFor: "soon" is not a duration such as 90s or 5m'
    assert event_rows(invalid) == [
        event_rows(plain)[0],
        ("Warning", "InvalidMetricFailurePolicy", fault),
        *event_rows(plain)[1:],
    ]
    step = FailurePolicyStep(fault=fault)
    same = msgspec.structs.replace(plain.trace, failure_policy=step)
    assert (invalid.replicas, invalid.status, invalid.history, invalid.trace) == (
        plain.replicas,
        plain.status,
        plain.history,
        same,
    )


def test_a_policy_that_is_removed_is_forgotten() -> None:
    """What only a policy needs leaves the history, so that a later policy does not begin with it."""
    past = sync(KEEP | FALLBACK, None, past=sync(KEEP | FALLBACK, 8).history).history
    assert (sync(None, None, past=past).history.last_proposals, sync(None, None, past=past).history.unread_since) == (
        (),
        None,
    )
