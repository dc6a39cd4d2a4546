"""One reading of a Job and its pods, from which the verdict, the number of pods to create and the counts are taken.

`jobs` makes it at the start of each sync; it does not change. Source: the job controller's documentation.
"""

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
    """

    def __init__(self, job: Object, owned: Sequence[Object]) -> None:
        self.job = job
        self.pods = owned
        self.spec: Object = job["spec"]
        self.status: Object = job.get("status") or {}
        self.active = [pod for pod in owned if pods.is_active(pod)]
        self.is_indexed = self.spec.get("completionMode") == "Indexed"
        self.is_suspended = bool(self.spec.get("suspend"))
        self.limit_per_index: int | None = self.spec.get("backoffLimitPerIndex")

    @cached_property
    def _uncounted(self) -> tuple[frozenset[str], frozenset[str]]:
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        return frozenset(uncounted.get("succeeded") or ()), frozenset(uncounted.get("failed") or ())

    def is_valid(self, pod: Object) -> bool:
        """Whether a pod counts: in an Indexed Job it needs an index below `completions`."""
        index = job_pods.completion_index(pod)
        return not self.is_indexed or (index is not None and index < self.spec["completions"])

    def is_failed(self, pod: Object) -> bool:
        """Whether a pod counts as failed."""
        return job_pods.is_failed(pod, self.job)

    @cached_property
    def new_succeeded(self) -> list[Object]:
        """The succeeded pods that the status does not know yet."""
        return [pod for pod in self._new(self._uncounted[0]) if pods.phase(pod) == "Succeeded"]

    @cached_property
    def new_failed(self) -> list[Object]:
        """The failed pods that the status does not know yet, with those that the failure policy ignores."""
        return [pod for pod in self._new(self._uncounted[1]) if self.is_failed(pod)]

    def _new(self, known: frozenset[str]) -> list[Object]:
        tracked = [pod for pod in self.pods if job_pods.is_tracked(pod) and self.is_valid(pod)]
        return [pod for pod in tracked if pod["metadata"]["uid"] not in known]

    @cached_property
    def succeeded(self) -> int:
        """How many pods, or indexes of an Indexed Job, have succeeded."""
        if self.is_indexed:
            return len(self.succeeded_indexes)
        return int(self.status.get("succeeded", 0)) + len(self.new_succeeded) + len(self._uncounted[0])

    @cached_property
    def failed(self) -> int:
        """How many failures count towards `backoffLimit`."""
        new = sum(failure_policy.match(self.job, pod).counts for pod in self.new_failed)
        return int(self.status.get("failed", 0) + new + len(self._uncounted[1]))

    @cached_property
    def counted_indexes(self) -> frozenset[int]:
        """The succeeded indexes of the status."""
        return completion_indexes.parse_indexes(self.status.get("completedIndexes", ""), self.spec["completions"])

    @cached_property
    def succeeded_indexes(self) -> frozenset[int]:
        """The succeeded indexes of the status and of pods."""
        done = [pod for pod in self._new(frozenset()) if pods.phase(pod) == "Succeeded"]
        return self.counted_indexes | job_pods.indexes_of(done)

    @cached_property
    def failed_indexes(self) -> frozenset[int]:
        """The indexes that are not tried again; empty without `backoffLimitPerIndex`."""
        if self.limit_per_index is None:
            return frozenset()
        known = completion_indexes.parse_indexes(self.status.get("failedIndexes") or "", self.spec["completions"])
        return known | job_pods.indexes_of(pod for pod in self._new(frozenset()) if self._fails_index(pod))

    def _fails_index(self, pod: Object) -> bool:
        if not self.is_failed(pod):
            return False
        matched = failure_policy.match(self.job, pod)
        limit = self.limit_per_index or 0
        return matched.action == "FailIndex" or (matched.counts and job_pods.index_failures(pod) >= limit)

    @cached_property
    def replaced_later(self) -> dict[int, Object]:
        """By index, the failed pod that stays until its replacement has taken over its failure count."""
        if self.limit_per_index is None:
            return {}
        settled = self.succeeded_indexes | self.failed_indexes | job_pods.indexes_of(self.active)
        last: dict[int, Object] = {}
        for pod in sorted(filter(self.is_failed, self._new(frozenset())), key=_failure_order):
            index = job_pods.completion_index(pod)
            if index is not None and index not in settled:
                last[index] = pod
        return last

    def pending_indexes(self, count: int, terminating: Sequence[Object]) -> list[int]:
        """The first `count` indexes that need a pod."""
        taken = self.succeeded_indexes | self.failed_indexes | job_pods.indexes_of(self.active)
        if job_pods.replaces_only_failed(self.job):
            taken |= job_pods.indexes_of(terminating)
        free = (index for index in range(self.spec["completions"]) if index not in taken)
        return [index for index, _ in zip(free, range(count), strict=False)]

    @cached_property
    def wanted_active(self) -> int:
        """How many pods are to run."""
        parallelism, completions = self.spec["parallelism"], self.spec.get("completions")
        if completions is None:
            return len(self.active) if self.succeeded else int(parallelism)
        return int(max(0, min(completions - self.succeeded, parallelism)))


def _failure_order(pod: Object) -> tuple[int, int]:
    return job_pods.all_index_failures(pod), job_pods.finished_at_ns(pod)
