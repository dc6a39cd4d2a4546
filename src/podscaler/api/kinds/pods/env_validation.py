"""What is wrong with the environment variables of a container.

Called by `container_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

import re

from podscaler.api.kinds.volumes import downward_validation, volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import config_key
from podscaler.api.resource.resources import Object

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_OF = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_NAME = re.compile(r"[ -<>-~]+")
_NAME_FAULT = "a valid environment variable name must consist only of printable ASCII characters other than '='"


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
        return downward_validation.field_faults(source, path, downward_validation.VARIABLE_FIELDS)
    if kind == "resourceFieldRef":
        return downward_validation.resource_faults(source, path)
    if kind == "fileKeyRef":
        return _file_key_faults(source, path)
    found = [] if source.get("name") else [required(f"{path}.name")]
    key = source.get("key", "")
    return found + (
        [invalid(f"{path}.key", key, text) for text in config_key.faults(key)] if key else [required(f"{path}.key")]
    )


def _file_key_faults(source: Object, path: str) -> list[FieldError]:
    key, volume, where = (source.get(name, "") for name in ("key", "volumeName", "path"))
    found = [] if key else [required(f"{path}.key")]
    if key and not _NAME.fullmatch(key):
        found.append(invalid(f"{path}.key", key, _NAME_FAULT))
    found += [] if volume else [required(f"{path}.volumeName")]
    if volume:
        found += [invalid(f"{path}.volumeName", volume, text) for text in names.dns_label_faults(volume)]
    return found + (volume_paths.backstep_faults(where, f"{path}.path") if where else [required(f"{path}.path")])
