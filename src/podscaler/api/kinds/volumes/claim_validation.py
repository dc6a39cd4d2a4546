"""Validates PersistentVolumeClaims, and the claim templates of StatefulSets.

Called by `api.kinds.volumes.persistentvolumeclaim` and, for claim templates, by `api.kinds.apps.statefulset`. A new
field of the spec: a check in `validate_spec`, and `_specs_to_compare` if updates may change it. An `Object` is the part
of an API object that the name of the argument says, as a JSON object; `path` is its path in errors. Quantities were
checked when they were decoded.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, not_supported, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks, go_struct, label_selector, semantics
from podscaler.api.resource.resources import Object

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
"""Access mode -> its short form; tables list the modes of a claim in this order."""
_VOLUME_MODES = ("Block", "Filesystem")
_IMMUTABLE_SPEC_MESSAGE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a PersistentVolumeClaim to be stored."""
    errors = validate_spec(new["spec"], "spec")
    return errors if old is None else errors + _change_errors(new, old)


def validate_spec(spec: Object, path: str) -> list[FieldError]:
    """The field errors of the claim's spec at `path`."""
    errors = _mode_errors(spec, path)
    errors += checks.optional(spec.get("selector"), f"{path}.selector", label_selector.validate)
    errors += _size_errors(((spec.get("resources") or {}).get("requests") or {}), f"{path}.resources")
    for field in ("storageClassName", "volumeAttributesClassName"):
        errors += checks.well_formed_if_set(spec.get(field), f"{path}.{field}", names.dns_subdomain_errors)
    return errors + checks.one_of(spec.get("volumeMode"), f"{path}.volumeMode", _VOLUME_MODES)


def _mode_errors(spec: Object, path: str) -> list[FieldError]:
    """Field errors of the access modes; ReadWriteOncePod excludes the others."""
    modes = spec.get("accessModes") or []
    if not modes:
        return [required(f"{path}.accessModes", "at least 1 access mode is required")]
    errors = [not_supported(f"{path}.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        message = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden(f"{path}.accessModes", message))
    return errors


def _size_errors(requests: Object, path: str) -> list[FieldError]:
    """Field errors of the requested storage, which must be set and above zero."""
    if "storage" not in requests:
        return [required(f"{path}[storage]")]
    size = Quantity.parse(str(requests["storage"]))
    return checks.holds(size.sign() > 0, f"{path}[storage]", str(size), "must be greater than zero")


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    """Field errors of an update that changes immutable fields of the spec, or makes the claim smaller."""
    errors = []
    old_spec, new_spec = _specs_to_compare(new, old)
    if not semantics.same(new_spec, old_spec):
        difference = go_struct.difference(old_spec, new_spec, "core/v1.PersistentVolumeClaimSpec")
        errors.append(forbidden("spec", f"{_IMMUTABLE_SPEC_MESSAGE}\n{difference}"))
    errors += _shrinking_errors(new, old)
    return errors + checks.unchanged(new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")


def _specs_to_compare(new: Object, old: Object) -> tuple[Object, Object]:
    """The old and the new spec, with equal values in the fields that may change.

    Volume and storage class can be set once; size and attributes class can change while the claim is bound.
    """
    old_spec, new_spec = dict(old["spec"]), semantics.copied(new["spec"])
    if not old_spec.get("volumeName") and new_spec.get("volumeName"):
        old_spec["volumeName"] = new_spec["volumeName"]
    if old_spec.get("storageClassName") is None:
        new_spec.pop("storageClassName", None)
    if (new.get("status") or {}).get("phase") != "Bound":
        return old_spec, new_spec
    if (new_spec.get("resources") or {}).get("requests") is not None:
        new_spec["resources"]["requests"]["storage"] = old_spec["resources"]["requests"]["storage"]
    if new_spec.get("volumeAttributesClassName") is not None:
        new_spec["volumeAttributesClassName"] = old_spec.get("volumeAttributesClassName")
    return old_spec, new_spec


def _shrinking_errors(new: Object, old: Object) -> list[FieldError]:
    """The error of a smaller size, which is allowed above status.capacity (after an expansion that failed)."""
    size = _storage_size(new["spec"].get("resources"), "requests")
    old_size = _storage_size(old["spec"].get("resources"), "requests")
    is_smaller = size < old_size
    if not is_smaller or size > _storage_size(old.get("status"), "capacity"):
        return []
    return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _storage_size(parent: Object | None, field: str) -> Quantity:
    """The storage size in a field of `parent`, such as `requests` of spec.resources; 0 if it is not set."""
    return Quantity.parse(str(((parent or {}).get(field) or {}).get("storage", "0")))
