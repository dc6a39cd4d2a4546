"""Makes the pods that a Job creates: finalizer, and index as annotation, label, host name and environment variable.

`jobs` calls `new_pod` and creates the pods that it returns. `_set_index` adds the index to the metadata,
`_indexed_spec` to the spec.

Source: batch/v1, completionMode Indexed; KEP-3850 (failure counts by index).
"""

import copy
from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.batch import failure_policy, job_pods
from podscaler.controlplane.controllers.batch.job_view import JobView
from podscaler.controlplane.controllers.framework import templates

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_MAX_PREFIX_CHARACTERS = 58
"""Longer prefixes are cut, so that a name with its random suffix has at most 63 characters."""


def new_pod(view: JobView, index: int | None = None) -> Object:
    """The manifest of a pod to create; for an Indexed Job the one of `index`, which is None for other Jobs."""
    pod = templates.pod_from(view.spec["template"], view.job)
    finalizers = pod["metadata"].get("finalizers") or []
    if job_pods.TRACKING_FINALIZER not in finalizers:
        pod["metadata"]["finalizers"] = [*finalizers, job_pods.TRACKING_FINALIZER]
    if index is not None:
        pod["spec"] = _indexed_spec(pod["spec"], view.job["metadata"]["name"], index)
        _set_index(pod["metadata"], view, index)
    return pod


def _set_index(metadata: Object, view: JobView, index: int) -> None:
    """Set the index in the metadata of a new pod, in place: in its name, a label and an annotation."""
    job_name, suffix = view.job["metadata"]["name"], f"-{index}-"
    metadata["generateName"] = job_name[: _MAX_PREFIX_CHARACTERS - len(suffix)] + suffix
    metadata["labels"] = {**(metadata.get("labels") or {}), job_pods.INDEX_KEY: str(index)}
    annotations = {**(metadata.get("annotations") or {}), job_pods.INDEX_KEY: str(index)}
    if view.backoff_limit_per_index is not None:
        annotations |= _failure_counts(view, index)
    metadata["annotations"] = annotations


def _failure_counts(view: JobView, index: int) -> dict[str, str]:
    """The annotations that count the failures of an index: those of the failed pod that is replaced, and its own."""
    failed_pod = view.failed_pods_to_replace.get(index)
    if failed_pod is None:
        return {job_pods.INDEX_FAILURES: "0"}
    failures = job_pods.counted_index_failures(failed_pod)
    ignored_failures = job_pods.all_index_failures(failed_pod) - failures
    if failure_policy.match(view.job, failed_pod).is_counted:
        failures += 1
    else:
        ignored_failures += 1
    annotations = {job_pods.INDEX_FAILURES: str(failures)}
    if ignored_failures:
        annotations[job_pods.INDEX_IGNORED_FAILURES] = str(ignored_failures)
    return annotations


def _indexed_spec(spec: Object, job_name: str, index: int) -> Object:
    """A copy of a pod's spec with the host name of the index, and the index in a variable of each container."""
    indexed_spec: dict[str, Any] = copy.deepcopy(spec)
    indexed_spec["hostname"] = f"{job_name}-{index}"
    for container in [*(indexed_spec.get("initContainers") or []), *indexed_spec["containers"]]:
        variables = container.get("env") or []
        if all(variable["name"] != _INDEX_VARIABLE for variable in variables):
            field_ref = {"fieldPath": f"metadata.labels['{job_pods.INDEX_KEY}']"}
            container["env"] = [*variables, {"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": field_ref}}]
    return indexed_spec
