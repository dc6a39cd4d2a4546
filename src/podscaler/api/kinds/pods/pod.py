"""Resource definition of Pod (core/v1): hooks of writes, fields that an update may change, deletion, selectable fields.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A field of the spec that updates may change: an entry of
_MUTABLE_FIELDS (kube-apiserver's message names it as well).

Source: recorded responses (tests/conformance/golden); the API reference of core/v1; kube-apiserver's messages.
Differs: an update may also raise or remove activeDeadlineSeconds.
"""

from podscaler.api.kinds.pods import pod_admission, pod_defaults, pod_table, pod_validation, pod_warnings
from podscaler.api.machinery.field import FieldError, forbidden
from podscaler.api.resource import go_struct, semantics, status_subresource
from podscaler.api.resource.resources import Object, Resource, Strategy, Version

_IMMUTABLE_MESSAGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_TOLERATION_MESSAGE = "existing toleration can not be modified except its tolerationSeconds"
_MUTABLE_FIELDS = ("activeDeadlineSeconds", "tolerations")
"""Besides images. The grace period is not one: `pod_defaults` leaves no negative one, which could be set to 1."""


def _prepare_update(new: Object, old: Object) -> None:
    """Keeps the status and the fields that admission set, in place."""
    status_subresource.keep_status(new, old)
    pod_admission.readmit(new, old)


def _prepare_status_update(new: Object, old: Object) -> None:
    """Keeps the stored spec, and adds the stored QoS class to a status without one, in place."""
    status_subresource.keep_spec(new, old)
    status = new.setdefault("status", {})
    status.setdefault("qosClass", (old.get("status") or {}).get("qosClass", "BestEffort"))


def _prepare_binding(new: Object, old: Object) -> None:
    """Keeps the stored spec except for `spec.nodeName`, in place; status and metadata may change."""
    new["spec"] = {**(old.get("spec") or {}), "nodeName": (new.get("spec") or {}).get("nodeName", "")}


def _grace_period_s(pod: Object, requested_s: int | None) -> int:
    """The grace period of a delete, in seconds; `requested_s` is that of the request, None: the pod's own.

    0 for a pod on no node and for one that has ended; 1 in place of a negative one.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    pod_period_s = int(spec.get("terminationGracePeriodSeconds", pod_defaults.GRACE_PERIOD_S))
    period_s = pod_period_s if requested_s is None else requested_s
    return period_s if period_s >= 0 else 1


def _selectable_fields(pod: Object) -> dict[str, str]:
    """Field selector of pods -> the value in this pod. A new selectable field: an entry here."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return {
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": "",  # selectable, but empty for every pod, as in kube-apiserver
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


def _validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Pod to be stored; a stored one can change in few fields."""
    if old is None:
        return pod_validation.validate_new(new)
    errors = pod_validation.validate_spec(new.get("spec") or {}, "spec", is_template=False, old_spec=old.get("spec"))
    # first, as the images are compared by position
    if len(new["spec"].get("containers") or []) != len(old["spec"].get("containers") or []):
        return [*errors, forbidden("spec.containers", "pod updates may not add or remove containers")]
    if semantics.same(_without_mutable_fields(new["spec"]), _without_mutable_fields(old["spec"])):
        return errors + _toleration_errors(new["spec"], old["spec"])
    difference = go_struct.difference(old["spec"], _with_mutable_fields_of(old["spec"], new["spec"]), "core/v1.PodSpec")
    return [*errors, forbidden("spec", f"{_IMMUTABLE_MESSAGE}\n{difference}")]


def _without_mutable_fields(spec: Object) -> Object:
    """A pod spec without the fields that an update may change; the images of containers are empty."""
    return _with_mutable_fields_of({}, spec)


def _with_mutable_fields_of(old_spec: Object, new_spec: Object) -> Object:
    """`new_spec` with the values of `old_spec` in all fields that an update may change."""
    spec = {name: value for name, value in new_spec.items() if name not in _MUTABLE_FIELDS}
    spec |= {name: old_spec[name] for name in _MUTABLE_FIELDS if name in old_spec}
    for field in ("containers", "initContainers"):
        if new_spec.get(field):
            spec[field] = [
                _with_old_image(old_spec.get(field) or [], index, container)
                for index, container in enumerate(new_spec[field])
            ]
    return spec


def _with_old_image(old_containers: list[Object], index: int, container: Object) -> Object:
    """A container with the image of the one at `index` of `old_containers`; an empty image if there is none."""
    return {**container, "image": old_containers[index].get("image", "") if index < len(old_containers) else ""}


def _toleration_errors(new_spec: Object, old_spec: Object) -> list[FieldError]:
    """The error of a changed pod spec that lacks a toleration of the old one; tolerationSeconds may change."""
    new_tolerations = [_without_seconds(toleration) for toleration in new_spec.get("tolerations") or []]
    for old_toleration in map(_without_seconds, old_spec.get("tolerations") or []):
        if not any(semantics.same(old_toleration, new_toleration) for new_toleration in new_tolerations):
            return [forbidden("spec.tolerations", _TOLERATION_MESSAGE)]
    return []


def _without_seconds(toleration: Object) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


RESOURCE = Resource(
    group="",
    plural="pods",
    kind="Pod",
    returns_deleted_object=True,
    versions=(Version("v1", "core/v1.Pod", default=pod_defaults.set_pod_defaults),),
    short_names=("po",),
    categories=("all",),
    has_status=True,
    fields=_selectable_fields,
    strategy=Strategy(
        prepare_create=pod_admission.admit,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        validate=_validate,
        warnings=pod_warnings.of_pod,
        validate_status=pod_validation.validate_status,
        has_generation=True,
        grace_period_s=_grace_period_s,
        prepare_subresource_update={"binding": _prepare_binding},
    ),
    printer=pod_table.PRINTER,
)
