"""The record of Pod (core/v1).

Source: golden captures; the API reference of core/v1.
"""

from podscaler.api.kinds.pods import pod_admission, pod_defaults, pod_table, pod_update, pod_validation, pod_warnings
from podscaler.api.resource import status_subresource
from podscaler.api.resource.resources import Object, Resource, Strategy, Version


def _prepare_update(new: Object, old: Object) -> None:
    status_subresource.keep_status(new, old)
    pod_admission.admit_again(new, old)


def _prepare_status_update(new: Object, old: Object) -> None:
    status_subresource.keep_spec(new, old)
    status = new.setdefault("status", {})
    status.setdefault("qosClass", (old.get("status") or {}).get("qosClass", "BestEffort"))


def _prepare_binding(new: Object, old: Object) -> None:
    """Through `binding` a pod comes onto its node: spec.nodeName, and the status that says so."""
    new["spec"] = {**(old.get("spec") or {}), "nodeName": (new.get("spec") or {}).get("nodeName", "")}


def _grace_period_s(pod: Object) -> int:
    """Seconds that a pod may take to stop: none before it is on a node or after it has ended."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(spec.get("terminationGracePeriodSeconds", pod_defaults.GRACE_PERIOD_S))


def _fields(pod: Object) -> dict[str, str]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return {
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": "",
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


RESOURCE = Resource(
    group="",
    plural="pods",
    singular="pod",
    kind="Pod",
    versions=(Version("v1", "core/v1.Pod", default=pod_defaults.fill_pod),),
    storage_version="v1",
    short_names=("po",),
    categories=("all",),
    has_status=True,
    fields=_fields,
    strategy=Strategy(
        prepare_create=pod_admission.admit,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        validate=lambda new, old: pod_update.faults(new, old) if old else pod_validation.new_faults(new),
        warnings=pod_warnings.of_pod,
        validate_status=pod_validation.status_faults,
        has_generation=True,
        grace_period_s=_grace_period_s,
        prepare_subresource_update={"binding": _prepare_binding},
    ),
    printer=pod_table.PRINTER,
)
