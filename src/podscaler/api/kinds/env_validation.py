"""What is wrong with the environment variables of a container.

Called by `container_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

import re

from podscaler.api import names
from podscaler.api.field import FieldError, invalid, not_supported, required
from podscaler.api.kinds import config_key
from podscaler.api.resources import Object

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_OF = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_NAME = re.compile(r"[ -<>-~]+")
_NAME_FAULT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_FIELDS = (
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
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)


def faults(variables: list[Object], path: str) -> list[FieldError]:
    """What is wrong with the variables at `path`."""
    found = []
    for index, variable in enumerate(variables):
        place, name = f"{path}[{index}]", variable.get("name", "")
        if not name:
            found.append(required(f"{place}.name"))
        elif not _NAME.fullmatch(name):
            found.append(invalid(f"{place}.name", name, _NAME_FAULT))
        if (source := variable.get("valueFrom")) is not None:
            found += _source_faults(source, variable.get("value", ""), f"{place}.valueFrom")
    return found


def from_faults(sources: list[Object], path: str) -> list[FieldError]:
    """What is wrong with the `envFrom` entries at `path`."""
    found = []
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        prefix = source.get("prefix", "")
        if prefix and not _NAME.fullmatch(prefix):
            found.append(invalid(f"{place}.prefix", prefix, _NAME_FAULT))
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        if not given:
            found.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            found.append(invalid(path, "", "may not have more than one field specified at a time"))
        for name in given:
            if not source[name].get("name"):
                found.append(required(f"{place}.{name}.name"))
    return found


def _source_faults(source: Object, value: str, path: str) -> list[FieldError]:
    given = [name for name in _SOURCES if source.get(name) is not None]
    found = []
    for name in given:
        found += _detail(name, source[name], f"{path}.{name}")
    if not given:
        found.append(invalid(path, "", _ONE_OF))
    elif value:
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(invalid(path, "", "may not have more than one field specified at a time"))
    return found


def _detail(kind: str, source: Object, path: str) -> list[FieldError]:
    if kind == "fieldRef":
        return _field_faults(source, path)
    if kind == "resourceFieldRef":
        return _resource_faults(source, path)
    if kind == "fileKeyRef":
        return [required(f"{path}.{name}") for name in ("key", "volumeName", "path") if not source.get(name)]
    found = [] if source.get("name") else [required(f"{path}.name")]
    key = source.get("key", "")
    return found + (
        [invalid(f"{path}.key", key, text) for text in config_key.faults(key)] if key else [required(f"{path}.key")]
    )


def _field_faults(source: Object, path: str) -> list[FieldError]:
    field = source.get("fieldPath", "")
    if not source.get("apiVersion"):
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if field in _FIELDS:
        return []
    if match := _SUBSCRIPT.fullmatch(field):
        return [invalid(path, match[2], text) for text in names.label_key_faults(match[2].lower())]
    if field.startswith("status."):
        return [not_supported(f"{path}.fieldPath", field, _FIELDS)]
    text = f"error converting fieldPath: field label not supported: {field}"
    return [invalid(f"{path}.fieldPath", field, text)]


def _resource_faults(source: Object, path: str) -> list[FieldError]:
    resource = source.get("resource", "")
    if not resource:
        return [required(f"{path}.resource")]
    known = resource in _RESOURCES or resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    return [] if known else [not_supported(f"{path}.resource", resource, _RESOURCES)]
