"""Finds the state of an autoscaler as a word (`ScalingUp`, `NoMetrics`), its severity, and one sentence about it.

Called by `podscaler list`, `podscaler doctor` and the rows of the dashboard and of the terminal view, so that all of
them use the same words. Pure: read from the object's conditions, and from a decision where one is known, which has
the reasons in more detail. The first condition that fits decides, worst first: the target, the pods, the metrics, the
bounds, the change, what holds a change back. A new state is a member of HealthState with an entry in SEVERITIES, and is
found by one of the four functions that `of` calls.

Example: ScalingLimited True with the reason TooManyReplicas is `AtMaximum`, a problem: `its metrics ask for more than
maxReplicas, which is 10`.

Source: docs/spec/decision.md 11.3 (Conditions).
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple

from podscaler.api.machinery import instants
from podscaler.api.typed.autoscaling import Condition, HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from podscaler.core.decision import Decision
from podscaler.core.limits import cooldown
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALED_TO_ZERO, SCALING_ACTIVE, SCALING_LIMITED
from podscaler.core.model.trace import FailureResponse
from podscaler.explain import hold_reasons, verdict


class HealthSeverity(IntEnum):
    """How bad a state is; from LIMITED on it is a problem, which `--problem` shows."""

    FINE = 0
    NOTABLE = 1
    LIMITED = 2
    """The autoscaler may work, and cannot set the replicas that its metrics need, or not safely."""
    BROKEN = 3
    """The autoscaler cannot change the replicas."""


class HealthState(StrEnum):
    """What an autoscaler does, in a word."""

    STEADY = "Steady"
    """The replicas are those that the metrics propose."""
    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    STABILIZING = "Stabilizing"
    """Earlier recommendations hold the change back, within a stabilization window."""
    COOLING = "CoolingDown"
    """The time since the last rescale holds the change back (rules of Kubernetes before 1.12)."""
    LIMITED = "Limited"
    """The rate of change is limited, by a policy or by the doubling for each sync."""
    AT_MAXIMUM = "AtMaximum"
    """The metrics propose more than maxReplicas."""
    AT_MINIMUM = "AtMinimum"
    """The metrics propose less than minReplicas."""
    AT_ZERO = "AtZero"
    """The autoscaler scaled its target to zero."""
    DISABLED = "Disabled"
    """The target was scaled to zero by another client, or has no metric that can start it."""
    UNKNOWN = "Unknown"
    """No controller has written a status."""
    FALLBACK = "Fallback"
    """Metrics cannot be read, and the failure policy replaces them."""
    SOME_METRICS = "SomeMetrics"
    """Some metrics cannot be read; the others decide."""
    NO_METRICS = "NoMetrics"
    """Failed metrics prevent the change that the others propose, or there is none that can be read."""
    AMBIGUOUS = "Ambiguous"
    """Several autoscalers select the same pods."""
    NO_PODS = "NoPods"
    """The target names no pods: its selector is missing or invalid."""
    NO_TARGET = "NoTarget"
    """The scale of the target cannot be read."""
    CANNOT_SCALE = "CannotScale"
    """The scale of the target cannot be written."""
    FORBIDDEN = "Forbidden"
    """The controller may not do what this autoscaler needs."""


SEVERITIES: Mapping[HealthState, HealthSeverity] = {
    HealthState.STEADY: HealthSeverity.FINE,
    HealthState.SCALING_UP: HealthSeverity.FINE,
    HealthState.SCALING_DOWN: HealthSeverity.FINE,
    HealthState.STABILIZING: HealthSeverity.FINE,
    HealthState.COOLING: HealthSeverity.FINE,
    HealthState.LIMITED: HealthSeverity.NOTABLE,
    HealthState.AT_MAXIMUM: HealthSeverity.LIMITED,
    HealthState.AT_MINIMUM: HealthSeverity.FINE,
    HealthState.AT_ZERO: HealthSeverity.FINE,
    HealthState.DISABLED: HealthSeverity.NOTABLE,
    HealthState.UNKNOWN: HealthSeverity.LIMITED,
    HealthState.FALLBACK: HealthSeverity.LIMITED,
    HealthState.SOME_METRICS: HealthSeverity.LIMITED,
    HealthState.NO_METRICS: HealthSeverity.BROKEN,
    HealthState.AMBIGUOUS: HealthSeverity.BROKEN,
    HealthState.NO_PODS: HealthSeverity.BROKEN,
    HealthState.NO_TARGET: HealthSeverity.BROKEN,
    HealthState.CANNOT_SCALE: HealthSeverity.BROKEN,
    HealthState.FORBIDDEN: HealthSeverity.BROKEN,
}

_FORBIDDEN_TEXT = "is forbidden"
"""Part of the message of each 403 of an API server."""
_FAILURE_RESPONSES = frozenset(response.value for response in FailureResponse)
_ABSENT_CONDITION = Condition()
_PREFIXES = (
    "the HPA controller was unable to get the target's current scale: ",
    "the HPA controller was unable to update the target scale: ",
    "the HPA was unable to compute the replica count: ",
)
"""How the messages of failures begin, before the error itself."""


class Health(NamedTuple):
    """The state of one autoscaler.

    Attributes:
        severity: of the state.
        reason: a sentence without its full stop, in which `its` is the autoscaler's; empty: the word says it all.
        since_ns: the latest instant at which the state can have begun, in ns since the epoch, by the conditions and the
            last rescale; None: not known.
    """

    state: HealthState
    severity: HealthSeverity
    reason: str
    since_ns: int | None = None

    @property
    def is_problem(self) -> bool:
        """Whether `podscaler list --problem` shows the autoscaler."""
        return self.severity >= HealthSeverity.LIMITED


def of(autoscaler: HorizontalPodAutoscaler, decision: Decision | None = None) -> Health:
    """The state of an autoscaler.

    Args:
        autoscaler: the object; its status may be written by any controller.
        decision: the latest decision, whose status counts in place of the object's; None if no decision is known.
    """
    status = autoscaler.status if decision is None else decision.status
    facts = _StatusFacts(autoscaler, status, decision)
    state, reason, since_ns = _find_failure(facts) or _find_bound(facts) or _find_motion(facts) or _rest_state(facts)
    return Health(state, SEVERITIES[state], reason, since_ns)


_StateReasonSince = tuple[HealthState, str, int | None]
"""The state, its reason, and since when."""


class _StatusFacts:
    """The conditions of a status by type, and what the sentences need."""

    def __init__(
        self, autoscaler: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus, decision: Decision | None
    ) -> None:
        self.spec = autoscaler.spec
        self.status = status
        self.decision = decision
        self._by_type = {condition.type: condition for condition in status.conditions or ()}

    @property
    def is_written(self) -> bool:
        """Whether a controller wrote conditions."""
        return bool(self._by_type)

    def condition(self, kind: str) -> Condition:
        """The condition of that type; an empty one where there is none."""
        return self._by_type.get(kind, _ABSENT_CONDITION)

    def hold_reason(self, otherwise: str) -> str:
        """What the decision was held back by: `its metrics ask for 7, but ...`; `otherwise` where that is not known."""
        if self.decision is None:
            return otherwise
        outcome = verdict.of(self.decision.trace)
        reason = hold_reasons.reason(self.decision.trace, outcome)
        if not reason or outcome.wanted is None:
            return otherwise
        return f"its metrics ask for {outcome.wanted}, but {reason}"


def _find_failure(facts: _StatusFacts) -> _StateReasonSince | None:
    """The state of an autoscaler that cannot do its work, or not with all metrics; None if it can."""
    able, active = facts.condition(ABLE_TO_SCALE), facts.condition(SCALING_ACTIVE)
    if able.status == "False" and able.reason not in cooldown.MESSAGES:  # a cooldown is no failure: `_find_motion`
        state = HealthState.CANNOT_SCALE if able.reason == "FailedUpdateScale" else HealthState.NO_TARGET
        return _error_state(state, able)
    if active.status == "False":
        return _inactive_state(active)
    if active.reason in _FAILURE_RESPONSES:
        return HealthState.FALLBACK, active.message, _transition_ns(active)
    if not facts.is_written:
        return HealthState.UNKNOWN, "no controller has written its status", None
    # the status of a metric that cannot be read is empty, as upstream
    failed_count = sum(not metric.type for metric in facts.status.current_metrics or ())
    if failed_count and active.status == "True":
        count = len(facts.spec.metrics or ())
        return HealthState.SOME_METRICS, f"{failed_count} of its {count} metrics cannot be read", _transition_ns(active)
    return None


def _inactive_state(active: Condition) -> _StateReasonSince:
    """The state of an autoscaler whose condition ScalingActive is False: by the condition's reason."""
    if active.reason == "ScalingDisabled":
        return (
            HealthState.DISABLED,
            "its target has no replicas, and nothing that could start one",
            _transition_ns(active),
        )
    if active.reason == "AmbiguousSelector":
        return HealthState.AMBIGUOUS, active.message, _transition_ns(active)
    state = HealthState.NO_PODS if active.reason == "InvalidSelector" else HealthState.NO_METRICS
    return _error_state(state, active)


