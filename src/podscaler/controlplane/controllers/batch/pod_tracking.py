"""Counts finished pods in a Job's status exactly once, with the finalizer of each pod as the mark of an uncounted one.

`jobs` calls it. The order of writes is the contract: uids go into `status.uncountedTerminatedPods`, then the pods lose
their finalizer, then the counters take over the uids. After a crash between two writes the next sync goes on.
Source: KEP-2307.
"""

import copy
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.batch import completion_indexes, failure_policy, job_pods
from podscaler.controlplane.controllers.batch.job_verdict import JobVerdict
from podscaler.controlplane.controllers.batch.job_view import JobView
from podscaler.controlplane.controllers.framework import pods

MAX_UNCOUNTED_PODS = 500


@dataclass(frozen=True, slots=True)
class Tracking:
    """The first write of a sync.

    Attributes:
        status: the new status of the Job, with uids of pods to count.
        released: the pods that lose their finalizer after that write.
        is_cut: whether more pods wait for the next sync.
    """

    status: Object
    released: list[Object]
    is_cut: bool


def track(view: JobView, verdict: JobVerdict | None, status: Object) -> Tracking:
    """Note the finished pods of a Job in a copy of its new status."""
    status = take_over(status, {pod["metadata"]["uid"] for pod in view.pods if job_pods.is_tracked(pod)})
    uncounted = status["uncountedTerminatedPods"]
    succeeded, failed = list(uncounted.get("succeeded") or []), list(uncounted.get("failed") or [])
    indexes = set(view.counted_indexes) if view.is_indexed else set()
    released: list[Object] = []
    is_cut = False
    for pod in sorted(view.pods, key=lambda sorted_pod: job_pods.completion_index(sorted_pod) or 0):
        if not job_pods.is_tracked(pod) or not _is_released(view, verdict, pod):
            continue
        if len(succeeded) + len(failed) + len(indexes) - _known(view) >= MAX_UNCOUNTED_PODS:
            is_cut = True
            break
        released.append(pod)
        uid = pod["metadata"]["uid"]
        if pods.phase(pod) == "Succeeded" and uid not in failed:
            if not view.is_indexed:
                _add(succeeded, uid)
            elif view.is_valid(pod):
                indexes |= job_pods.indexes_of([pod])
        elif _counts_as_failed(view, verdict, pod):
            _add(failed, uid)
    status["uncountedTerminatedPods"] = _uncounted(succeeded, failed)
    if view.is_indexed:
        _set_indexes(view, status, indexes)
    return Tracking(status, released, is_cut)


def take_over(status: Object, tracked: AbstractSet[str]) -> Object:
    """A status whose counters have the uncounted pods that lost their finalizer.

    Args:
        status: of the Job; it is not changed.
        tracked: the uids of pods with the finalizer.
    """
    status = copy.deepcopy(status)
    uncounted = status.get("uncountedTerminatedPods") or {}
    left = {}
    for name in ("succeeded", "failed"):
        uids = uncounted.get(name) or []
        left[name] = [uid for uid in uids if uid in tracked]
        count = status.get(name, 0) + len(uids) - len(left[name])
        if count:
            status[name] = count
    status["uncountedTerminatedPods"] = _uncounted(left["succeeded"], left["failed"])
    return status


def _known(view: JobView) -> int:
    return len(view.counted_indexes) if view.is_indexed else 0


def _add(uids: list[str], uid: str) -> None:
    if uid not in uids:
        uids.append(uid)


def _uncounted(succeeded: list[str], failed: list[str]) -> Object:
    return ({"succeeded": succeeded} if succeeded else {}) | ({"failed": failed} if failed else {})


def _is_released(view: JobView, verdict: JobVerdict | None, pod: Object) -> bool:
    """Whether a pod may be counted and lose its finalizer."""
    if pods.is_terminating(view.job) or verdict is not None or pods.phase(pod) == "Succeeded":
        return True
    if not view.is_failed(pod):
        return False
    index = job_pods.completion_index(pod)
    later = None if index is None else view.replaced_later.get(index)
    return later is None or later["metadata"]["uid"] != pod["metadata"]["uid"]


def _counts_as_failed(view: JobView, verdict: JobVerdict | None, pod: Object) -> bool:
    """Whether a pod that did not succeed adds to `status.failed`; with a failed Job all its pods do."""
    is_over = verdict is not None and not verdict.is_success
    if not (view.is_failed(pod) or is_over) or not view.is_valid(pod):
        return False
    return failure_policy.match(view.job, pod).counts


def _set_indexes(view: JobView, status: Object, indexes: set[int]) -> None:
    """Set the succeeded and the failed indexes."""
    for name, value in (("succeeded", len(indexes)), ("completedIndexes", completion_indexes.text(indexes))):
        if value:
            status[name] = value
        else:
            status.pop(name, None)
    if view.limit_per_index is not None:
        status["failedIndexes"] = completion_indexes.text(view.failed_indexes)
