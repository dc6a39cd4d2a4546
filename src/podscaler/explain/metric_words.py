"""Phrases for a metric: its name, its value, its target.

Called by `sentence` and `metric_steps`. A new Outcome that changes nothing: an entry in `_NO_CHANGE_REASONS`; a new
type of metric: a case in `name`, in `_RESOURCE_TYPES` if it is of a resource, and in `target` if its target is for each
pod; a new calculation: a case in `value_and_target`.
"""

from podscaler.core.model.trace import MetricStep, OfAverage, OfTotal, Outcome, PerPod, Reading
from podscaler.explain import wording

_UTILIZATION_SUFFIX = "(percentage of request)"
_RESOURCE_TYPES = frozenset({"Resource", "ContainerResource"})


def name(step: MetricStep) -> str:
    """A short name: `cpu`, `cpu of container app`, `rps of Ingress/main`, `external metric queue_depth`."""
    if not step.name:
        return f"a metric of type {step.type}"
    if step.type == "Resource":
        return resource(step)
    if step.type == "ContainerResource":
        return f"{resource(step)} of container {step.subject}"
    metric_name = step.name.partition("(")[0]  # of `external metric queue_depth(nil)`, `Ingress metric rps`, ...
    return f"{metric_name.rpartition(' ')[2]} of {step.subject}" if step.type == "Object" else metric_name


def full_name(step: MetricStep) -> str:
    """The name in events and conditions, with the measured object where the name lacks it."""
    subject = f" of {step.subject}" if step.subject else ""
    return f"{step.name or f'metric of type {step.type}'}{subject}"


def resource(step: MetricStep) -> str:
    """The resource that is measured (`cpu`); empty for custom and external metrics."""
    return step.name.partition(" ")[0] if step.type in _RESOURCE_TYPES else ""


def is_utilization(step: MetricStep) -> bool:
    """Whether the target is a percentage of requests."""
    return step.name.endswith(_UTILIZATION_SUFFIX)


def amount(step: MetricStep, milli: int) -> str:
    """An amount in the unit of the metric: `250m`, `64Mi`, `12.5`."""
    return wording.amount(milli, resource(step))


def target(step: MetricStep) -> str:
    """The target: `50 %`, `200m a pod`, `1000`; `none` where none is set."""
    if step.target is None:
        return "none"
    if is_utilization(step):
        return f"{step.target} %"
    if step.kept is not None:  # this sync has no calculation, which would tell the type of the target
        is_per_pod = step.kept.current.average_value is not None
    else:
        is_per_pod = step.type in _RESOURCE_TYPES or step.type == "Pods" or isinstance(step.calculation, OfAverage)
    return amount(step, step.target) + (" a pod" if is_per_pod else "")


def value_and_target(step: MetricStep) -> str:
    """The value of the metric and its target: `cpu is at 81 % of requests, target 50 %`."""
    calculation = step.calculation
    if isinstance(calculation, PerPod):
        return f"{name(step)} {_level_of_pods(step, calculation)}, target {target(step)}"
    if isinstance(calculation, OfTotal | OfAverage):
        total = " in total" if isinstance(calculation, OfAverage) else ""  # while the target is for each pod
        return f"{name(step)} is {amount(step, calculation.usage_milli)}{total}, target {target(step)}"
    return f"{name(step)} has a target of {target(step)}"


def _level_of_pods(step: MetricStep, calculation: PerPod) -> str:
    """The level of a metric with a value for each pod.

    If values were assumed for pods without usable samples, it is that with them, and in brackets that without them.
    """
    first, second = calculation.first, calculation.second  # the readings without and with assumed values
    if first is None:
        return "could not be summed up"
    if second is None or second == first:
        return _level(step, first)
    without_assumed = f"{_level_text(step, first)} without those that have no usable sample"
    return f"{_level(step, second)} with all pods counted in ({without_assumed})"


def _level(step: MetricStep, reading: Reading) -> str:
    """A reading as part of a sentence: `is at 81 % of requests`, `averages 12.5 a pod`."""
    if reading.requests_milli is not None:
        return f"is at {reading.current} % of requests"
    return f"averages {amount(step, reading.average_milli)} a pod"


def _level_text(step: MetricStep, reading: Reading) -> str:
    """A reading as a bare value: `81 %`, `12.5`."""
    return f"{reading.current} %" if reading.requests_milli is not None else amount(step, reading.average_milli)


def no_change_reason(step: MetricStep) -> str:
    """The reason why a proposal changes nothing, as the end of a sentence; empty if there is none."""
    outcome = step.calculation.outcome if step.calculation else None
    return _NO_CHANGE_REASONS.get(outcome, "") if outcome else ""


_NO_CHANGE_REASONS = {
    Outcome.WITHIN_TOLERANCE: "which is within tolerance",
    Outcome.STILL_WITHIN_TOLERANCE: "which is within tolerance",
    Outcome.DIRECTION_REVERSED: "which turns the direction around, so nothing is done",
    Outcome.WRONG_DIRECTION: "which would turn the direction around, so nothing is done",
}