def _error_state(state: HealthState, condition: Condition) -> _StateReasonSince:
    """The state with the error in the condition's message as its reason; FORBIDDEN in its place for a 403."""
    message = condition.message
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return HealthState.FORBIDDEN if _FORBIDDEN_TEXT in message else state, message, _transition_ns(condition)


def _find_bound(facts: _StatusFacts) -> _StateReasonSince | None:
    """The state of an autoscaler that minReplicas or maxReplicas holds; None if neither does."""
    limited = facts.condition(SCALING_LIMITED)
    if limited.status != "True":
        return None
    if limited.reason == "TooManyReplicas" and not _is_held_above_maximum(facts):
        reason = facts.hold_reason(f"its metrics ask for more than maxReplicas, which is {facts.spec.max_replicas}")
        return HealthState.AT_MAXIMUM, reason, _transition_ns(limited)
    if limited.reason == "TooFewReplicas" and not _is_moving(facts):
        least = 1 if facts.spec.min_replicas is None else facts.spec.min_replicas
        reason = facts.hold_reason(f"its metrics ask for less than minReplicas, which is {least}")
        return HealthState.AT_MINIMUM, reason, _transition_ns(limited)
    return None


def _is_moving(facts: _StatusFacts) -> bool:
    """Whether the autoscaler scales: the status has other desired replicas than current ones."""
    return facts.status.desired_replicas != facts.status.current_replicas


