"""Resource definition of PersistentVolume (core/v1): defaults, validation, table; nothing here binds one.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new type of volume is a case of `_known_source_errors`; a new column,
a cell in `_cells`. Quantities were checked when they were decoded.

Source: the API reference of core/v1; kube-apiserver's validation messages. Differs: of the sources of a volume,
hostPath, local, nfs and csi are validated; the terms of a node affinity are not.
"""

import posixpath
from typing import Any, Final

from podscaler.api.kinds.volumes import claim_validation, volume_paths, volume_validation
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, not_supported, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks, go_struct, semantics, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version
from podscaler.api.schema import schema

PROTECTION_FINALIZER: Final = "kubernetes.io/pv-protection"
"""The finalizer that keeps a bound volume; `podscaler.controlplane.controllers.gc.claim_protection` removes it."""
_SOURCE_GO_TYPE: Final = "core/v1.PersistentVolumeSource"
"""Its fields are the types of volumes; a PersistentVolumeSpec has them beside its own."""
_VALIDATED_SECRET_REFS: Final = (
    "controllerPublishSecretRef",
    "nodePublishSecretRef",
    "controllerExpandSecretRef",
    "nodeExpandSecretRef",
)
_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_UNSET: Final = "<unset>"
_STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_RECYCLE_WARNING: Final = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
    "Instead, the recommended approach is to use dynamic provisioning."
)


