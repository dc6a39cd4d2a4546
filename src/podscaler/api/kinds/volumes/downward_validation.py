"""Validates references to a pod's own fields and resources (the downward API), in variables and in volume files.

Called by `api.kinds.pods.env_validation` (variables), `volume_validation` and `projected_volume_validation`. A field
that becomes available to variables: add it to VARIABLE_FIELDS; to files: to _FILE_FIELDS. An `Object` is the part of an
API object that the name of the argument says, as a JSON object; `path` is its path in errors.

Source: kube-apiserver's validation of core/v1 ObjectFieldSelector, ResourceFieldSelector and DownwardAPIVolumeFile.
"""

import re

from podscaler.api.kinds.volumes import volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_IDENTITY_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid")
_FILE_FIELDS = ("metadata.annotations", "metadata.labels", *_IDENTITY_FIELDS)
_ADDRESS_FIELDS = ("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
VARIABLE_FIELDS = (*_IDENTITY_FIELDS, "spec.nodeName", "spec.serviceAccountName", *_ADDRESS_FIELDS)
_CONVERTIBLE_ONLY = ("spec.restartPolicy", "spec.schedulerName", "status.phase")
"""Field labels that kube-apiserver converts, but neither variables nor files may use; others have another error."""
_FIELD_LABELS = {name: name for name in (*VARIABLE_FIELDS, *_FILE_FIELDS, *_CONVERTIBLE_ONLY)} | {
    "spec.host": "spec.nodeName"
}
"""Field label that `fieldPath` may have -> the field to which kube-apiserver converts it."""
_SUBSCRIPT = re.compile(r"(?P<name>.+?)\['(?P<key>.*)'\]", re.DOTALL)
_RESOURCE_NAMES = ("cpu", "ephemeral-storage", "memory")
_RESOURCES = tuple(f"{amount}.{name}" for amount in ("limits", "requests") for name in _RESOURCE_NAMES)


def field_errors(source: Object, path: str, supported_fields: tuple[str, ...]) -> list[FieldError]:
    """The field errors of `source`, an ObjectFieldSelector; `supported_fields`: those that it may name, sorted."""
    field_label = source.get("fieldPath", "")
    if not source.get("apiVersion"):
        return [required(f"{path}.apiVersion")]
    if not field_label:
        return [required(f"{path}.fieldPath")]
    if source["apiVersion"] != "v1":
        message = f"error converting fieldPath: unsupported pod version: {source['apiVersion']}"
        return [invalid(f"{path}.fieldPath", field_label, message)]
    if match := _SUBSCRIPT.fullmatch(field_label):
        return _subscript_errors(match, path)
    if field_label in _FIELD_LABELS:
        converted_field = _FIELD_LABELS[field_label]
        return checks.one_of(converted_field, f"{path}.fieldPath", supported_fields)
    message = f"error converting fieldPath: field label not supported: {field_label}"
    return [invalid(f"{path}.fieldPath", field_label, message)]


def _subscript_errors(match: re.Match[str], path: str) -> list[FieldError]:
    """The errors of a reference to one label or annotation, such as `metadata.labels['app']`."""
    map_field, key = match["name"], match["key"]
    if map_field not in ("metadata.labels", "metadata.annotations"):
        message = f"error converting fieldPath: field label does not support subscript: {match[0]}"
        return [invalid(f"{path}.fieldPath", match[0], message)]
    # upstream lets keys of annotations have capitals
    checked_key = key.lower() if map_field == "metadata.annotations" else key
    return checks.well_formed(checked_key, path, names.label_key_errors)


def resource_errors(source: Object, path: str) -> list[FieldError]:
    """The field errors of the resource in a ResourceFieldSelector; the containerName is not checked."""
    resource = source.get("resource", "")
    is_huge_pages = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    return [] if is_huge_pages else checks.required_one_of(resource, f"{path}.resource", _RESOURCES)


def file_errors(file: Object, path: str) -> list[FieldError]:
    """The field errors of a file of the downward API; `path` is that of the volume's source, without an index."""
    file_path, field_ref, resource_ref = file.get("path", ""), file.get("fieldRef"), file.get("resourceFieldRef")
    errors = checks.present(file_path, f"{path}.path")
    errors += volume_paths.file_errors(file_path, f"{path}.path")
    if field_ref is not None:
        errors += field_errors(field_ref, f"{path}.fieldRef", _FILE_FIELDS)
        if resource_ref is not None:
            message = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", message))
    elif resource_ref is None:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    elif resource_ref.get("containerName"):
        errors += resource_errors(resource_ref, f"{path}.resourceFieldRef")
    else:
        errors.append(required(f"{path}.resourceFieldRef.containerName"))
    return errors + volume_paths.mode_errors(file.get("mode"), f"{path}.mode")
