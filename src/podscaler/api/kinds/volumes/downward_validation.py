"""Validates references to a pod's own fields and resources (the downward API), in variables and in volume files.

Called by the validation of environment variables, and of downwardAPI and projected volumes.

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
"""Labels that kube-apiserver converts, but neither variables nor files may use: their error has another text."""
_FIELD_LABELS = {name: name for name in (*VARIABLE_FIELDS, *_FILE_FIELDS, *_CONVERTIBLE_ONLY)} | {
    "spec.host": "spec.nodeName"
}
"""Field label that `fieldPath` may have -> the field to which kube-apiserver converts it."""
_SUBSCRIPT = re.compile(r"(?P<name>.+?)\['(?P<key>.*)'\]", re.DOTALL)
_RESOURCE_NAMES = ("cpu", "ephemeral-storage", "memory")
_RESOURCES = tuple(f"{side}.{name}" for side in ("limits", "requests") for name in _RESOURCE_NAMES)


def field_errors(source: Object, path: str, fields: tuple[str, ...]) -> list[FieldError]:
    """The field errors of an ObjectFieldSelector.

    Args:
        source: the selector.
        path: the path of the selector.
        fields: the fields of a pod that it may refer to, sorted.
    """
    field = source.get("fieldPath", "")
    if not source.get("apiVersion"):
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if source["apiVersion"] != "v1":
        message = f"error converting fieldPath: unsupported pod version: {source['apiVersion']}"
        return [invalid(f"{path}.fieldPath", field, message)]
    if match := _SUBSCRIPT.fullmatch(field):
        return _subscript_errors(match, path)
    if field in _FIELD_LABELS:
        converted_field = _FIELD_LABELS[field]
        return checks.one_of(converted_field, f"{path}.fieldPath", fields)
    message = f"error converting fieldPath: field label not supported: {field}"
    return [invalid(f"{path}.fieldPath", field, message)]


def _subscript_errors(match: re.Match[str], path: str) -> list[FieldError]:
    """The errors of a reference to one label or annotation, such as `metadata.labels['app']`."""
    name, key = match["name"], match["key"]
    if name not in ("metadata.labels", "metadata.annotations"):
        message = f"error converting fieldPath: field label does not support subscript: {match[0]}"
        return [invalid(f"{path}.fieldPath", match[0], message)]
    key = key.lower() if name == "metadata.annotations" else key
    return checks.well_formed(key, path, names.label_key_errors)


def resource_errors(source: Object, path: str) -> list[FieldError]:
    """The field errors of a ResourceFieldSelector, except for those of its containerName."""
    resource = source.get("resource", "")
    is_known = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    return [] if is_known else checks.required_one_of(resource, f"{path}.resource", _RESOURCES)


def file_errors(item: Object, path: str) -> list[FieldError]:
    """The field errors of a file of the downward API; `path` is that of the volume's source, without an index."""
    file_path, field, resource = item.get("path", ""), item.get("fieldRef"), item.get("resourceFieldRef")
    errors = checks.present(file_path, f"{path}.path")
    errors += volume_paths.file_errors(file_path, f"{path}.path")
    if field is not None:
        errors += field_errors(field, f"{path}.fieldRef", _FILE_FIELDS)
        if resource is not None:
            message = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", message))
    elif resource is None:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    elif resource.get("containerName"):
        errors += resource_errors(resource, f"{path}.resourceFieldRef")
    else:
        errors.append(required(f"{path}.resourceFieldRef.containerName"))
    return errors + volume_paths.mode_errors(item.get("mode"), f"{path}.mode")
