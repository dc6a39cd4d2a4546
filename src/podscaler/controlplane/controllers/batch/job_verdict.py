"""Decides whether a Job is to end, and how: the conditions SuccessCriteriaMet and FailureTarget, and the deadline.

`jobs` calls `find_verdict` in each sync, before pods are created. A verdict in the status is final. The order is: the
recorded success, the recorded failure, the failure policy, `backoffLimit`, `activeDeadlineSeconds`, failed indexes, the
success policy. Completions are checked by `jobs` after it created pods. A new reason: a return in `find_verdict`.

Source: the job controller's documentation; reasons and messages are upstream's.
"""

from dataclasses import dataclass

from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.batch import failure_policy
from podscaler.controlplane.controllers.batch.job_view import JobView
from podscaler.controlplane.controllers.framework import conditions, pods


@dataclass(frozen=True, slots=True)
class JobVerdict:
    """How a Job ends.

    Attributes:
        is_success: whether the Job becomes Complete; otherwise Failed.
        reason, message: of its conditions.
    """

    is_success: bool
    reason: str
    message: str

    @property
    def interim_condition(self) -> str:
        """The type of the condition that is set before the pods are gone."""
        return "SuccessCriteriaMet" if self.is_success else "FailureTarget"

    @property
    def final_condition(self) -> str:
        """The type of the condition of the finished Job."""
        return "Complete" if self.is_success else "Failed"


COMPLETED = JobVerdict(True, "CompletionsReached", "Reached expected number of succeeded pods")
"""The verdict for a Job with enough succeeded pods, which `jobs` decides itself."""


def has_condition(job: Object, type_: str) -> bool:
    """Whether the status of a Job has the condition `type_` with status True."""
    condition = conditions.find((job.get("status") or {}).get("conditions") or [], type_)
    return condition is not None and condition["status"] == "True"


def is_finished(job: Object) -> bool:
    """Whether a Job is Complete or Failed."""
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def find_verdict(view: JobView, started_ns: int | None, now_ns: int) -> JobVerdict | None:
    """How the Job ends; None if it does not end yet.

    Args:
        view: the Job and its pods.
        started_ns: `status.startTime`; None for a Job that was always suspended.
        now_ns: nanoseconds since the epoch.
    """
    recorded_verdict = _find_recorded_verdict(view)
    if recorded_verdict is not None:
        return recorded_verdict
    message = failure_policy.fail_job_message(view.job, filter(view.is_failed, view.pods))
    if message:
        return JobVerdict(False, "PodFailurePolicy", message)
    if view.failed_count > view.spec["backoffLimit"] or _exceeds_restarts(view):
        return JobVerdict(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left_s = deadline_left_s(view, started_ns, now_ns)
    if left_s is not None and left_s <= 0:
        return JobVerdict(False, "DeadlineExceeded", "Job was active longer than specified deadline")
    return _index_verdict(view) if view.is_indexed else None


def deadline_left_s(view: JobView, started_ns: int | None, now_ns: int) -> float | None:
    """The seconds until `activeDeadlineSeconds` are over; None without them, and for a suspended Job."""
    allowed_s = view.spec.get("activeDeadlineSeconds")
    if allowed_s is None or started_ns is None or view.is_suspended:
        return None
    return float(allowed_s - (now_ns - started_ns) / NANOSECONDS)


def _find_recorded_verdict(view: JobView) -> JobVerdict | None:
    """The verdict that an earlier sync wrote into the status as an interim condition; None if there is none."""
    for is_success, type_ in ((True, "SuccessCriteriaMet"), (False, "FailureTarget")):
        condition = conditions.find(view.status.get("conditions") or [], type_)
        if condition is not None and condition["status"] == "True":
            return JobVerdict(is_success, condition.get("reason", ""), condition.get("message", ""))
    return None


def _exceeds_restarts(view: JobView) -> bool:
    """Whether containers of unfinished pods with restartPolicy OnFailure were restarted `backoffLimit` times in all.

    With a limit of 0, as upstream, the first restart exceeds it.
    """
    if view.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    limit, restarts = view.spec["backoffLimit"], 0
    for pod in view.pods:
        if pods.phase(pod) in ("Running", "Pending"):
            status = pod.get("status") or {}
            container_statuses = [
                *(status.get("initContainerStatuses") or []),
                *(status.get("containerStatuses") or []),
            ]
            restarts += sum(container_status.get("restartCount", 0) for container_status in container_statuses)
    return bool(restarts >= max(limit, 1))


def _index_verdict(view: JobView) -> JobVerdict | None:
    """The verdict by the indexes: too many failed, all ended with some failed, or the success policy met; else None."""
    failed_count = len(view.failed_indexes)
    max_failed = view.spec.get("maxFailedIndexes")
    if max_failed is not None and failed_count > max_failed:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return JobVerdict(False, "MaxFailedIndexesExceeded", message)
    if failed_count and failed_count + len(view.succeeded_indexes) >= view.spec["completions"]:
        return JobVerdict(False, "FailedIndexes", "Job has failed indexes")
    message = failure_policy.success_message(view.job, view.succeeded_indexes)
    return JobVerdict(True, "SuccessPolicy", message) if message else None
