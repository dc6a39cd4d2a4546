"""Rules for references to a pod's own fields and resources, in variables and in files of the downward API.

Called by `env_validation`, `volume_validation` and `projected_volume_validation`.

Source: upstream's validation of core/v1 ObjectFieldSelector, ResourceFieldSelector and DownwardAPIVolumeFile.
"""

import re

from podscaler.api.kinds.volumes import volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

VARIABLE_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_CONVERTIBLE = {
    name: name
    for name in (
        *VARIABLE_FIELDS,
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
    )
} | {"status.phase": "status.phase", "spec.host": "spec.nodeName"}
"""The labels of fields that upstream's converter knows -> the field that each means."""
_SUBSCRIPT = re.compile(r"(?P<name>.+?)\['(?P<key>.*)'\]", re.DOTALL)
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_FILE_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)


def field_errors(source: Object, path: str, fields: tuple[str, ...]) -> list[FieldError]:
    """What is wrong with an ObjectFieldSelector.

    Args:
        source: the selector.
        path: its place.
        fields: the fields of a pod that may be referred to, sorted.
    """
    field = source.get("fieldPath", "")
    if not source.get("apiVersion"):
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if source["apiVersion"] != "v1":
        text = f"error converting fieldPath: unsupported pod version: {source['apiVersion']}"
        return [invalid(f"{path}.fieldPath", field, text)]
    if match := _SUBSCRIPT.fullmatch(field):
        return _subscript_errors(match, path)
    if field in _CONVERTIBLE:
        found = _CONVERTIBLE[field]
        return checks.one_of(found, f"{path}.fieldPath", fields)
    text = f"error converting fieldPath: field label not supported: {field}"
    return [invalid(f"{path}.fieldPath", field, text)]


def _subscript_errors(match: re.Match[str], path: str) -> list[FieldError]:
    name, key = match["name"], match["key"]
    if name not in ("metadata.labels", "metadata.annotations"):
        text = f"error converting fieldPath: field label does not support subscript: {match[0]}"
        return [invalid(f"{path}.fieldPath", match[0], text)]
    key = key.lower() if name == "metadata.annotations" else key
    return checks.well_formed(key, path, names.label_key_faults)


def resource_errors(source: Object, path: str) -> list[FieldError]:
    """What is wrong with a ResourceFieldSelector, its container's name aside."""
    resource = source.get("resource", "")
    if not resource:
        return [required(f"{path}.resource")]
    known = resource in _RESOURCES or resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    return [] if known else [not_supported(f"{path}.resource", resource, _RESOURCES)]


def file_errors(item: Object, path: str) -> list[FieldError]:
    """What is wrong with a file of the downward API; `path` is that of the volume's source, as upstream has it."""
    where, field, resource = item.get("path", ""), item.get("fieldRef"), item.get("resourceFieldRef")
    found = checks.present(where, f"{path}.path")
    found += volume_paths.file_errors(where, f"{path}.path")
    if field is not None:
        found += field_errors(field, f"{path}.fieldRef", _FILE_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(invalid(path, "resource", text))
    elif resource is None:
        found.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    elif resource.get("containerName"):
        found += resource_errors(resource, f"{path}.resourceFieldRef")
    else:
        found.append(required(f"{path}.resourceFieldRef.containerName"))
    return found + volume_paths.mode_errors(item.get("mode"), f"{path}.mode")
