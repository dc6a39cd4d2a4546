"""Converts objects to the form in which Go prints its structs in field errors, and compares two of them.

    printed({"port": 80}, "core/v1.ServicePort")      {"Name": "", "Protocol": "", ..., "Port": 80, ...}

Called by the validation in `podscaler.api.kinds`, about fields that may not change. A struct is printed with the names
of its Go fields, and with the fields that are unset. A Go name that the rules do not give: `_IRREGULAR_GO_NAMES`.

Source: golden captures (`pod-spec-immutable`); the API types' field names and order.
"""

import difflib
import json
import re
from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.api.schema import schema
from podscaler.api.schema.decode_values import ZERO_VALUES
from podscaler.api.schema.schema import Field

_CONTEXT_LINES = 3
_IRREGULAR_GO_NAMES = {"serviceAccount": "DeprecatedServiceAccount", "cephfs": "CephFS", "storageos": "StorageOS"}
_EMBEDDED = "meta/v1.ObjectMeta"
"""The message that Go embeds: its fields are printed among those of the struct around it."""
_PRINTED_AS_JSON = "meta/v1."
"""The package whose types are printed with their JSON names, and without the fields that are unset."""
_INITIALISMS = re.compile("api|aws|csi|dns|fc|fs|gce|grpc|http|ip|iscsi|nfs|os|rbd|se|tcp|tty|uid")
"""First words of JSON names that Go names have in capitals: `podIP` is `PodIP`, `ipMode` is `IPMode`."""


def difference(old: Object, new: Object, message: str) -> str:
    """The differing lines of two objects of `message` (`core/v1.PodSpec`), as a unified diff without file names."""
    diff_lines = difflib.unified_diff(
        _json_lines(old, message), _json_lines(new, message), n=_CONTEXT_LINES, lineterm=""
    )
    without_file_names = list(diff_lines)[2:]
    return "".join(f"{line}\n" for line in without_file_names)


def _json_lines(obj: Object, message: str) -> list[str]:
    return json.dumps(printed(obj, message), indent=1, ensure_ascii=False).splitlines()


def printed(obj: Object, message: str) -> Object:
    """An object of `message` with the Go names of its fields, and with the fields that are unset."""
    fields: Object = {}
    for field in schema.get_message(message).json_fields():
        if field.type == _EMBEDDED:
            metadata = obj.get(field.name) or {}
            fields.update({name: _printed_elements(value, "") for name, value in metadata.items()})
        else:
            fields[_go_name(field.name)] = _printed_value(obj.get(field.name), field)
    return fields


def _printed_value(value: Any, field: Field) -> Any:
    """The value of a field as Go has it: absent ones are nil, zero or an empty struct."""
    is_struct = not field.is_scalar and field.type not in schema.OPAQUE and not field.type.startswith(_PRINTED_AS_JSON)
    if field.repeated or field.map:
        return _printed_elements(value, field.type if is_struct else "")
    if value is None:
        if field.pointer:
            return None
        return printed({}, field.type) if is_struct else ZERO_VALUES.get(field.type)
    return printed(value, field.type) if is_struct else value


def _printed_elements(value: Any, message: str) -> Any:
    """The printed form of a list or map; `message` is that of its elements, empty if they are printed as JSON."""
    if not value:
        return value
    if isinstance(value, dict):
        return {key: printed(element, message) if message else element for key, element in sorted(value.items())}
    if not message:
        return value
    return [printed(element, message) for element in value]


def _go_name(json_name: str) -> str:
    """The name of the Go field: `HostIP` of `hostIP`."""
    if json_name in _IRREGULAR_GO_NAMES:
        return _IRREGULAR_GO_NAMES[json_name]
    word_end = next((index for index, letter in enumerate(json_name) if letter.isupper()), len(json_name))
    first_word, remainder = json_name[:word_end], json_name[word_end:]
    return (first_word.upper() if _INITIALISMS.fullmatch(first_word) else first_word.capitalize()) + remainder
