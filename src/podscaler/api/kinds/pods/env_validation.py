"""Validates the environment variables of a container: `env` and `envFrom`.

Called by `container_validation`. A new source of a variable: an entry of _SOURCES, its name in _ONE_SOURCE_MESSAGE, and
a case in `_reference_errors`. An `Object` is the part of an API object that the name of the argument says, as a JSON
object; `path` is its path in errors.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

import re

from podscaler.api.kinds.volumes import downward_validation, volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import checks, references
from podscaler.api.resource.resources import Object

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_SOURCE_MESSAGE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_SECOND_SOURCE_MESSAGE = "may not have more than one field specified at a time"
_NAME = re.compile(r"[ -<>-~]+")  # printable ASCII characters other than `=`
_NAME_MESSAGE = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def _name_messages(name: str) -> list[str]:
    return [] if _NAME.fullmatch(name) else [_NAME_MESSAGE]


def variable_errors(variable: Object, path: str) -> list[FieldError]:
    """The field errors of one variable, an item of `env`."""
    errors = checks.required_form(variable.get("name", ""), f"{path}.name", _name_messages)
    if (source := variable.get("valueFrom")) is not None:
        errors += _value_source_errors(source, variable.get("value", ""), f"{path}.valueFrom")
    return errors


def env_from_errors(items: list[Object], path: str) -> list[FieldError]:
    """The field errors of `envFrom` at `path`; each item refers to either a ConfigMap or a Secret."""
    errors = []
    for index, item in enumerate(items):
        item_path = f"{path}[{index}]"
        errors += checks.well_formed_if_set(item.get("prefix"), f"{item_path}.prefix", _name_messages)
        set_references = [name for name in ("configMapRef", "secretRef") if item.get(name) is not None]
        if len(set_references) != 1:
            message = _SECOND_SOURCE_MESSAGE if set_references else "must specify one of: `configMapRef` or `secretRef`"
            errors.append(invalid(path, "", message))  # at the list, as in kube-apiserver
        for name in set_references:
            errors += checks.present(item[name].get("name"), f"{item_path}.{name}.name")
    return errors


def _value_source_errors(source: Object, value: str, path: str) -> list[FieldError]:
    """Errors of `valueFrom` at `path`, which must have exactly one source; `value` is the variable's, maybe empty."""
    set_sources = [name for name in _SOURCES if source.get(name) is not None]
    errors = [error for name in set_sources for error in _reference_errors(name, source[name], f"{path}.{name}")]
    if not set_sources:
        errors.append(invalid(path, "", _ONE_SOURCE_MESSAGE))
    elif value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(set_sources) > 1:
        errors.append(invalid(path, "", _SECOND_SOURCE_MESSAGE))
    return errors


def _reference_errors(source_type: str, source: Object, path: str) -> list[FieldError]:
    """Field errors of a source of a variable; `source_type`, one of _SOURCES, is its field in `valueFrom`."""
    if source_type == "fieldRef":
        return downward_validation.field_errors(source, path, downward_validation.VARIABLE_FIELDS)
    if source_type == "resourceFieldRef":
        return downward_validation.resource_errors(source, path)
    if source_type == "fileKeyRef":
        return _file_key_errors(source, path)
    errors = checks.present(source.get("name"), f"{path}.name")  # of a ConfigMap or Secret
    return errors + checks.required_form(source.get("key", ""), f"{path}.key", references.config_key_messages)


def _file_key_errors(source: Object, path: str) -> list[FieldError]:
    """Errors of a variable that is read from a file of a volume."""
    errors = checks.required_form(source.get("key", ""), f"{path}.key", _name_messages)
    errors += checks.required_form(source.get("volumeName", ""), f"{path}.volumeName", names.dns_label_errors)
    file_path = source.get("path", "")
    if not file_path:
        return [*errors, required(f"{path}.path")]
    return errors + volume_paths.backstep_errors(file_path, f"{path}.path")
