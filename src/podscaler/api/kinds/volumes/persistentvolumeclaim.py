"""Resource definition of PersistentVolumeClaim (core/v1): defaults, hooks of writes, table; none is bound here.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. `claim_validation` validates claims. A new column needs a cell in
`_cells` at the same position.

Source: the API reference of core/v1; kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.kinds.volumes import claim_validation
from podscaler.api.machinery import printing
from podscaler.api.resource import checks, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

PROTECTION_FINALIZER = "kubernetes.io/pvc-protection"
"""The finalizer that keeps a used claim; `podscaler.controlplane.controllers.gc.claim_protection` removes it."""
_DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
"""(API group, kind) of the objects that `dataSource` may name."""


def set_defaults(claim: Object) -> None:
    """API defaults, in place: a file system, and pending."""
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def _prepare_create(new: Object) -> None:
    """Sets the first status, adds PROTECTION_FINALIZER and normalizes the data source, in place."""
    new["status"] = {"phase": "Pending"}
    finalizers = new["metadata"].get("finalizers") or []
    if PROTECTION_FINALIZER not in finalizers:
        new["metadata"]["finalizers"] = [*finalizers, PROTECTION_FINALIZER]
    _normalize_data_source(new["spec"])


def _normalize_data_source(spec: Object) -> None:
    """Removes a `dataSource` that is no claim or snapshot; then copies it to a missing `dataSourceRef`, or the reverse.

    Changes the spec in place. A `dataSourceRef` with a namespace is not copied.
    """
    if (sent_source := spec.get("dataSource")) is not None:
        group_and_kind = (sent_source.get("apiGroup") or "", sent_source.get("kind", ""))
        if group_and_kind not in _DATA_SOURCES:
            del spec["dataSource"]
    data_source, data_source_ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if data_source is not None and data_source_ref is None:
        spec["dataSourceRef"] = dict(data_source)
    elif data_source is None and data_source_ref is not None and not data_source_ref.get("namespace"):
        spec["dataSource"] = dict(data_source_ref)


def warnings(new: Object, _old: Object | None) -> list[str]:
    """The warnings about amounts that are fractions of bytes."""
    return checks.fraction_warnings(new["spec"].get("resources") or {}, "spec.resources")


def _cells(claim: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row; capacity and access modes are those of the bound volume."""
    spec, status = claim["spec"], claim.get("status") or {}
    is_bound = bool(spec.get("volumeName"))
    modes = [claim_validation.SHORT_MODES.get(mode, mode) for mode in status.get("accessModes") or []]
    phase = "Terminating" if claim["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if is_bound else "",
        ",".join(modes) if is_bound else "",
        spec.get("storageClassName", ""),
        "<unset>" if spec.get("volumeAttributesClassName") is None else spec["volumeAttributesClassName"],
        spec.get("volumeMode", printing.UNKNOWN),
    ]


RESOURCE = Resource(
    group="",
    plural="persistentvolumeclaims",
    kind="PersistentVolumeClaim",
    returns_deleted_object=True,
    versions=(Version("v1", "core/v1.PersistentVolumeClaim", default=set_defaults),),
    short_names=("pvc",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=claim_validation.validate,
        warnings=warnings,
    ),
    printer=tables.named(
        "claim",
        Column("Status", description="Whether storage was found for it."),
        Column("Volume", description="The volume that it is bound to."),
        Column("Capacity", description="How much that holds."),
        Column("Access Modes", description="Who may use that at once."),
        Column("StorageClass", description="The kind of storage asked for."),
        Column("VolumeAttributesClass", description="The attributes asked for."),
        tables.AGE,
        Column("VolumeMode", description="Whether it is a file system or a device.", priority=1),
        cells=_cells,
    ),
)
