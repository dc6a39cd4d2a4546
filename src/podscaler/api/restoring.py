"""What a strategic merge patch may leave behind: values that Go can put back into the fields of a type.

Called by the API server, which otherwise decodes what a patch makes of an object like any body. This decoder is another
one of upstream's, with other words for values of the wrong type; only those are its business, everything else is said
by `decoding` afterwards.

Source: the conversion of unstructured data in Kubernetes' apimachinery. Differs: integers beyond 32 bits are refused by
`decoding`, where upstream cuts them off.
"""

from typing import Any

from podscaler.api import decode_values, decoding, schema
from podscaler.api.json_text import DecodeError
from podscaler.api.schema import Field

_KINDS = ((bool, "bool"), (int, "int64"), (float, "float64"), (str, "string"), (list, "slice"), (dict, "map"))
_NUMBERS = frozenset({"int32", "int64", "uint32"})


def check(value: Any, message: str) -> None:
    """Return if `value` has the types of the message wherever both have something.

    Raises:
        DecodeError: in upstream's words: `cannot restore slice from string`.
    """
    if message in schema.OPAQUE:
        if value is not None and message not in schema.FREE_FORM:
            decoding.decode_value(value, message)
        return
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore struct from: {_kind(value)}")
    for field in schema.get_message(message).json_fields():
        if value.get(field.name) is not None:
            _check_field(value[field.name], field)


def _check_field(value: Any, field: Field) -> None:
    if field.repeated:
        if not isinstance(value, list):
            raise DecodeError(f"cannot restore slice from {_kind(value)}")
        for item in value:
            _check_element(item, field)
    elif field.map:
        if not isinstance(value, dict):
            raise DecodeError(f"cannot restore map from {_kind(value)}")
        for item in value.values():
            _check_element(item, field)
    else:
        _check_element(value, field)


def _check_element(value: Any, field: Field) -> None:
    if value is None:
        return
    if field.is_scalar:
        _check_scalar(value, field)
    else:
        check(value, field.type)


def _check_scalar(value: Any, field: Field) -> None:
    kind, wanted = _kind(value), field.type
    if wanted == "bytes":
        _check_bytes(value)
        return
    if wanted == kind or (kind == "int64" and wanted in {*_NUMBERS, "double"}):
        return
    if kind == "float64" and (wanted == "double" or (wanted in _NUMBERS and value == int(value))):
        return
    if (kind, wanted) == ("int64", "string") or (kind == "float64" and wanted in _NUMBERS):
        named = field.go_type if field.go_type and not (field.repeated or field.map) else wanted
        raise DecodeError(f"cannot convert {kind} to {named}")
    raise DecodeError(f"unrecognized type: {'float64' if wanted == 'double' else wanted}")


def _check_bytes(value: Any) -> None:
    """Bytes are text that must decode; a list is left to `decoding`."""
    if isinstance(value, str):
        fault = decode_values.base64_fault(value)
        if fault:
            raise DecodeError(f"error decoding from json: {fault}")
    elif not isinstance(value, list):
        raise DecodeError(f"cannot restore slice from {_kind(value)}")


def _kind(value: Any) -> str:
    return next(name for known, name in _KINDS if isinstance(value, known))
