"""Limits of pods: every new pod gets the amounts of its namespace's LimitRanges, and must keep to them.

The wiring of `up` calls `admit_pods`; from then on `Objects` asks before it stores a pod, whoever creates it.

Source: upstream's admission plugin LimitRanger. Differs: claims of volumes are not judged.
"""

from functools import partial

from podscaler.api.kinds.pods import pod_limits
from podscaler.api.kinds.policy import limitrange
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.objects import Objects

_PODS = "pods"


def admit_pods(objects: Objects) -> None:
    """Complete and judge every pod that is created from now on."""
    objects.admit(_PODS, partial(_admit, objects))


def _admit(objects: Objects, pod: Object, stored: Object | None) -> None:
    """Raises StatusError 403 for a pod that the ranges do not allow."""
    if stored is not None:
        return
    pod.setdefault("spec", {})
    page = objects.list(limitrange.RESOURCE.key, pod["metadata"].get("namespace", ""))
    ranges = [entry.decode() for entry in page.entries]
    for each in ranges:
        pod_limits.complete(pod, each)
    faults = list(dict.fromkeys(text for each in ranges for text in pod_limits.violations(pod, each)))
    if faults:
        why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        raise api_errors.forbidden(objects.resource(_PODS), api_errors.name_at_admission(pod), why)
