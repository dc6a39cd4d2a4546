"""What becomes of the scale: written later, or refused.

Source: docs/spec/decision.md 2 (Reconcile in order, step 11), 10 (Scale-event history).
"""

import pytest

from podscaler.core import settle
from podscaler.core.decision import Action, Decision, Draft, ErrorKind
from podscaler.core.model.history import History, ScaleEvent
from podscaler.core.model.observation import Failure
from podscaler.testing.decisions import (
    NOW,
    SECOND,
    condition_rows,
    conditions,
    decided,
    event_rows,
    external_metric,
    messages,
    observed,
    rules,
    scaler,
    values,
)

LATER = NOW + 1500 * SECOND // 1000
LATER_TEXT = "2026-01-01T00:00:01Z"
UP = "external metric queue(nil) above target"


def drafted(replicas: int = 3, wanted: int = 5, past: History | None = None) -> tuple[Decision, Draft]:
    """A decision that writes the scale, and its draft."""
    spec = scaler(external_metric(average="1"), behavior={"scaleDown": rules(("Pods", 4, 60), window=0)})
    before = conditions(AbleToScale="True")
    observation = observed(values(wanted * 1000), replicas=replicas, before=before)
    decision = decided(spec, observation, past or History())
    assert decision.draft is not None
    return decision, decision.draft


def test_written_at_once_is_what_decide_assumed() -> None:
    """Settling at the instant of the decision changes nothing."""
    decision, draft = drafted()
    assert settle.written(draft, NOW) == decision


def test_written_later() -> None:
    """A write after some attempts moves lastScaleTime, new conditions and the scale event."""
    _, draft = drafted()
    decision = settle.written(draft, LATER)
    times = {each.type: each.last_transition_time for each in decision.status.conditions or ()}
    assert (decision.replicas, decision.status.last_scale_time, decision.history.scale_ups) == (
        5,
        LATER_TEXT,
        (ScaleEvent(2, LATER),),
    )
    assert times["ScaledToZero"] == LATER_TEXT
    assert times["AbleToScale"] == "2025-12-31T23:00:00Z"


def test_a_removal_is_remembered_as_such() -> None:
    """A scale-down goes into the other list, as a positive number; what no policy sees any more is overwritten."""
    old = ScaleEvent(9, NOW - 61 * SECOND)
    decision, _ = drafted(5, 2, History(scale_downs=(old,)))
    assert (decision.replicas, decision.action, decision.history.scale_downs) == (
        2,
        Action.SCALE_DOWN,
        (ScaleEvent(3, NOW),),
    )


def test_refused() -> None:
    """A write that fails leaves replicas, desiredReplicas and changes as they were; the recommendation stays."""
    _, draft = drafted()
    decision = settle.refused(draft, LATER, "quota")
    assert (decision.replicas, decision.status.desired_replicas, decision.status.last_scale_time) == (None, 3, None)
    assert condition_rows(decision)[0] == ("AbleToScale", "False", "FailedUpdateScale")
    assert messages(decision)["AbleToScale"] == "the HPA controller was unable to update the target scale: quota"
    assert (decision.status.conditions or ())[0].last_transition_time == LATER_TEXT
    assert event_rows(decision) == [("Warning", "FailedRescale", f"New size: 5; reason: {UP}; error: quota")]
    assert (decision.error, decision.error_kind) == (
        "failed to rescale Deployment/default/web: quota",
        ErrorKind.INTERNAL,
    )
    assert (decision.history, decision.action, decision.reached_end) == (draft.prior_history, Action.NONE, False)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure("", "Conflict", 409), True),
        (Failure("", "", 409), True),
        (Failure("", "AlreadyExists", 409), False),
        (Failure("", "Forbidden", 403), False),
        (Failure("timeout"), False),
    ],
)
def test_conflicts(failure: Failure, expected: bool) -> None:
    """Only a conflict is worth another attempt."""
    assert settle.is_conflict(failure) is expected


def test_a_status_that_was_not_written() -> None:
    """At the end of a sync that is its error; where it ended before, the error stays, and its event comes last."""
    before = observed(replicas=3).status
    done = settle.unreported(drafted()[0], before, "web", "gone")
    assert (done.status, event_rows(done)[-1], done.error, done.error_kind, done.trace.status_failure) == (
        before,
        ("Warning", "FailedUpdateStatus", "gone"),
        "failed to update status for web: gone",
        ErrorKind.INTERNAL,
        "gone",
    )
    failing = decided(scaler(external_metric(average="1")), observed(Failure("no"), replicas=3))
    after = settle.unreported(failing, before, "web", "gone")
    assert (after.error, [reason for _, reason, _ in event_rows(after)]) == (
        failing.error,
        ["FailedGetExternalMetric", "FailedUpdateStatus", "FailedComputeMetricsReplicas"],
    )
