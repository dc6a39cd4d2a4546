"""Makes the views of a target's pods: of the objects, and of what the newest decision did with their samples.

Called by `podscaler.observe.live_cluster`. A new rule of `podscaler.core` that ignores samples needs a text in
RULE_TEXTS.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from podscaler.api.machinery import quantity
from podscaler.controller.recording.recording import SyncRecord
from podscaler.core.model.trace import Group, PerPod, PodRule, PodSample
from podscaler.explain import metric_words
from podscaler.observe.autoscaler_rows import instant_ms
from podscaler.observe.views import PodView

RULE_TEXTS = {  # of each rule whose group is not COUNTED
    PodRule.DELETING: "it is being deleted",
    PodRule.FAILED: "it has failed",
    PodRule.PENDING: "it is pending",
    PodRule.NO_SAMPLE: "the metric has no sample of it",
    PodRule.NO_READY_CONDITION: "it has no Ready condition",
    PodRule.NOT_STARTED: "it has not started",
    PodRule.UNREADY_WHILE_STARTING: "it is not ready while it starts",
    PodRule.SAMPLED_BEFORE_READY: "its sample began before it was ready",
    PodRule.NEVER_READY: "it was never ready",
}


def of(pods: Sequence[Mapping[str, Any]], latest: SyncRecord | None) -> tuple[PodView, ...]:
    """The views of pods, by name.

    Args:
        pods: as the API has them.
        latest: the newest sync; None: what is done with samples is not known.
    """
    samples = _samples_by_pod(latest)
    views = [_pod_view(pod, samples.get(str(pod.get("metadata", {}).get("name", "")), {})) for pod in pods]
    return tuple(sorted(views, key=lambda view: view.name))


def _samples_by_pod(latest: SyncRecord | None) -> dict[str, dict[str, PodSample]]:
    """The samples of the newest sync, by pod and by resource (or metric)."""
    samples_by_pod: dict[str, dict[str, PodSample]] = {}
    for step in latest.decision.trace.metrics if latest is not None else ():
        if isinstance(step.calculation, PerPod):
            label = metric_words.resource(step) or metric_words.name(step)
            for sample in step.calculation.pods:
                samples_by_pod.setdefault(sample.pod, {})[label] = sample
    return samples_by_pod


def _pod_view(pod: Mapping[str, Any], samples: Mapping[str, PodSample]) -> PodView:
    """The view of a pod, as the API has it, with its samples by resource or metric; empty if there are none."""
    status, metadata = pod.get("status") or {}, pod.get("metadata") or {}
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    return PodView(
        name=str(metadata.get("name", "")),
        phase="Terminating" if metadata.get("deletionTimestamp") else str(status.get("phase") or "Unknown"),
        ready=conditions.get("Ready", {}).get("status") == "True",
        reason=next(_reasons(status, conditions), ""),
        started_at=instant_ms(status.get("startTime")),
        requests=_sum_requests((pod.get("spec") or {}).get("containers") or ()),
        usage={name: sample.value_milli for name, sample in samples.items() if sample.value_milli is not None},
        ignored=_ignored_reasons(samples),
    )


def _reasons(status: Mapping[str, Any], conditions: Mapping[Any, Mapping[str, Any]]) -> Iterator[str]:
    """Why the pod does not run as it should: of its containers first, then of the pod."""
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = container.get("state") or {}
        for phase in ("waiting", "terminated"):
            reason = (state.get(phase) or {}).get("reason")
            if reason and reason != "Completed":
                yield str(reason)
    if status.get("reason"):
        yield str(status["reason"])
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        yield str(scheduled.get("reason") or "Unschedulable")


def _sum_requests(containers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The sums of the requests of containers by resource, in thousandths, without those that cannot be read."""
    sums: dict[str, int] = {}
    for container in containers:
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            try:
                sums[name] = sums.get(name, 0) + quantity.milli(str(text))
            except ValueError:
                continue
    return sums


def _ignored_reasons(samples: Mapping[str, PodSample]) -> str:
    """Why samples do not count as they are, separated by commas; empty if all count."""
    texts = [RULE_TEXTS[sample.rule] for sample in samples.values() if sample.group is not Group.COUNTED]
    return ", ".join(dict.fromkeys(texts))
