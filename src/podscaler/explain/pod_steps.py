"""The pods of one metric: which samples count, which do not, and what is assumed instead. Grouped by rule, abbreviated.

Called by `metric_steps`. However many pods there are, a rule takes one line.

Source: docs/spec/decision.md 6.1 (Grouping pods), 6.3 (Utilisation target).
"""

from collections.abc import Iterable, Sequence

from podscaler.core.model.trace import Group, MetricStep, PerPod, PodRule, PodSample
from podscaler.explain import metric_words, wording
from podscaler.explain.line import Line

_LABELS = {Group.COUNTED: "used", Group.IGNORED: "ignored", Group.UNREADY: "not ready", Group.MISSING: "missing"}
_REASONS = {
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
SPREAD_FROM = 4
"""From so many used pods on, smallest and largest value are told."""


def lines(step: MetricStep, calculation: PerPod) -> Iterable[Line]:
    """One line for each rule that applied to a pod, in the order used, ignored, not ready, missing."""
    for group, label in _LABELS.items():
        for rule, reason in _REASONS.items():
            pods = [each for each in calculation.pods if each.rule is rule and rule.group is group]
            if pods:
                yield Line(label, _text(step, pods, reason))
    if calculation.unlisted:
        names = [f"{each.pod} {metric_words.amount(step, each.value_milli)}" for each in calculation.unlisted]
        yield Line(
            "unlisted", f"{wording.count(len(names), 'sample')} of pods that are not there: {wording.listed(names)}"
        )


def _text(step: MetricStep, pods: Sequence[PodSample], reason: str) -> str:
    shown = wording.listed([_pod(step, each) for each in pods])
    why = f" ({reason})" if reason else ""
    return f"{wording.count(len(pods), 'pod')}{why}{_spread(step, pods)}: {shown}{_assumed(step, pods)}"


def _pod(step: MetricStep, pod: PodSample) -> str:
    if pod.value_milli is None:
        return pod.pod
    request = f" of {metric_words.amount(step, pod.request_milli)}" if pod.request_milli is not None else ""
    return f"{pod.pod} {metric_words.amount(step, pod.value_milli)}{request}"


def _spread(step: MetricStep, pods: Sequence[PodSample]) -> str:
    values = [each.value_milli for each in pods if each.value_milli is not None]
    if len(values) <= SPREAD_FROM or pods[0].group is not Group.COUNTED:
        return ""
    lowest, highest = metric_words.amount(step, min(values)), metric_words.amount(step, max(values))
    return f" at {lowest} each" if lowest == highest else f" from {lowest} to {highest}"


def _assumed(step: MetricStep, pods: Sequence[PodSample]) -> str:
    """What is assumed for these pods in the second look."""
    filled = {each.filled_milli for each in pods if each.filled_milli is not None}
    if not filled:
        return ""
    amounts = " to ".join(metric_words.amount(step, each) for each in sorted({min(filled), max(filled)}))
    return f"; counted in as {amounts}{' each' if len(pods) > 1 else ''}"
