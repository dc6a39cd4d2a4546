"""The record of PersistentVolumeClaim (core/v1): kept for clients and other controllers; there is no storage to bind.

Source: the API reference of core/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api import printing
from podscaler.api.field import FieldError, forbidden, not_supported, required
from podscaler.api.kinds import semantics, status_subresource
from podscaler.api.resources import Column, Object, Printer, Resource, Strategy, Version

_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_VOLUME_MODES = ("Block", "Filesystem")
_CHANGEABLE = ("resources", "volumeName", "volumeAttributesClassName")
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def fill(claim: Object) -> None:
    """API defaults, in place."""
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a PersistentVolumeClaim to be stored."""
    spec = new["spec"]
    modes = spec.get("accessModes") or []
    found = [] if modes else [required("spec.accessModes", "at least 1 access mode is required")]
    found += [
        not_supported("spec.accessModes", mode, sorted(_SHORT_MODES)) for mode in modes if mode not in _SHORT_MODES
    ]
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        found.append(required("spec.resources[storage]"))
    if spec.get("volumeMode") not in _VOLUME_MODES:
        found.append(not_supported("spec.volumeMode", spec.get("volumeMode"), _VOLUME_MODES))
    if old is not None and not semantics.same(_fixed_part(new), _fixed_part(old)):
        found.append(forbidden("spec", _FIXED))
    return found


def _fixed_part(claim: Object) -> Object:
    return {name: value for name, value in claim["spec"].items() if name not in _CHANGEABLE}


def _row(claim: Object, now_ns: int) -> list[Any]:
    spec, status = claim["spec"], claim.get("status") or {}
    is_bound = bool(spec.get("volumeName"))
    modes = [_SHORT_MODES.get(mode, mode) for mode in status.get("accessModes") or []]
    phase = "Terminating" if claim["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        claim["metadata"].get("name", ""),
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if is_bound else "",
        ",".join(modes) if is_bound else "",
        spec.get("storageClassName", ""),
        "<unset>" if spec.get("volumeAttributesClassName") is None else spec["volumeAttributesClassName"],
        printing.created_age(claim, now_ns),
        spec.get("volumeMode", printing.UNKNOWN),
    ]


RESOURCE = Resource(
    group="",
    plural="persistentvolumeclaims",
    singular="persistentvolumeclaim",
    kind="PersistentVolumeClaim",
    versions=(Version("v1", "core/v1.PersistentVolumeClaim", default=fill),),
    storage_version="v1",
    short_names=("pvc",),
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"phase": "Pending"}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=faults,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the claim, unique within its namespace."),
            Column("Status", description="Whether storage was found for it."),
            Column("Volume", description="The volume that it is bound to."),
            Column("Capacity", description="How much that holds."),
            Column("Access Modes", description="Who may use that at once."),
            Column("StorageClass", description="The kind of storage asked for."),
            Column("VolumeAttributesClass", description="The attributes asked for."),
            Column("Age", description="Time since the claim was created."),
            Column("VolumeMode", description="Whether it is a file system or a device.", priority=1),
        ),
        row=_row,
    ),
)
