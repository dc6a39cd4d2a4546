"""Facts about one pod of a Job: its finalizer, its index, whether it failed, and when it finished.

Each function reads a Pod, or a Job, as its JSON object and changes nothing. `jobs`, `job_view`, `pod_templates` and
`pod_tracking` call it. A new annotation of pods: a constant and a function here, and in `pod_templates` what writes it.

Source: the job controller's documentation; labels and annotations of batch/v1.
"""

from collections.abc import Iterable

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.framework import pods

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX_KEY = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod of an Indexed Job."""
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotations of a pod: how many pods of its index failed before, and how many more that the failure policy ignores."""
_MAX_INT32 = 2**31 - 1
"""The greatest count in these annotations, which upstream parses as int32."""
FIRST_BACKOFF_S = 10
MAX_BACKOFF_S = 600
"""How long the next pod waits after one failure, and at most after several in a row."""
_MAX_DOUBLINGS = 32
"""Bounds the power of two; `MAX_BACKOFF_S` is reached long before."""


def is_tracked(pod: Object) -> bool:
    """Whether a pod has the finalizer of job tracking: it is not counted in the Job's status yet."""
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or [])


def completion_index(pod: Object) -> int | None:
    """The completion index of a pod; None without a valid one."""
    index_text = (pod["metadata"].get("annotations") or {}).get(INDEX_KEY, "")
    return int(index_text) if index_text.isascii() and index_text.isdigit() else None


def indexes_of(indexed_pods: Iterable[Object]) -> set[int]:
    """The completion indexes of pods; a pod without an index adds none."""
    return {index for pod in indexed_pods if (index := completion_index(pod)) is not None}


def replaces_only_failed(job: Object) -> bool:
    """Whether a terminating pod is replaced only once it is finished (`podReplacementPolicy`)."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def is_failed(pod: Object, job: Object) -> bool:
    """Whether a pod counts as failed; unless the Job replaces only failed pods, a terminating one does, too."""
    phase = pods.phase(pod)
    if phase == "Failed":
        return True
    return not replaces_only_failed(job) and pods.is_terminating(pod) and phase != "Succeeded"


def counted_index_failures(pod: Object) -> int:
    """How many pods of its index failed before this one, without those that the failure policy ignores."""
    return _parse_count(pod, INDEX_FAILURES)


def all_index_failures(pod: Object) -> int:
    """How many pods of its index failed before this one, with those that the failure policy ignores."""
    return counted_index_failures(pod) + _parse_count(pod, INDEX_IGNORED_FAILURES)


def _parse_count(pod: Object, annotation: str) -> int:
    """An annotation as a number; 0 if it is absent, not a number, or above the range of an int32."""
    count_text = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    if not (count_text.isascii() and count_text.isdigit()):
        return 0
    count = int(count_text)
    return count if count <= _MAX_INT32 else 0


def finished_at_ns(pod: Object) -> int:
    """When a pod finished, in nanoseconds since the epoch.

    The first of these times that is known: the end of its last container, the last transition of Ready to False,
    the request of its deletion, its creation.
    """
    container_ends = _container_ends(pod)
    if container_ends and all(container_ends):  # an empty text: a container has not ended
        return max(instants.parse(end) for end in container_ends)
    ready = pods.ready_condition(pod)
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return instants.parse(ready["lastTransitionTime"])
    metadata = pod["metadata"]
    if pods.is_terminating(pod):
        # the deletionTimestamp is the end of the grace period
        grace_ns = (metadata.get("deletionGracePeriodSeconds") or 0) * NANOSECONDS
        return instants.parse(metadata["deletionTimestamp"]) - grace_ns
    return instants.parse(metadata["creationTimestamp"])


def _container_ends(pod: Object) -> list[str]:
    """`finishedAt` of containers and sidecars, as RFC 3339; an empty text for one that has not ended."""
    status, sidecar_names = pod.get("status") or {}, {sidecar["name"] for sidecar in pods.sidecars(pod)}
    main_statuses = status.get("containerStatuses") or []
    init_statuses = status.get("initContainerStatuses") or []
    sidecar_statuses = [init_status for init_status in init_statuses if init_status["name"] in sidecar_names]
    states = [container_status.get("state") or {} for container_status in [*main_statuses, *sidecar_statuses]]
    return [(state.get("terminated") or {}).get("finishedAt") or "" for state in states]


def backoff_left_s(failures: int, last_failure_ns: int, now_ns: int) -> float:
    """The seconds until the next pod may be created after `failures` in a row: 10 s, 20 s, ... 600 s; 0 if it may."""
    if failures == 0:
        return 0.0
    doublings = min(failures - 1, _MAX_DOUBLINGS)
    delay_s: int = min(FIRST_BACKOFF_S * 2**doublings, MAX_BACKOFF_S)
    return max(0.0, float(delay_s) - (now_ns - last_failure_ns) / NANOSECONDS)
