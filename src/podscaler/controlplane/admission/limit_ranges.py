"""Applies LimitRanges: sets default requests and limits of new pods, and refuses pods and claims beyond the limits.

`podscaler up` calls `register`; from then on `Objects` calls the admission functions before it stores a
pod or a PersistentVolumeClaim. The rules are in `api.kinds.pods.pod_limits`.

Source: kube-apiserver's admission plugin LimitRanger.
"""

from functools import partial

from podscaler.api.kinds.pods import pod_limits
from podscaler.api.kinds.policy import limitrange
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.objects import Objects

_PODS = "pods"
_CLAIMS = "persistentvolumeclaims"


def register(objects: Objects) -> None:
    """Register the admission of new pods, and of claims and their updates, with `objects`."""
    objects.add_admission(_PODS, partial(_admit_pod, objects))
    objects.add_admission(_CLAIMS, partial(_admit_claim, objects))


def _admit_pod(objects: Objects, pod: Object, stored: Object | None) -> None:
    """The admission function of pods. Raises StatusError 403 for a pod that violates a limit."""
    if stored is not None:
        return
    pod.setdefault("spec", {})
    limit_ranges = _limit_ranges_for(objects, pod)
    for limit_range in limit_ranges:
        pod_limits.complete(pod, limit_range)
    # after all defaults are set: a default of one LimitRange must be within the limits of the others
    messages = [message for limit_range in limit_ranges for message in pod_limits.violations(pod, limit_range)]
    _check_no_violations(objects, _PODS, pod, messages)


def _admit_claim(objects: Objects, claim: Object, stored: Object | None) -> None:
    """The admission function of claims. Raises StatusError 403 for one with a request beyond the limits.

    A claim that is being deleted is admitted; one without a positive request is left to its validation.
    """
    is_deleted = stored is not None and bool(stored["metadata"].get("deletionTimestamp"))
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    if is_deleted or Quantity.parse(str(requests.get("storage", "0"))).sign() <= 0:
        return
    limit_ranges = _limit_ranges_for(objects, claim)
    messages = [message for limit_range in limit_ranges for message in pod_limits.claim_violations(claim, limit_range)]
    _check_no_violations(objects, _CLAIMS, claim, messages)


def _limit_ranges_for(objects: Objects, obj: Object) -> list[Object]:
    """The LimitRanges of the object's namespace."""
    page = objects.list(limitrange.RESOURCE.key, obj["metadata"].get("namespace", ""))
    return [entry.decode() for entry in page.entries]


def _check_no_violations(objects: Objects, resource: str, obj: Object, messages: list[str]) -> None:
    """Raise StatusError 403 with all messages, each once, if there are any."""
    distinct = list(dict.fromkeys(messages))
    if distinct:
        reason = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
        raise api_errors.forbidden(objects.resource(resource), api_errors.name_at_admission(obj), reason)
