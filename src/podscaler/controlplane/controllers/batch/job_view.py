"""`JobView`: a Job and its pods as one sync reads them, with the counts and indexes that follow from them.

`jobs` makes one at the start of each sync and does not change it; `job_verdict`, `pod_templates` and `pod_tracking`
read it. A pod is "new" if it has finished and the status neither counts nor lists it (in uncountedTerminatedPods) yet;
it is "tracked" while it has the finalizer `job_pods.TRACKING_FINALIZER`. A new fact that follows from a Job and its
pods: a cached property here.

Source: the job controller's documentation.
"""

import itertools
from collections.abc import Sequence
from functools import cached_property

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.batch import completion_indexes, failure_policy, job_pods
from podscaler.controlplane.controllers.framework import pods


class JobView:
    """A Job with the pods that it controls.

    Args:
        job: the Job, with all defaults.
        owned: its pods, finished and terminating ones, too.

    Attributes:
        job, spec, status: the Job and its parts; the status is empty before the first sync.
        pods: the same as `owned`; `active` are those that are neither finished nor being deleted.
        terminating: the pods that are being deleted, finished ones, too.
        is_indexed, is_suspended: whether completionMode is Indexed, and whether `spec.suspend` is set.
        backoff_limit_per_index: `spec.backoffLimitPerIndex`; None if it is not set.
    """

    def __init__(self, job: Object, owned: Sequence[Object]) -> None:
        self.job = job
        self.pods = owned
        self.spec: Object = job["spec"]
        self.status: Object = job.get("status") or {}
        self.active = [pod for pod in owned if pods.is_active(pod)]
        self.terminating = [pod for pod in owned if pods.is_terminating(pod)]
        self.is_indexed = self.spec.get("completionMode") == "Indexed"
        self.is_suspended = bool(self.spec.get("suspend"))
        self.backoff_limit_per_index: int | None = self.spec.get("backoffLimitPerIndex")
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        self._listed_succeeded_uids: frozenset[str] = frozenset(uncounted.get("succeeded") or ())
        self._listed_failed_uids: frozenset[str] = frozenset(uncounted.get("failed") or ())

    def is_countable(self, pod: Object) -> bool:
        """Whether a pod can count as succeeded or failed: in an Indexed Job it needs an index below `completions`."""
        index = job_pods.completion_index(pod)
        return not self.is_indexed or (index is not None and index < self.spec["completions"])

    def is_failed(self, pod: Object) -> bool:
        """Whether a pod counts as failed, as a terminating one does unless the Job replaces only failed pods."""
        return job_pods.is_failed(pod, self.job)

    @cached_property
    def new_succeeded(self) -> list[Object]:
        """The succeeded pods that the status neither counts nor lists yet."""
        return [pod for pod in self._tracked_pods(self._listed_succeeded_uids) if pods.phase(pod) == "Succeeded"]

    @cached_property
    def new_failed(self) -> list[Object]:
        """The failed pods that the status neither counts nor lists yet, with those that the failure policy ignores."""
        return [pod for pod in self._tracked_pods(self._listed_failed_uids) if self.is_failed(pod)]

    def _tracked_pods(self, excluded_uids: frozenset[str] = frozenset()) -> list[Object]:
        """The countable pods that have the finalizer, whatever their phase, without those of `excluded_uids`."""
        tracked = [pod for pod in self.pods if job_pods.is_tracked(pod) and self.is_countable(pod)]
        return [pod for pod in tracked if pod["metadata"]["uid"] not in excluded_uids]

    @cached_property
    def succeeded_count(self) -> int:
        """How many pods, or indexes of an Indexed Job, have succeeded: those counted in the status, listed, and new."""
        if self.is_indexed:
            return len(self.succeeded_indexes)
        return int(self.status.get("succeeded", 0)) + len(self.new_succeeded) + len(self._listed_succeeded_uids)

    @cached_property
    def failed_count(self) -> int:
        """How many failures count towards `backoffLimit`: those counted in the status, listed there, and new."""
        new_failures = sum(failure_policy.match(self.job, pod).is_counted for pod in self.new_failed)
        return int(self.status.get("failed", 0) + new_failures + len(self._listed_failed_uids))

    @cached_property
    def recorded_succeeded_indexes(self) -> frozenset[int]:
        """The succeeded indexes of the status (`completedIndexes`); empty unless the Job is Indexed."""
        if not self.is_indexed:
            return frozenset()
        return completion_indexes.parse_indexes(self.status.get("completedIndexes", ""), self.spec["completions"])

    @cached_property
    def succeeded_indexes(self) -> frozenset[int]:
        """The succeeded indexes of the status and of pods, of an Indexed Job."""
        succeeded_pods = [pod for pod in self._tracked_pods() if pods.phase(pod) == "Succeeded"]
        return self.recorded_succeeded_indexes | job_pods.indexes_of(succeeded_pods)

    @cached_property
    def failed_indexes(self) -> frozenset[int]:
        """The indexes that are not tried again; empty without `backoffLimitPerIndex`."""
        limit = self.backoff_limit_per_index
        if limit is None:
            return frozenset()
        recorded = completion_indexes.parse_indexes(self.status.get("failedIndexes") or "", self.spec["completions"])
        return recorded | job_pods.indexes_of(pod for pod in self._tracked_pods() if self._fails_index(pod, limit))

    def _fails_index(self, pod: Object, limit: int) -> bool:
        """Whether with this pod its index has failed: by the failure policy, or by `backoffLimitPerIndex` (`limit`)."""
        if not self.is_failed(pod):
            return False
        matched = failure_policy.match(self.job, pod)
        return matched.action == "FailIndex" or (matched.is_counted and job_pods.counted_index_failures(pod) >= limit)

    @cached_property
    def failed_pods_to_replace(self) -> dict[int, Object]:
        """The last failed pod of each index that is tried again, by index; empty without `backoffLimitPerIndex`.

        Such a pod keeps its finalizer until its replacement has taken over its failure count.
        """
        if self.backoff_limit_per_index is None:
            return {}
        last_failed: dict[int, Object] = {}
        for pod in sorted(filter(self.is_failed, self._tracked_pods()), key=_failure_order):
            index = job_pods.completion_index(pod)
            if index is not None and index not in self._covered_indexes:
                last_failed[index] = pod
        return last_failed

    @cached_property
    def _covered_indexes(self) -> frozenset[int]:
        """The indexes that need no further pod: those that succeeded, failed, or have an active pod."""
        return self.succeeded_indexes | self.failed_indexes | job_pods.indexes_of(self.active)

    def pending_indexes(self, max_count: int) -> list[int]:
        """The lowest indexes that need a pod, at most `max_count`; one whose pod terminates may have to wait."""
        unavailable = self._covered_indexes
        if job_pods.replaces_only_failed(self.job):
            unavailable |= job_pods.indexes_of(self.terminating)
        pending = (index for index in range(self.spec["completions"]) if index not in unavailable)
        return list(itertools.islice(pending, max_count))

    @cached_property
    def desired_active_count(self) -> int:
        """How many pods are to run; without `completions`, no pod is added after the first success."""
        parallelism, completions = self.spec["parallelism"], self.spec.get("completions")
        if completions is None:
            return len(self.active) if self.succeeded_count else int(parallelism)
        return int(max(0, min(completions - self.succeeded_count, parallelism)))


def _failure_order(pod: Object) -> tuple[int, int]:
    """Sort key: the pods of an index in the order of their failures; each one's annotation counts those before it."""
    return job_pods.all_index_failures(pod), job_pods.finished_at_ns(pod)