def set_defaults(volume: Object) -> None:
    """API defaults, in place: the volume is retained, a file system, and pending."""
    spec = volume.setdefault("spec", {})
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    host_path = spec.get("hostPath")
    if host_path is not None:
        host_path.setdefault("type", "")
    volume.setdefault("status", {}).setdefault("phase", "Pending")


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a PersistentVolume to be stored; its source and mode never change."""
    spec = new["spec"]
    errors = _mode_errors(spec) + _capacity_errors(spec.get("capacity") or {})
    errors += checks.one_of(
        spec["persistentVolumeReclaimPolicy"], "spec.persistentVolumeReclaimPolicy", _RECLAIM_POLICIES
    )
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        message = "must specify required node constraints"
        errors += checks.present(affinity.get("required") is not None, "spec.nodeAffinity.required", message)
    errors += _source_errors(spec) + _recycle_errors(spec)
    errors += checks.well_formed_if_set(
        spec.get("storageClassName"), "spec.storageClassName", names.dns_subdomain_errors
    )
    errors += checks.one_of(spec["volumeMode"], "spec.volumeMode", ("Block", "Filesystem"))
    errors += _attributes_class_errors(spec)
    return errors if old is None else errors + _change_errors(spec, old["spec"])


def _mode_errors(spec: Object) -> list[FieldError]:
    """Field errors of the access modes; ReadWriteOncePod excludes the other supported ones."""
    path, modes = "spec.accessModes", spec.get("accessModes") or []
    errors = [] if modes else [required(path)]
    supported_modes = claim_validation.ACCESS_MODES
    errors += [not_supported(path, mode, supported_modes) for mode in modes if mode not in supported_modes]
    if "ReadWriteOncePod" in modes and any(mode in supported_modes and mode != "ReadWriteOncePod" for mode in modes):
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _capacity_errors(capacity: Object) -> list[FieldError]:
    """Errors of the capacity, which is the storage alone and more than zero."""
    errors = [] if capacity else [required("spec.capacity")]
    if set(capacity) != {"storage"}:
        errors.append(not_supported("spec.capacity", capacity or None, ("storage",)))
    for name in sorted(capacity):
        size = Quantity.parse(str(capacity[name]))
        errors += checks.holds(size.sign() > 0, f"spec.capacity[{name}]", str(size), "must be greater than zero")
    return errors


def _volume_sources(spec: Object) -> Object:
    """The sources of a volume (type, such as `hostPath`, -> source); a valid volume has exactly one."""
    source_types = [field.name for field in schema.get_message(_SOURCE_GO_TYPE).json_fields()]
    return {source_type: spec[source_type] for source_type in source_types if spec.get(source_type) is not None}


def _source_errors(spec: Object) -> list[FieldError]:
    """Errors of the volume source, of which there is exactly one; of several, only the first is checked."""
    sources = _volume_sources(spec)
    # kube-apiserver validates the first source in this order: hostPath first, csi last.
    source_types = sorted(sources, key=lambda source_type: (source_type != "hostPath", source_type == "csi"))
    if not source_types:
        return [required("spec", "must specify a volume type")]
    source_type = source_types[0]
    errors = _known_source_errors(source_type, sources[source_type], f"spec.{source_type}")
    if source_type == "local" and spec.get("nodeAffinity") is None:
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    message = "may not specify more than 1 volume type"
    return errors + [forbidden(f"spec.{other_type}", message) for other_type in source_types[1:]]


def _known_source_errors(source_type: str, source: Object, path: str) -> list[FieldError]:
    """Field errors of a source by its type. Sources of other types are not validated."""
    file_path = source.get("path") or ""
    match source_type:
        case "hostPath":
            return volume_validation.host_path_errors(source, path)
        case "local":
            return volume_paths.backstep_errors(file_path, f"{path}.path") if file_path else [required(f"{path}.path")]
        case "nfs":
            errors = checks.present(source.get("server"), f"{path}.server") + checks.present(file_path, f"{path}.path")
            is_absolute = file_path.startswith("/")
            return errors + checks.holds(is_absolute, f"{path}.path", file_path, "must be an absolute path")
        case "csi":
            errors = checks.required_form(source.get("driver") or "", f"{path}.driver", names.dns_subdomain_errors)
            return errors + checks.present(source.get("volumeHandle"), f"{path}.volumeHandle") + _secret_errors(source)
        case _:
            return []


def _secret_errors(csi_source: Object) -> list[FieldError]:
    """Errors of the references to Secrets of a CSI source; upstream does not validate `nodeStageSecretRef`."""
    errors: list[FieldError] = []
    for name in _VALIDATED_SECRET_REFS:
        reference = csi_source.get(name)
        if reference is not None:
            errors += checks.present(reference.get("name"), f"spec.csi.{name}.name")
            errors += checks.present(reference.get("namespace"), f"spec.csi.{name}.namespace")
    return errors


def _recycle_errors(spec: Object) -> list[FieldError]:
    """The error of the reclaim policy Recycle for a hostPath that is the root of the file system."""
    host_path = spec.get("hostPath")
    if not host_path or spec.get("persistentVolumeReclaimPolicy") != "Recycle":
        return []
    is_root = posixpath.normpath(host_path.get("path") or ".").lstrip("/") == ""  # `normpath` keeps `//`
    message = "may not be 'recycle' for a hostPath mount of '/'"
    return [forbidden("spec.persistentVolumeReclaimPolicy", message)] if is_root else []


def _attributes_class_errors(spec: Object) -> list[FieldError]:
    """Errors of the attributes class, which only CSI volumes have."""
    class_name, path = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if class_name is None:
        return []
    errors = checks.required_form(class_name, path, names.dns_subdomain_errors, "an empty string is disallowed")
    message = "has to be specified when using volumeAttributesClassName"
    return errors + checks.present(spec.get("csi") is not None, "spec.csi", message)


def _change_errors(spec: Object, old_spec: Object) -> list[FieldError]:
    """Errors of an update: the source and the mode never change."""
    errors, old_sources, new_sources = [], _volume_sources(old_spec), _volume_sources(spec)
    if not semantics.same(old_sources, new_sources):
        difference = go_struct.difference(old_sources, new_sources, _SOURCE_GO_TYPE)
        message = f"spec.persistentvolumesource is immutable after creation\n{difference}"
        errors.append(forbidden("spec.persistentvolumesource", message))
    return errors + checks.unchanged(spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode")


def _prepare_create(new: Object) -> None:
    """Sets the first status, and adds PROTECTION_FINALIZER, in place."""
    new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": new["metadata"]["creationTimestamp"]}
    finalizers = new["metadata"].get("finalizers") or []
    if PROTECTION_FINALIZER not in finalizers:
        new["metadata"]["finalizers"] = [*finalizers, PROTECTION_FINALIZER]


def _warnings(new: Object, _old: Object | None) -> list[str]:
    return [_RECYCLE_WARNING] if new["spec"].get("persistentVolumeReclaimPolicy") == "Recycle" else []


def _cells(volume: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: capacity, short access modes, reclaim policy, phase, claim, classes, reason."""
    metadata, spec, status = volume["metadata"], volume["spec"], volume.get("status") or {}
    claim, modes = spec.get("claimRef"), spec.get("accessModes") or []
    annotations = metadata.get("annotations") or {}
    return [
        str((spec.get("capacity") or {}).get("storage", "0")),
        ",".join(short_mode for mode, short_mode in claim_validation.SHORT_MODES.items() if mode in modes),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if metadata.get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        annotations.get(_STORAGE_CLASS_ANNOTATION, spec.get("storageClassName", "")),
        spec.get("volumeAttributesClassName", _UNSET),
        status.get("reason", ""),
        spec.get("volumeMode", _UNSET),
    ]


RESOURCE = Resource(
    group="",
    plural="persistentvolumes",
    kind="PersistentVolume",
    returns_deleted_object=True,
    versions=(Version("v1", "core/v1.PersistentVolume", default=set_defaults),),
    namespaced=False,
    short_names=("pv",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        warnings=_warnings,
    ),
    printer=tables.named(
        "volume",
        Column("Capacity", description="How much it holds."),
        Column("Access Modes", description="Who may use it at once."),
        Column("Reclaim Policy", description="What happens to it after its claim."),
        Column("Status", description="Whether it is bound to a claim."),
        Column("Claim", description="The claim that it is bound to."),
        Column("StorageClass", description="The kind of storage."),
        Column("VolumeAttributesClass", description="The attributes of the storage."),
        Column("Reason", description="Why it is in this state."),
        tables.AGE,
        Column("VolumeMode", description="Whether it is a file system or a device.", priority=1),
        cells=_cells,
        note="",
    ),
)
