"""Writes the section of an explanation about one metric: pods, sums, ratio, tolerance, and proposal or failure.

Called by `steps`. A line: `ratio  90 % / 60 % = 1.5, outside tolerance (0.9 to 1.1)`. Pods are grouped by the
rule that applied to them, one line for each, with the first names. A new PodRule needs an entry in `_POD_REASONS`, a
new Outcome one in `_NO_CHANGE_REASONS` (here and in `metric_words`) or a case in `_proposal`.

Source: docs/spec/decision.md 4 (One metric) to 6 (Replica calculator).
"""

from collections.abc import Iterable, Sequence

from podscaler.core.model.trace import (
    Group,
    MetricStep,
    OfAverage,
    OfTotal,
    Outcome,
    PerPod,
    PodRule,
    PodSample,
    Reading,
    Trace,
)
from podscaler.explain import failure_words, metric_words, wording
from podscaler.explain.explanation_parts import Line, Section


def section(trace: Trace, index: int) -> Section:
    """The section of the metric with that index."""
    step = trace.metrics[index]
    title = f"metrics[{index}], {step.type}: {metric_words.full_name(step)}, target {metric_words.target(step)}"
    return Section(title, tuple(_lines(trace, step)))


def _lines(trace: Trace, step: MetricStep) -> Iterable[Line]:
    """The lines of one metric: how its proposal was computed, or why it failed."""
    calculation = step.calculation
    if isinstance(calculation, PerPod):
        yield from _per_pod_lines(trace, step, calculation)
    elif calculation is not None:
        yield from _single_value_lines(trace, step, calculation)
    if step.failure is not None:
        yield Line("failed", step.failure.message)
        if step.failure.reason:
            yield Line("reason", step.failure.reason)
        if step.kept is not None:
            yield Line("last value", failure_words.last_value(trace, step))
            yield Line("proposal", f"{step.proposal}, as then")
    else:
        yield Line("proposal", _proposal(trace, step))


def _per_pod_lines(trace: Trace, step: MetricStep, calculation: PerPod) -> Iterable[Line]:
    """The lines of a metric with a value for each pod; `again` is the second sum, with the missing pods counted in.

    `trace.algorithm` is set for v1.1 only, which averages instead of adding up.
    """
    yield from _pod_lines(step, calculation)
    if calculation.first is not None:
        yield Line("sum", _mean(step, calculation.first) if trace.algorithm else _sum(step, calculation.first))
        yield Line("ratio", _ratio(trace, step, calculation.first))
    if calculation.second is not None:
        yield Line("again", f"with the pods counted in: {_sum(step, calculation.second)}")
        yield Line("ratio", _ratio(trace, step, calculation.second))


def _sum(step: MetricStep, reading: Reading) -> str:
    """The sum of a reading: `600m of 1 requested by 5 pods = 60 %`, or `30 over 3 samples = 10 a pod`."""
    usage_text = metric_words.amount(step, reading.usage_milli)
    if reading.requests_milli is not None:
        requested_text = metric_words.amount(step, reading.requests_milli)
        pods_text = wording.count(reading.entries, "pod")
        return f"{usage_text} of {requested_text} requested by {pods_text} = {reading.current} %"
    average_text = metric_words.amount(step, reading.average_milli)
    return f"{usage_text} over {wording.count(reading.entries, 'sample')} = {average_text} a pod"


def _mean(step: MetricStep, reading: Reading) -> str:
    """As `_sum`, for the algorithm v1.1, which averages the utilizations of the pods."""
    usage_text = metric_words.amount(step, reading.usage_milli)
    pods_text = wording.count(reading.entries, "pod")
    return f"{usage_text} used by {pods_text}, {reading.current} % of its own request by each on average"


def _ratio(trace: Trace, step: MetricStep, reading: Reading) -> str:
    """The ratio to the target: `90 % / 60 % = 1.5, outside tolerance (0.9 to 1.1)`."""
    if reading.requests_milli is not None:
        quotient = f"{reading.current} % / {step.target} %"
    else:
        quotient = f"{metric_words.amount(step, reading.current)} / {metric_words.amount(step, step.target or 0)}"
    return f"{quotient} = {wording.number(reading.ratio)}, {_tolerance(trace, is_within=reading.is_within_tolerance)}"


def _tolerance(trace: Trace, *, is_within: bool) -> str:
    lowest_ratio = wording.number(1.0 - (trace.tolerance_down or 0.0))
    highest_ratio = wording.number(1.0 + (trace.tolerance_up or 0.0))
    return f"{'within' if is_within else 'outside'} tolerance ({lowest_ratio} to {highest_ratio})"


def _single_value_lines(trace: Trace, step: MetricStep, calculation: OfTotal | OfAverage) -> Iterable[Line]:
    """The lines of a metric with one value for all pods, which is compared whole or divided by the replicas."""
    if step.query:
        yield Line("query", f"{step.query}: {metric_words.amount(step, calculation.usage_milli)}")
    yield Line("value", metric_words.amount(step, calculation.usage_milli))
    target_text = metric_words.amount(step, step.target or 0)
    value_text = metric_words.amount(step, calculation.usage_milli)
    if isinstance(calculation, OfAverage):
        quotient = f"{value_text} / ({target_text} x {wording.count(calculation.replicas, 'replica')})"
    else:
        quotient = f"{value_text} / {target_text}"
    tolerance_text = _tolerance(trace, is_within=calculation.is_within_tolerance)
    yield Line("ratio", f"{quotient} = {wording.number(calculation.ratio)}, {tolerance_text}")
    if isinstance(calculation, OfTotal) and calculation.ready_pods is not None:
        yield Line("ready", wording.count(calculation.ready_pods, "pod"))


