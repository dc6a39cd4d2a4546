"""Completes the draft of a decision with the outcome of the write of the scale: its status, events, history and trace.

`podscaler.core.decide` calls `written` as if the scale were written at once, and `unscaled` or `inconclusive` where
nothing is written. The controller, after the real write, calls `written` with its instant or `refused` with its error:
both return the whole decision anew. `unreported` is for a status that could not be written afterwards. A new field of
Decision that depends on the write is set in `written` and `refused`.

Source: docs/spec/decision.md 2 (Reconcile in order, steps 10.2 and 11 to 13), 10 (Scale-event history), 11.1 (Setting
status).
"""

from collections.abc import Sequence

import msgspec

from podscaler.api.machinery import instants
from podscaler.api.typed.autoscaling import Condition, HorizontalPodAutoscalerStatus
from podscaler.core.decision import Action, AutoscalerEvent, Decision, Draft, ErrorKind, warning
from podscaler.core.model import history
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALED_TO_ZERO, Conditions
from podscaler.core.model.history import History, ScaleEvent
from podscaler.core.model.observation import Failure
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Trace, Write

MAX_WRITE_ATTEMPTS = 5
"""The number of attempts to write the scale after conflicts."""

WRITE_RETRY_DELAY_NS = 10_000_000
"""The wait between two attempts (client-go's DefaultRetry adds up to a tenth of it, at random)."""


def is_conflict(failure: Failure) -> bool:
    """Whether a failed write of the scale is to be tried again, as client-go's `IsConflict` decides."""
    return failure.reason == "Conflict" or (not failure.reason and failure.code == 409)


def written(draft: Draft, written_at: int) -> Decision:
    """The decision whose scale was written at `written_at`, in ns since the epoch."""
    current, desired, spec = draft.scale.replicas, draft.desired, draft.spec
    conditions = Conditions(draft.conditions, instants.text(written_at))
    message = f"the HPA controller was able to update the target scale to {desired}"
    conditions.set(ABLE_TO_SCALE, "True", "SucceededRescale", message)
    scaled_to_zero = current > 0 and desired == 0 and spec.min_replicas == 0 and spec.scales_on_others
    _set_scaled_to_zero(conditions, is_enabled=draft.zero.is_enabled, scaled_to_zero=scaled_to_zero)
    event = AutoscalerEvent("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {draft.reason}")
    status = _new_status(draft, desired, conditions.as_tuple(), scaled_at=written_at)
    return msgspec.structs.replace(
        _decision_without_write(draft, desired, status, event, write=Write(desired, written_at)),
        replicas=desired,
        history=with_change(spec, draft.prior_history, desired - current, written_at),
        action=Action.SCALE_UP if desired > current else Action.SCALE_DOWN,
        draft=draft,
    )


def refused(draft: Draft, attempted_at: int, error: str) -> Decision:
    """The decision whose scale could not be written: the last attempt, at `attempted_at` (ns), failed with `error`."""
    conditions = Conditions(draft.conditions, instants.text(attempted_at))
    message = f"the HPA controller was unable to update the target scale: {error}"
    conditions.set(ABLE_TO_SCALE, "False", "FailedUpdateScale", message)
    event = warning("FailedRescale", f"New size: {draft.desired}; reason: {draft.reason}; error: {error}")
    status = _new_status(draft, draft.observation.status.desired_replicas, conditions.as_tuple())
    full_error = f"failed to rescale {draft.spec.reference}: {error}"
    decision = _decision_without_write(
        draft, draft.desired, status, event, write=Write(draft.desired, attempted_at, error), error=full_error
    )
    return msgspec.structs.replace(decision, error_kind=ErrorKind.INTERNAL, draft=draft)


def unscaled(draft: Draft) -> Decision:
    """The decision that leaves the scale as it is: the metrics call for no change, or scaling is disabled."""
    replicas = draft.scale.replicas
    return _decision_without_write(draft, replicas, _new_status(draft, replicas, draft.conditions))


def inconclusive(draft: Draft) -> Decision:
    """The decision of a sync whose failed metrics allow no proposal."""
    error = _partial_error(draft)
    prefix = f"failed to compute desired number of replicas based on listed metrics for {draft.spec.reference}: "
    event = AutoscalerEvent("Warning", "FailedComputeMetricsReplicas", error, follows_status=True)
    status = _new_status(draft, draft.observation.status.desired_replicas, draft.conditions)
    return _decision_without_write(draft, None, status, event, error=f"{prefix}{error}")


def _decision_without_write(
    draft: Draft,
    desired: int | None,
    status: HorizontalPodAutoscalerStatus,
    *events: AutoscalerEvent,
    write: Write | None = None,
    error: str | None = None,
) -> Decision:
    """The decision that leaves scale and history alone; `write` is only recorded in the trace.

    Args:
        desired: for the trace; None if the sync ended before there was a count.
        error: the error with which the sync ends early; None if it reaches its last step, with the error of the metrics
            that failed, if any did.
    """
    full_error = _partial_error(draft) if error is None else error
    return Decision(
        replicas=None,
        status=status,
        events=(*draft.events, *events),
        history=draft.prior_history,
        trace=_trace(draft, write, full_error, desired),
        error=full_error,
        error_kind=_error_kind(draft),
        selector=draft.evaluation.target.selector if draft.evaluation else None,
        reached_end=error is None,
    )


