"""Makes the pods that a Job creates: finalizer, and index as annotation, label, host name and environment variable.

`jobs` calls it. Source: batch/v1, completionMode Indexed; KEP-3850 (failure counts by index).
"""

import copy
from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.batch import failure_policy, job_pods
from podscaler.controlplane.controllers.batch.job_view import JobView
from podscaler.controlplane.controllers.framework import templates

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_MAX_GENERATED_PREFIX = 58
"""Longer prefixes are cut, so that a name with its random suffix has at most 63 characters."""


def pod_of(view: JobView, index: int | None = None) -> Object:
    """A pod to create; for an Indexed Job the one of `index`."""
    pod = templates.pod_from(view.spec["template"], view.job)
    finalizers = pod["metadata"].get("finalizers") or []
    if job_pods.TRACKING_FINALIZER not in finalizers:
        pod["metadata"]["finalizers"] = [*finalizers, job_pods.TRACKING_FINALIZER]
    if index is not None:
        pod["spec"] = _indexed_spec(pod["spec"], view.job["metadata"]["name"], index)
        _add_index(pod["metadata"], view, index)
    return pod


def _add_index(metadata: Object, view: JobView, index: int) -> None:
    """Give a pod its index, in its name, a label and an annotation."""
    name, suffix = view.job["metadata"]["name"], f"-{index}-"
    metadata["generateName"] = name[: _MAX_GENERATED_PREFIX - len(suffix)] + suffix
    metadata["labels"] = {**(metadata.get("labels") or {}), job_pods.INDEX_KEY: str(index)}
    annotations = {**(metadata.get("annotations") or {}), job_pods.INDEX_KEY: str(index)}
    if view.limit_per_index is not None:
        annotations |= _failure_counts(view, index)
    metadata["annotations"] = annotations


def _failure_counts(view: JobView, index: int) -> dict[str, str]:
    """The annotations that count the failures of an index, from the pod that is replaced."""
    replaced = view.replaced_later.get(index)
    if replaced is None:
        return {job_pods.INDEX_FAILURES: "0"}
    failures = job_pods.index_failures(replaced)
    ignored = job_pods.all_index_failures(replaced) - failures
    if failure_policy.match(view.job, replaced).counts:
        failures += 1
    else:
        ignored += 1
    counts = {job_pods.INDEX_FAILURES: str(failures)}
    return counts | ({job_pods.INDEX_IGNORED_FAILURES: str(ignored)} if ignored else {})


def _indexed_spec(spec: Object, name: str, index: int) -> Object:
    """The spec with the host name of the index, and the index in a variable of each container."""
    indexed: dict[str, Any] = copy.deepcopy(spec)
    indexed["hostname"] = f"{name}-{index}"
    for container in [*(indexed.get("initContainers") or []), *indexed["containers"]]:
        variables = container.get("env") or []
        if all(variable["name"] != _INDEX_VARIABLE for variable in variables):
            field = {"fieldPath": f"metadata.labels['{job_pods.INDEX_KEY}']"}
            container["env"] = [*variables, {"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": field}}]
    return indexed