def _proposal(trace: Trace, step: MetricStep) -> str:
    """The proposal and how it is rounded: `4 = 1.3 x 3 used pods, rounded up`."""
    calculation, proposal = step.calculation, step.proposal
    current = trace.current_replicas
    if calculation is None or calculation.outcome is None:
        return str(proposal)
    if calculation.outcome in _NO_CHANGE_REASONS:
        kept_replicas = calculation.replicas if isinstance(calculation, OfAverage) else current
        return f"{kept_replicas}: {_NO_CHANGE_REASONS[calculation.outcome]}"
    if isinstance(calculation, OfAverage):
        value_text, target_text = (
            metric_words.amount(step, milli) for milli in (calculation.usage_milli, step.target or 0)
        )
        return f"{proposal} = {value_text} / {target_text}, rounded up"
    if calculation.outcome is Outcome.FROM_ZERO:
        return f"{proposal} = the ratio, rounded up: from zero it alone decides"
    return f"{proposal} = {_product(calculation)}, rounded up"


def _product(calculation: PerPod | OfTotal) -> str:
    """The product that is rounded up to the proposal: a ratio and the pods that it applies to."""
    if isinstance(calculation, OfTotal):
        return f"{wording.number(calculation.ratio)} x {wording.count(calculation.ready_pods or 0, 'ready pod')}"
    if calculation.second is not None:
        return f"{wording.number(calculation.second.ratio)} x {wording.count(calculation.second_pods or 0, 'pod')}"
    ratio = calculation.first.ratio if calculation.first else 0.0
    return f"{wording.number(ratio)} x {wording.count(calculation.ready_pods, 'used pod')}"


_NO_CHANGE_REASONS = {
    Outcome.WITHIN_TOLERANCE: "no change within tolerance",
    Outcome.STILL_WITHIN_TOLERANCE: "no change, because it is within tolerance with the pods counted in",
    Outcome.DIRECTION_REVERSED: "no change, because counting the pods in turns the direction around",
    Outcome.WRONG_DIRECTION: "no change, because the result would go in the other direction than the ratio",
}


_POD_LABELS = {Group.COUNTED: "used", Group.IGNORED: "ignored", Group.UNREADY: "not ready", Group.MISSING: "missing"}
_POD_REASONS = {
    PodRule.DELETING: "being deleted",
    PodRule.FAILED: "failed",
    PodRule.PENDING: "pending",
    PodRule.NO_SAMPLE: "no sample",
    PodRule.NO_READY_CONDITION: "no Ready condition yet",
    PodRule.NOT_STARTED: "not started yet",
    PodRule.UNREADY_WHILE_STARTING: "still starting",
    PodRule.SAMPLED_BEFORE_READY: "sample from before it was ready",
    PodRule.NEVER_READY: "never became ready",
    PodRule.HAS_SAMPLE: "",
}
RANGE_SHOWN_ABOVE = 4
"""A line about more used pods than this has the smallest and the largest value."""


def _pod_lines(step: MetricStep, calculation: PerPod) -> Iterable[Line]:
    """One line for each rule that applied to a pod, in the order used, ignored, not ready, missing."""
    for group, label in _POD_LABELS.items():
        for rule, reason in _POD_REASONS.items():
            pods = [pod for pod in calculation.pods if pod.rule is rule and rule.group is group]
            if pods:
                yield Line(label, _pods_text(step, pods, reason))
    if calculation.unlisted:
        names = [f"{pod.pod} {metric_words.amount(step, pod.value_milli)}" for pod in calculation.unlisted]
        yield Line(
            "unlisted", f"{wording.count(len(names), 'sample')} of pods that are not there: {wording.listed(names)}"
        )


def _pods_text(step: MetricStep, pods: Sequence[PodSample], reason: str) -> str:
    """Pods to which one rule applied: `2 pods (no sample): web-1, web-2; counted in as 100m each`."""
    pods_text = wording.listed([_pod_text(step, pod) for pod in pods])
    reason_text = f" ({reason})" if reason else ""
    count_text = wording.count(len(pods), "pod")
    return f"{count_text}{reason_text}{_value_range(step, pods)}: {pods_text}{_assumed_values(step, pods)}"


def _pod_text(step: MetricStep, pod: PodSample) -> str:
    """A pod with its value and its request where they are known: `web-1 80m of 100m`."""
    if pod.value_milli is None:
        return pod.pod
    request_text = f" of {metric_words.amount(step, pod.request_milli)}" if pod.request_milli is not None else ""
    return f"{pod.pod} {metric_words.amount(step, pod.value_milli)}{request_text}"


def _value_range(step: MetricStep, pods: Sequence[PodSample]) -> str:
    """The range of the values of many used pods: ` from 50m to 120m`; empty for few pods and other groups."""
    values = [pod.value_milli for pod in pods if pod.value_milli is not None]
    if len(values) <= RANGE_SHOWN_ABOVE or pods[0].group is not Group.COUNTED:
        return ""
    lowest_text, highest_text = metric_words.amount(step, min(values)), metric_words.amount(step, max(values))
    return f" at {lowest_text} each" if lowest_text == highest_text else f" from {lowest_text} to {highest_text}"


def _assumed_values(step: MetricStep, pods: Sequence[PodSample]) -> str:
    """The values assumed for these pods in the second reading, as a clause; empty if there are none."""
    assumed_milli = {pod.filled_milli for pod in pods if pod.filled_milli is not None}
    if not assumed_milli:
        return ""
    amounts = " to ".join(
        metric_words.amount(step, milli) for milli in sorted({min(assumed_milli), max(assumed_milli)})
    )
    return f"; counted in as {amounts}{' each' if len(pods) > 1 else ''}"
