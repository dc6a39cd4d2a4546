"""Validates the environment variables of a container: `env` and `envFrom`.

Called by `container_validation`.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

import re

from podscaler.api.kinds.volumes import downward_validation, volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import checks, references
from podscaler.api.resource.resources import Object

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_OF = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_ONLY_ONE = "may not have more than one field specified at a time"
_NAME = re.compile(r"[ -<>-~]+")  # printable ASCII characters other than `=`
_NAME_MESSAGE = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def _name_messages(name: str) -> list[str]:
    return [] if _NAME.fullmatch(name) else [_NAME_MESSAGE]


def variable_errors(variable: Object, path: str) -> list[FieldError]:
    """The field errors of one variable."""
    found = checks.required_form(variable.get("name", ""), f"{path}.name", _name_messages)
    if (source := variable.get("valueFrom")) is not None:
        found += _value_source_errors(source, variable.get("value", ""), f"{path}.valueFrom")
    return found


def source_errors(sources: list[Object], path: str) -> list[FieldError]:
    """The field errors of the `envFrom` entries at `path`."""
    found = []
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        found += checks.well_formed_if_set(source.get("prefix"), f"{place}.prefix", _name_messages)
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        if len(given) != 1:
            found.append(
                invalid(path, "", _ONLY_ONE if given else "must specify one of: `configMapRef` or `secretRef`")
            )
        for name in given:
            found += checks.present(source[name].get("name"), f"{place}.{name}.name")
    return found


def _value_source_errors(source: Object, value: str, path: str) -> list[FieldError]:
    given = [name for name in _SOURCES if source.get(name) is not None]
    found = [error for name in given for error in _reference_errors(name, source[name], f"{path}.{name}")]
    if not given:
        found.append(invalid(path, "", _ONE_OF))
    elif value:
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(invalid(path, "", _ONLY_ONE))
    return found


def _reference_errors(kind: str, source: Object, path: str) -> list[FieldError]:
    if kind == "fieldRef":
        return downward_validation.field_errors(source, path, downward_validation.VARIABLE_FIELDS)
    if kind == "resourceFieldRef":
        return downward_validation.resource_errors(source, path)
    if kind == "fileKeyRef":
        return _file_key_errors(source, path)
    found = checks.present(source.get("name"), f"{path}.name")
    return found + checks.required_form(source.get("key", ""), f"{path}.key", references.config_key_messages)


def _file_key_errors(source: Object, path: str) -> list[FieldError]:
    found = checks.required_form(source.get("key", ""), f"{path}.key", _name_messages)
    found += checks.required_form(source.get("volumeName", ""), f"{path}.volumeName", names.dns_label_errors)
    where = source.get("path", "")
    return found + (volume_paths.backstep_errors(where, f"{path}.path") if where else [required(f"{path}.path")])
