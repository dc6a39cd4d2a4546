"""Applies LimitRanges to new pods: sets default requests and limits, and enforces the limits of the namespace.

`podscaler up` calls `admit_pods`; from then on `Objects` calls the admission function before it stores a pod. The rules
are in `api.kinds.pods.pod_limits`.

Source: kube-apiserver's admission plugin LimitRanger. Differs: PersistentVolumeClaims are not limited.
"""

from functools import partial

from podscaler.api.kinds.pods import pod_limits
from podscaler.api.kinds.policy import limitrange
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.objects import Objects

_PODS = "pods"


def admit_pods(objects: Objects) -> None:
    """Register the admission of new pods with `objects`."""
    objects.admit(_PODS, partial(_admit, objects))


def _admit(objects: Objects, pod: Object, stored: Object | None) -> None:
    """The admission function. Raises StatusError 403 for a pod that violates a limit."""
    if stored is not None:
        return
    pod.setdefault("spec", {})
    page = objects.list(limitrange.RESOURCE.key, pod["metadata"].get("namespace", ""))
    ranges = [entry.decode() for entry in page.entries]
    for each in ranges:
        pod_limits.complete(pod, each)
    errors = list(dict.fromkeys(text for each in ranges for text in pod_limits.violations(pod, each)))
    if errors:
        why = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise api_errors.forbidden(objects.resource(_PODS), api_errors.name_at_admission(pod), why)