def _is_held_above_maximum(facts: _StatusFacts) -> bool:
    """Whether an earlier recommendation of the scale-down window, and no metric, is above maxReplicas."""
    is_above = facts.condition(SCALING_LIMITED).reason == "TooManyReplicas"
    return is_above and facts.condition(ABLE_TO_SCALE).reason == "ScaleDownStabilized"


def _find_motion(facts: _StatusFacts) -> _StateReasonSince | None:
    """The state of an autoscaler that scales, or that a rate, cooldown or window holds; None for others."""
    able, limited, status = facts.condition(ABLE_TO_SCALE), facts.condition(SCALING_LIMITED), facts.status
    if _is_moving(facts):
        is_up = status.desired_replicas > status.current_replicas
        state = HealthState.SCALING_UP if is_up else HealthState.SCALING_DOWN
        counts = f"from {status.current_replicas} to {status.desired_replicas}"
        return state, counts, _instant_ns(status.last_scale_time)
    if limited.status == "True" and not _is_held_above_maximum(facts):
        return HealthState.LIMITED, facts.hold_reason(limited.message), _transition_ns(limited)
    if able.status == "False":  # by a cooldown: `_find_failure` has found all other reasons
        return HealthState.COOLING, facts.hold_reason(able.message), _transition_ns(able)
    if able.reason in ("ScaleDownStabilized", "ScaleUpStabilized"):
        return HealthState.STABILIZING, facts.hold_reason(able.message), _instant_ns(status.last_scale_time)
    return None


def _rest_state(facts: _StatusFacts) -> _StateReasonSince:
    """The state of all other autoscalers: steady, or at zero."""
    zero = facts.condition(SCALED_TO_ZERO)
    if zero.status == "True" and not facts.status.desired_replicas:
        return HealthState.AT_ZERO, "", _transition_ns(zero)
    active, limited = facts.condition(SCALING_ACTIVE), facts.condition(SCALING_LIMITED)
    instants_found = (_instant_ns(facts.status.last_scale_time), _transition_ns(active), _transition_ns(limited))
    return HealthState.STEADY, "", max((instant for instant in instants_found if instant is not None), default=None)


def _transition_ns(condition: Condition) -> int | None:
    """When the status of a condition changed last; None if it is not known."""
    return _instant_ns(condition.last_transition_time)


def _instant_ns(text: str | None) -> int | None:
    """The instant of a timestamp; None if there is none, or it cannot be read."""
    try:
        return instants.parse(text) if text else None
    except ValueError:
        return None