def unreported(decision: Decision, stored_status: HorizontalPodAutoscalerStatus, name: str, error: str) -> Decision:
    """The decision whose status could not be written, so that it stays as it is stored.

    Args:
        stored_status: the status as the API server has it.
        name: the name of the autoscaler.
        error: the error of the write, without prefix.
    """
    failure = AutoscalerEvent("Warning", "FailedUpdateStatus", error, follows_status=True)
    before_status = [event for event in decision.events if not event.follows_status]
    after_status = [event for event in decision.events if event.follows_status]
    full_error, kind = decision.error, decision.error_kind
    if decision.reached_end:  # an earlier error of the sync is returned in place of this one, as upstream
        full_error, kind = f"failed to update status for {name}: {error}", ErrorKind.INTERNAL
    return msgspec.structs.replace(
        decision,
        status=stored_status,
        events=(*before_status, failure, *after_status),
        trace=msgspec.structs.replace(decision.trace, status_failure=error, error=full_error),
        error=full_error,
        error_kind=kind,
    )


def _set_scaled_to_zero(conditions: Conditions, *, is_enabled: bool, scaled_to_zero: bool) -> None:
    """Set the condition ScaledToZero; it is removed where the feature is off."""
    if not is_enabled:
        conditions.remove(SCALED_TO_ZERO)
    elif scaled_to_zero:
        conditions.set(SCALED_TO_ZERO, "True", "ScaledToZero", "the HPA controller scaled the workload to zero")
    else:
        message = "the HPA controller did not scale the workload to zero"
        conditions.set(SCALED_TO_ZERO, "False", "NotScaledToZero", message)


def _partial_error(draft: Draft) -> str:
    """The error of a sync some of whose metrics failed; empty if none did."""
    return draft.evaluation.combination.error if draft.evaluation else ""


def _error_kind(draft: Draft) -> ErrorKind:
    """The kind of the error about the metrics, NONE if there is none."""
    if draft.evaluation is None or not draft.evaluation.combination.error:
        return ErrorKind.NONE
    return ErrorKind.SPEC if draft.evaluation.is_spec_error else ErrorKind.INTERNAL


def _new_status(
    draft: Draft, desired: int, conditions: Sequence[Condition], scaled_at: int | None = None
) -> HorizontalPodAutoscalerStatus:
    """The status that the decision reports."""
    old = draft.observation.status
    statuses = draft.evaluation.statuses if draft.evaluation else ()
    return HorizontalPodAutoscalerStatus(
        observed_generation=draft.observation.generation if draft.settings.gates.generation else None,
        last_scale_time=old.last_scale_time if scaled_at is None else instants.text(scaled_at),
        current_replicas=draft.scale.replicas,
        desired_replicas=desired,
        current_metrics=statuses or None,
        conditions=tuple(conditions) or None,
    )


def with_change(spec: Spec, prior_history: History, change: int, changed_at: int) -> History:
    """The history with the scale event of a `change` of the replicas; the same without a behavior or a change.

    The controller calls it, too: on standby for a change by others, and to store a rescale before it is written.
    """
    behavior = spec.behavior
    if behavior is None or not change:
        return prior_history
    if change > 0:
        ups = history.with_scale_event(
            prior_history.scale_ups, ScaleEvent(change, changed_at), changed_at - behavior.up.longest_period_ns
        )
        return msgspec.structs.replace(prior_history, scale_ups=ups)
    downs = history.with_scale_event(
        prior_history.scale_downs, ScaleEvent(-change, changed_at), changed_at - behavior.down.longest_period_ns
    )
    return msgspec.structs.replace(prior_history, scale_downs=downs)


def _trace(draft: Draft, write: Write | None, error: str, desired: int | None) -> Trace:
    """The trace of the whole decision; `write` is None if the scale is not written."""
    evaluation = draft.evaluation
    return Trace(
        now=draft.now_ns,
        autoscaler=draft.spec.key,
        version=draft.settings.emulation.version,
        branch=draft.branch,
        min_replicas=draft.spec.min_replicas,
        max_replicas=draft.spec.max_replicas,
        conditions_before=draft.observation.status.conditions or (),
        current_replicas=draft.scale.replicas,
        status_replicas=draft.scale.status_replicas,
        zero=draft.zero,
        behavior=draft.spec.behavior,
        tolerance_down=draft.tolerance.down if draft.tolerance else None,
        tolerance_up=draft.tolerance.up if draft.tolerance else None,
        selection=evaluation.target.step if evaluation else None,
        metrics=tuple([metric_result.step for metric_result in evaluation.results]) if evaluation else (),
        combination=evaluation.combination if evaluation else None,
        stabilization=draft.stabilization,
        limits=draft.limits,
        is_lifted=draft.is_lifted,
        cooldown=draft.cooldown,
        desired=desired,
        reason=draft.reason,
        write=write,
        error=error,
        algorithm=draft.settings.algorithm_shown,
        failure_policy=draft.failure_policy,
    )
