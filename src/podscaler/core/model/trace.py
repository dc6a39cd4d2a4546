"""Defines the trace of a decision as data: every step with its numbers and the rule that applied.

The stages of `podscaler.core.decide` make it while they decide, so that it cannot disagree with the decision. Read by
`podscaler.explain`, the replay and the tests: tests/conformance/trace_checker.py recomputes replicas and conditions
from the JSON form, which docs/trace.md documents. A new step: a subclass of Step, a field of Trace, and both of these.

Invariants: amounts are thousandths, instants nanoseconds since 1970, spans nanoseconds. Steps that did not take place
are None. Creating a trace formats no text and copies no long lists.
"""

from enum import StrEnum
from typing import Any

import msgspec

from podscaler.api.machinery import numbers
from podscaler.api.typed.autoscaling import Condition, MetricValueStatus
from podscaler.core.model.history import Recommendation, ScaleEvent
from podscaler.core.model.spec import Behavior


class Step(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The base class of all parts of a trace: camelCase in JSON, without fields that have their default."""


class Branch(StrEnum):
    """The branch of a sync (docs/spec/decision.md 2 (Reconcile in order, steps 1 to 9))."""

    NO_SCALE = "NoScale"
    DISABLED = "Disabled"
    ABOVE_MAXIMUM = "AboveMaximum"
    BELOW_MINIMUM = "BelowMinimum"
    METRICS = "Metrics"


class Group(StrEnum):
    """The group of a pod, by how its sample is used."""

    COUNTED = "Counted"
    IGNORED = "Ignored"
    UNREADY = "Unready"
    MISSING = "Missing"


class PodRule(StrEnum):
    """The rule that puts a pod into its `group` (docs/spec/decision.md 6.1 (Grouping pods))."""

    group: Group

    def __new__(cls, text: str, group: Group) -> "PodRule":
        """A member, of the group that its rule leads to."""
        rule = str.__new__(cls, text)
        rule._value_ = text
        rule.group = group
        return rule

    DELETING = "Deleting", Group.IGNORED
    FAILED = "Failed", Group.IGNORED
    PENDING = "Pending", Group.UNREADY
    NO_SAMPLE = "NoSample", Group.MISSING
    NO_READY_CONDITION = "NoReadyCondition", Group.UNREADY
    NOT_STARTED = "NotStarted", Group.UNREADY
    UNREADY_WHILE_STARTING = "UnreadyWhileStarting", Group.UNREADY
    SAMPLED_BEFORE_READY = "SampledBeforeReady", Group.UNREADY
    NEVER_READY = "NeverReady", Group.UNREADY
    HAS_SAMPLE = "HasSample", Group.COUNTED


class PodSample(Step, frozen=True, gc=False):
    """One pod of the target.

    Attributes:
        value_milli: its sample; None if it has none.
        request_milli: its request; None if the calculation does not use requests.
        filled_milli: the value assumed for it in the second reading; None if no value was assumed.
    """

    pod: str
    group: Group
    rule: PodRule
    value_milli: int | None = None
    request_milli: int | None = None
    filled_milli: int | None = None


class Unlisted(Step, frozen=True, gc=False):
    """A sample of a pod that the target does not have (any more)."""

    pod: str
    value_milli: int


class Reading(Step, frozen=True, gc=False):
    """The samples of a metric taken together, and compared with the target.

    Attributes:
        usage_milli, entries: the sum and the number of the values.
        requests_milli: the sum of the requests; None if the target is an average.
        current: what the target is compared with: percent of the requests, or `average_milli`.
        average_milli: `usage_milli` / `entries`.
        ratio: current / target.
        is_within_tolerance: whether the ratio calls for no change.
    """

    usage_milli: int
    entries: int
    requests_milli: int | None
    current: int
    average_milli: int
    ratio: float
    is_within_tolerance: bool


class Outcome(StrEnum):
    """How a calculation became a proposal: by the ratio, or the current count for the reason that is named."""

    WITHIN_TOLERANCE = "WithinTolerance"
    SCALED = "Scaled"
    STILL_WITHIN_TOLERANCE = "StillWithinTolerance"
    DIRECTION_REVERSED = "DirectionReversed"
    """The ratio of the second reading is on the other side of 1 than that of the first: no change."""
    REFILLED = "Refilled"
    """By the ratio of the second reading, times `second_pods`."""
    WRONG_DIRECTION = "WrongDirection"
    """The second ratio is above 1, but gives less than the current count, or the reverse: no change."""
    FROM_ZERO = "FromZero"


class PerPod(Step, frozen=True, gc=False, tag_field="method", tag="PerPod"):
    """The calculation of a Resource, ContainerResource or Pods metric.

    Source: docs/spec/decision.md 6.3 (Utilisation target), 6.4 (Plain per-pod value).

    Attributes:
        pods: the pods of the target, in list order.
        ready_pods: the number of pods whose sample counts.
        first: the reading without missing and unready pods; None if the calculation failed before it.
        second: the reading with values assumed for those pods; None if it was not needed.
        second_pods: the number of pods by which the ratio of `second` was multiplied.
        outcome: None if the calculation failed.
    """

    pods: tuple[PodSample, ...]
    unlisted: tuple[Unlisted, ...] = ()
    ready_pods: int = 0
    first: Reading | None = None
    second: Reading | None = None
    second_pods: int | None = None
    outcome: Outcome | None = None


class OfTotal(Step, frozen=True, gc=False, tag_field="method", tag="OfTotal"):
    """The calculation of an Object or External metric with a Value target.

    Source: docs/spec/decision.md 6.5 (Object, Value target), 6.7 (External, Value target).

    Attributes:
        ready_pods: the number of ready pods, which the ratio multiplies; None if it was not needed.
    """

    usage_milli: int
    ratio: float
    is_within_tolerance: bool
    ready_pods: int | None
    outcome: Outcome


class OfAverage(Step, frozen=True, gc=False, tag_field="method", tag="OfAverage"):
    """The calculation of an Object or External metric with an AverageValue target.

    Source: docs/spec/decision.md 6.6 (Object, AverageValue target), 6.8 (External, AverageValue target).

    Attributes:
        replicas: the replicas in the status of the scale; the ratio is usage / (target x replicas).
        reported_milli: the average that the autoscaler's status reports.
    """

    usage_milli: int
    replicas: int
    ratio: float
    is_within_tolerance: bool
    reported_milli: int
    outcome: Outcome


class MetricFailure(Step, frozen=True, gc=False):
    """Why a metric has no proposal.

    Attributes:
        reason, message: of the event (an empty reason: there is no event).
        error: the message with the prefixes of the sync's error.
    """

    reason: str
    message: str
    error: str


class KeptProposal(Step, frozen=True, gc=False):
    """Where an earlier proposal is from: the instant of its sync, and the value that status reported then."""

    at: int
    current: MetricValueStatus


class MetricStep(Step, frozen=True, gc=False):
    """One metric: its proposal, or its failure; both where a failure policy keeps its last proposal.

    Attributes:
        target: in percent for a utilization, else in thousandths; None if the spec sets no target.
        subject: the container, or the object (`Kind/name`), that is measured; empty for other types.
        kept: the origin of an earlier proposal that counts; None if the proposal, if there is one, is of this sync.
        query: the query and the system that answered it, for a metric that podscaler reads directly; else empty.
    """

    type: str
    name: str
    target: int | None
    proposal: int | None = None
    calculation: PerPod | OfTotal | OfAverage | None = None
    failure: MetricFailure | None = None
    subject: str = ""
    kept: KeptProposal | None = None
    query: str = ""


class Selection(Step, frozen=True, gc=False):
    """The pods of the target (docs/spec/decision.md 3.1 (Selector checks)).

    Attributes:
        selector: the text of the label selector in the scale.
        pods: the number of pods that it matches.
        overlapping: keys of autoscalers over the same pods, this one included; empty if no other one has these pods.
        failure: why the pods are unknown; None if they are known.
    """

    selector: str
    pods: int
    overlapping: tuple[str, ...] = ()
    failure: MetricFailure | None = None


class FailureResponse(StrEnum):
    """An action of a failure policy; the text is the reason of its event, and of ScalingActive."""

    KEPT = "LastMetricValueKept"
    """The last proposal of a metric that cannot be read counted."""
    IGNORED = "FailedMetricIgnored"
    """The target may be scaled down although a metric cannot be read."""
    FALLBACK = "FallbackReplicasApplied"
    """No metric could be read for the stated time, and the fallback replicas are the proposal."""


class Combination(Step, frozen=True, gc=False):
    """All metrics taken together (docs/spec/decision.md 3.2 (Loop)).

    Attributes:
        proposal: the largest proposal; None if failures forbid a conclusion.
        winner: index of the metric that proposed it; None if no metric has a proposal.
        failed: indexes of the metrics that failed, also of those whose earlier proposal counts.
        error: the error of the sync about them; empty if no metric failed.
        responses: the actions of a failure policy; empty if it did nothing.
    """

    proposal: int | None
    winner: int | None
    failed: tuple[int, ...] = ()
    error: str = ""
    responses: tuple[FailureResponse, ...] = ()


class FailurePolicyStep(Step, frozen=True, gc=False):
    """The failure policy of the autoscaler (docs/metric-failures.md).

    Attributes:
        keep_last_ns: for how long the last proposal of a metric counts; 0: not at all.
        ignores_failed: whether metrics that cannot be read do not prevent a scale-down.
        fallback_replicas: the replicas while no metric can be read; None if the policy has none.
        fallback_after_ns: how long no metric can be read before they apply.
        unread_since: the instant of the first of the syncs in a row that could read no metric; None if this one could.
        fault: why the stated policy is invalid and does not count; else empty.
    """

    keep_last_ns: int = 0
    ignores_failed: bool = False
    fallback_replicas: int | None = None
    fallback_after_ns: int = 0
    unread_since: int | None = None
    fault: str = ""


class Stabilization(Step, frozen=True, gc=False):
    """The stabilization of the proposal by earlier recommendations.

    Source: docs/spec/decision.md 8 (Normalisation without behavior), 9.2 (Stabilisation).

    Attributes:
        proposal, result: the count before and after stabilization.
        down_cutoff, up_cutoff: the instants at which the windows begin; None if that direction has no window.
        highest, lowest: the extremes of the proposal and the recommendations within the down and the up window.
        held_by: index of the recommendation that is the result; None if it is the proposal or the current count.
    """

    proposal: int
    recommendations: tuple[Recommendation, ...]
    down_cutoff: int
    up_cutoff: int | None
    highest: int
    lowest: int | None
    result: int
    held_by: int | None


class Direction(StrEnum):
    """The direction from the current count to the stabilized one."""

    UP = "Up"
    DOWN = "Down"
    UNCHANGED = "Unchanged"


class PolicyBudget(Step, frozen=True, gc=False):
    """One scaling policy: the count that it allows, and the remaining change.

    Attributes:
        start, added, removed: the count at the start of the period, and the replicas added and removed since then.
        limit: the count that the policy allows now.
        remaining: the change from the current count to `limit`, in the direction of the change; below 0: exceeded.
    """

    type: str
    value: int
    period_ns: int
    added: int
    removed: int
    start: int
    limit: int
    remaining: int


class Limits(Step, frozen=True, gc=False):
    """The limits of the stabilized count by rates and bounds (docs/spec/decision.md 8, 9.3 (Rates and bounds)).

    Attributes:
        wanted, result: the count before and after the limits.
        direction: from the current count to `wanted`; UNCHANGED: rates do not matter.
        select_policy: how the policies are combined (`Max`, `Min`, `Disabled`); empty if the spec has no behavior.
        policies: the scaling policies of the direction, in order; empty if none was evaluated.
        rate_limit: the count that the rate allows; None if rates do not apply.
        bound: the limit that changed the count; None if none did.
        reason: the reason of the condition ScalingLimited.
        scale_ups, scale_downs: the scale events of the history; empty if the spec has no behavior.
    """

    wanted: int
    direction: Direction
    select_policy: str
    policies: tuple[PolicyBudget, ...]
    rate_limit: int | None
    bound: int | None
    reason: str
    result: int
    scale_ups: tuple[ScaleEvent, ...] = ()
    scale_downs: tuple[ScaleEvent, ...] = ()


class ZeroRules(Step, frozen=True, gc=False):
    """The facts for decisions at zero replicas (docs/spec/decision.md 2 (step 7)).

    Attributes:
        is_enabled: whether targets may be scaled to and from zero (the feature gate HPAScaleToZero).
        was_scaled_to_zero: by the condition ScaledToZero.
        scales_on_others: whether a metric is of type Object or External, which has a value without any pod.
    """

    is_enabled: bool
    was_scaled_to_zero: bool
    scales_on_others: bool


class Write(Step, frozen=True, gc=False):
    """The write of the scale: the instant of the (last) attempt, and its error, empty if it succeeded."""

    replicas: int
    at: int
    error: str = ""


class Cooldown(Step, frozen=True, gc=False):
    """The delays after the last rescale.

    Attributes:
        up_delay_ns, down_delay_ns: how long no scale-up, and no scale-down, follows a rescale.
        scaled_at: the instant of the last rescale; None if there was none.
        up_until, down_until: the instant at which that direction's delay ends; None if it is over.
        held: the count that is not applied because of a delay; None if no delay prevents a change.
    """

    up_delay_ns: int
    down_delay_ns: int
    scaled_at: int | None = None
    up_until: int | None = None
    down_until: int | None = None
    held: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether a direction waits now."""
        return self.up_until is not None or self.down_until is not None


class Trace(Step, frozen=True, gc=False):
    """One decision.

    Attributes:
        now: the instant at which the sync began.
        version: the emulated version of Kubernetes (`1.37`).
        conditions_before: the conditions in the status before the sync.
        scale_failure: the bare error where there is no scale, else empty; `error` has the prefix.
        behavior: the behavior in the spec, with the API's defaults; None if the spec has none.
        tolerance_down, tolerance_up: the deviations of a ratio below and above 1.0 that call for no change.
        is_lifted: whether the result was raised to the minimum when scaling from zero (docs/spec/decision.md 2
            (step 10.7)).
        current_replicas, status_replicas: `spec.replicas` and `status.replicas` of the scale.
        desired: the resulting count; None if the sync ended before it.
        reason: the reason of the rescale, as its event has it; empty if there is no rescale.
        cooldown: None if neither the algorithm nor a flag has a delay.
        failure_policy: None if the autoscaler states none, or metrics were not evaluated.
        algorithm: `v1.1`; empty for the current algorithm.
        write: None if the scale is not written.
        status_failure: why the status could not be written; empty if it is written, or did not change.
    """

    now: int
    autoscaler: str
    version: str
    branch: Branch
    min_replicas: int
    max_replicas: int
    conditions_before: tuple[Condition, ...]
    scale_failure: str = ""
    current_replicas: int | None = None
    status_replicas: int | None = None
    zero: ZeroRules | None = None
    behavior: Behavior | None = None
    tolerance_down: float | None = None
    tolerance_up: float | None = None
    selection: Selection | None = None
    metrics: tuple[MetricStep, ...] = ()
    combination: Combination | None = None
    stabilization: Stabilization | None = None
    limits: Limits | None = None
    is_lifted: bool = False
    cooldown: Cooldown | None = None
    desired: int | None = None
    reason: str = ""
    write: Write | None = None
    status_failure: str = ""
    error: str = ""
    algorithm: str = ""
    failure_policy: FailurePolicyStep | None = None


def read(trace_data: Any) -> Trace:
    """The trace in JSON-ready data, as `podscaler replay --trace` and `podscaler explain -o json` write it.

    JSON has neither infinities nor NaN: such a ratio is null there, and is computed again from the numbers beside it.
    Raises ValueError naming the part that cannot be used.
    """
    if isinstance(trace_data, dict) and isinstance(trace_data.get("metrics"), list):
        trace_data = trace_data | {"metrics": [_with_ratios(metric) for metric in trace_data["metrics"]]}
    return msgspec.convert(trace_data, Trace)


def _with_ratios(metric: Any) -> Any:
    """A step of a metric as its JSON object, with the ratios that are null; other data unchanged."""
    calculation = metric.get("calculation") if isinstance(metric, dict) else None
    if not isinstance(calculation, dict):
        return metric
    target = metric.get("target") or 0  # null if the spec sets no target
    if "ratio" in calculation:
        return metric | {"calculation": _with_value_ratio(calculation, target)}
    readings = {
        name: _with_reading_ratio(calculation[name], target) for name in ("first", "second") if calculation.get(name)
    }
    return metric | {"calculation": calculation | readings}


def _with_value_ratio(calculation: dict[str, Any], target: int) -> dict[str, Any]:
    if calculation["ratio"] is not None:
        return calculation
    replicas = calculation.get("replicas", 0) if calculation.get("method") == "OfAverage" else 1
    usage_milli, divisor = calculation.get("usageMilli", 0), float(target) * float(replicas)
    return calculation | {"ratio": numbers.divide(float(usage_milli), divisor)}


def _with_reading_ratio(reading: Any, target: int) -> Any:
    if not isinstance(reading, dict) or reading.get("ratio", 0.0) is not None:
        return reading
    return reading | {"ratio": numbers.divide(float(reading.get("current", 0)), float(target))}
