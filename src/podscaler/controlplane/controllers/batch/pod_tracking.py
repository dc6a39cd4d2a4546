"""Counts finished pods in a Job's status exactly once, with the finalizer of each pod as the mark of an uncounted one.

`jobs` calls it and makes three writes, in this order, so that the next sync can continue after a crash between two:

1. the status of `track`, with the uids of finished pods in `status.uncountedTerminatedPods`
2. the pods, without their finalizer
3. the status of `count_released`, whose counters include these pods, and which no longer lists their uids

`_is_released` and `_counts_as_failed` decide which pods are counted, and how. Source: KEP-2307.
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
"""The most uncounted pods and new succeeded indexes in the status after one sync; the next sync counts further ones."""


@dataclass(frozen=True, slots=True)
class Tracking:
    """The first write of a sync, and the pods of the second.

    Attributes:
        status: the new status of the Job, with uids of pods to count.
        released: the pods that lose their finalizer after that write.
        has_more: whether more pods wait for the next sync, because of `MAX_UNCOUNTED_PODS`.
    """

    status: Object
    released: list[Object]
    has_more: bool


def track(view: JobView, verdict: JobVerdict | None, status: Object) -> Tracking:
    """List the finished pods of a Job in a copy of its new status; returns that status and the listed pods.

    Args:
        view: the Job and its pods.
        verdict: how the Job ends, None if it does not end yet.
        status: the Job's new status as far as `jobs` has computed it; it is not changed.
    """
    new_status = count_released(status, {pod["metadata"]["uid"] for pod in view.pods if job_pods.is_tracked(pod)})
    uncounted = new_status["uncountedTerminatedPods"]
    succeeded_uids, failed_uids = list(uncounted.get("succeeded") or []), list(uncounted.get("failed") or [])
    succeeded_indexes = set(view.recorded_succeeded_indexes)
    released: list[Object] = []
    has_more = False
    releasable = [pod for pod in view.pods if job_pods.is_tracked(pod) and _is_released(view, verdict, pod)]
    for pod in sorted(releasable, key=_index_order):
        new_index_count = len(succeeded_indexes) - len(view.recorded_succeeded_indexes)
        if len(succeeded_uids) + len(failed_uids) + new_index_count >= MAX_UNCOUNTED_PODS:
            has_more = True
            break
        released.append(pod)
        uid = pod["metadata"]["uid"]
        if pods.phase(pod) == "Succeeded" and uid not in failed_uids:  # it may be listed as failed: it was terminating
            if not view.is_indexed:
                _append_once(succeeded_uids, uid)
            elif view.is_countable(pod):
                succeeded_indexes |= job_pods.indexes_of([pod])
        elif _counts_as_failed(view, verdict, pod):
            _append_once(failed_uids, uid)
    new_status["uncountedTerminatedPods"] = _uncounted_field(succeeded_uids, failed_uids)
    if view.is_indexed:
        _set_indexes(view, new_status, succeeded_indexes)
    return Tracking(new_status, released, has_more)


def count_released(status: Object, tracked_uids: AbstractSet[str]) -> Object:
    """A status whose counters include the uncounted pods that lost their finalizer.

    Args:
        status: of the Job; it is not changed.
        tracked_uids: the uids of pods with the finalizer.
    """
    new_status = copy.deepcopy(status)
    uncounted = status.get("uncountedTerminatedPods") or {}
    still_tracked = {}
    for result in ("succeeded", "failed"):  # the counters have the names of the lists
        listed_uids = uncounted.get(result) or []
        still_tracked[result] = [uid for uid in listed_uids if uid in tracked_uids]
        count = status.get(result, 0) + len(listed_uids) - len(still_tracked[result])
        if count:
            new_status[result] = count
    new_status["uncountedTerminatedPods"] = _uncounted_field(still_tracked["succeeded"], still_tracked["failed"])
    return new_status


def _index_order(pod: Object) -> int:
    """Sort key: the completion index; a pod without one counts as index 0."""
    return job_pods.completion_index(pod) or 0


def _append_once(uids: list[str], uid: str) -> None:
    """Append a uid unless it is listed."""
    if uid not in uids:
        uids.append(uid)


def _uncounted_field(succeeded_uids: list[str], failed_uids: list[str]) -> Object:
    """The field `uncountedTerminatedPods` with the uids of pods; an empty list is left out."""
    uids_by_result = {"succeeded": succeeded_uids, "failed": failed_uids}
    return {result: uids for result, uids in uids_by_result.items() if uids}


def _is_released(view: JobView, verdict: JobVerdict | None, pod: Object) -> bool:
    """Whether a pod may be counted and lose its finalizer; one of `failed_pods_to_replace` only once it is replaced."""
    if pods.is_terminating(view.job) or verdict is not None or pods.phase(pod) == "Succeeded":
        return True
    if not view.is_failed(pod):
        return False
    index = job_pods.completion_index(pod)
    pod_to_replace = None if index is None else view.failed_pods_to_replace.get(index)
    return pod_to_replace is None or pod_to_replace["metadata"]["uid"] != pod["metadata"]["uid"]


def _counts_as_failed(view: JobView, verdict: JobVerdict | None, pod: Object) -> bool:
    """Whether a pod that did not succeed adds to `status.failed`; with a failed Job all its pods do."""
    has_job_failed = verdict is not None and not verdict.is_success
    if not (view.is_failed(pod) or has_job_failed) or not view.is_countable(pod):
        return False
    return failure_policy.match(view.job, pod).is_counted


def _set_indexes(view: JobView, status: Object, succeeded_indexes: set[int]) -> None:
    """Set the succeeded and the failed indexes in the status, in place; without a success the fields are absent."""
    if succeeded_indexes:
        status["succeeded"] = len(succeeded_indexes)
        status["completedIndexes"] = completion_indexes.format_indexes(succeeded_indexes)
    else:
        status.pop("succeeded", None)
        status.pop("completedIndexes", None)
    if view.backoff_limit_per_index is not None:
        status["failedIndexes"] = completion_indexes.format_indexes(view.failed_indexes)
