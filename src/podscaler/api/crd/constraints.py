"""Checks single values of custom objects against one node of the schema: type, numbers, texts, lengths, enumerations.

    number_errors(5, parse({"type": "integer", "maximum": 3}), "spec.size")      should be less than or equal to 3

Called by `validation` for every value; `scale` calls `type_of`. Each `*_errors` function returns the field errors about
the value at `path`. A new keyword: a function here, a field of `structural.ValueConstraints`, and a call in
`validation`.

Source: kube-openapi's validator (documented behaviour) with its order and its quirks: a text that is too long is not
matched against the pattern, a format changes the message about a wrong type.
"""

import json
from typing import Any

from podscaler.api.crd import schema_errors
from podscaler.api.crd.schema_errors import SchemaFindings
from podscaler.api.crd.structural import Structural, ValueConstraints
from podscaler.api.machinery import numbers, re2_patterns, string_formats
from podscaler.api.machinery.field import FieldError

_INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1)}
_INT64_RANGE = (numbers.INT64_MIN, numbers.INT64_MAX)
_WHOLE_FLOAT_MAX = 2**53 - 1
"""The largest float that counts as an integer."""

_ROUNDING_TOLERANCE = 1e-9
"""A quotient this close to a whole number counts as whole."""

_LEAST_WITH_EXPONENT = 1e21
"""Go prints floats from this number on with an exponent."""


def type_of(json_value: Any) -> tuple[str, str]:
    """The JSON type of a value, and the format of a number as Go stores it: ("integer", "int64"), ("string", "")."""
    if json_value is None:
        return "null", ""
    if isinstance(json_value, bool):
        return "boolean", ""
    if isinstance(json_value, int) and numbers.INT64_MIN <= json_value <= numbers.INT64_MAX:
        return "integer", "int64"
    if isinstance(json_value, int | float):
        return "number", "float64"
    if isinstance(json_value, str):
        return "string", ""
    return ("array" if isinstance(json_value, list) else "object"), ""


def type_findings(value: Any, schema: Structural, path: str) -> SchemaFindings:
    """The error of a value that has none of the schema's types; one check for a valid value, none without types."""
    json_type, go_format = type_of(value)
    expected_types = ",".join(schema.types)
    if value is None:
        if not schema.types or schema.nullable:
            return SchemaFindings(checks=1)
        return SchemaFindings([schema_errors.wrong_type(path, "null", expected_types, "null")])
    if not schema.types:
        return SchemaFindings()
    is_valid = _has_type(value, json_type, schema.types)
    if schema.format:  # then kube-openapi names the format in the error, and does not check the type of texts and lists
        is_text_or_list = json_type in ("string", "array")
        if not is_text_or_list and not is_valid and go_format != schema.format:
            return SchemaFindings([schema_errors.wrong_type(path, go_format, schema.format, go_format)])
        if is_text_or_list and not {"number", "integer"} & set(schema.types):
            return SchemaFindings(checks=1)
    if is_valid:
        return SchemaFindings(checks=1)
    return SchemaFindings([schema_errors.wrong_type(path, json_type, expected_types, json_type)])


def _has_type(value: Any, json_type: str, types: tuple[str, ...]) -> bool:
    """Whether a value of `json_type` has one of the types: integers are numbers, whole floats are integers."""
    if json_type == "integer":
        return "integer" in types or "number" in types
    if json_type == "number" and "number" not in types:
        return "integer" in types and abs(value) <= _WHOLE_FLOAT_MAX and value == int(value)
    return json_type in types


def text_errors(value: str, limits: ValueConstraints, path: str) -> list[FieldError]:
    """The error of a text: too long, too short, or without match of the pattern; the first of these."""
    if limits.max_length is not None and len(value) > limits.max_length:
        return [schema_errors.too_long(path, limits.max_length)]
    if limits.min_length is not None and len(value) < limits.min_length:
        return [schema_errors.invalid(path, value, f"should be at least {limits.min_length} chars long")]
    mismatch = _find_mismatch(limits.pattern, value)
    return [schema_errors.invalid(path, value, f"should match '{mismatch}'")] if mismatch else []


def _find_mismatch(pattern: str, value: str) -> str:
    """Empty if the value matches; else the pattern, with its syntax error if it is invalid."""
    try:
        return "" if not pattern or re2_patterns.matches(pattern, value) else pattern
    except re2_patterns.PatternError as error:
        return f"{pattern}, but pattern is invalid: {error}"


def format_errors(value: str, name: str, path: str) -> list[FieldError]:
    """The error of a text that does not have the format `name`."""
    check = string_formats.find_check(name) if name else None
    if check is None or check(value):
        return []
    escaped_value = json.dumps(value, ensure_ascii=False)[1:-1]  # without the quotes, which the message has
    return [schema_errors.wrong_type(path, value, name, escaped_value)]


def number_errors(value: float, schema: Structural, path: str) -> list[FieldError]:
    """The errors of a number: beyond its integer type, no multiple of multipleOf, above maximum, below minimum."""
    limits = schema.limits
    errors = _integer_range_errors(value, schema, path)
    if limits.multiple_of and not _is_multiple(value, limits.multiple_of):
        errors.append(schema_errors.invalid(path, value, f"should be a multiple of {number_text(limits.multiple_of)}"))
    if limits.maximum is not None and _exceeds(value, limits.maximum, exclusive=limits.exclusive_maximum):
        relation = "less than" if limits.exclusive_maximum else "less than or equal to"
        errors.append(schema_errors.invalid(path, value, f"should be {relation} {number_text(limits.maximum)}"))
    # both negated: a number below the minimum exceeds it then
    if limits.minimum is not None and _exceeds(-value, -limits.minimum, exclusive=limits.exclusive_minimum):
        relation = "greater than" if limits.exclusive_minimum else "greater than or equal to"
        errors.append(schema_errors.invalid(path, value, f"should be {relation} {number_text(limits.minimum)}"))
    return errors


def enum_errors(value: Any, limits: ValueConstraints, path: str) -> list[FieldError]:
    """The error of a value that is not in the enumeration."""
    if not limits.enum or any(_is_json_equal(value, allowed_value) for allowed_value in limits.enum):
        return []
    return [schema_errors.not_in_enum(path, value, limits.enum)]


def list_errors(value: list[Any], limits: ValueConstraints, path: str) -> list[FieldError]:
    """The errors of a list: too few or too many elements, equal elements (uniqueItems)."""
    errors = []
    if limits.min_items is not None and len(value) < limits.min_items:
        message = f"should have at least {limits.min_items} items"
        errors.append(schema_errors.invalid(path, len(value), message))
    if limits.max_items is not None and len(value) > limits.max_items:
        errors.append(schema_errors.too_many(path, len(value), limits.max_items))
    if limits.unique_items and any(
        _is_json_equal(element, earlier_element)
        for index, element in enumerate(value)
        for earlier_element in value[:index]
    ):
        errors.append(schema_errors.invalid(path, None, "shouldn't contain duplicates"))
    return errors


def member_count_errors(value: dict[str, Any], limits: ValueConstraints, path: str) -> list[FieldError]:
    """The error of an object with too few or too many members; the caller then checks nothing else about it."""
    if limits.min_properties is not None and len(value) < limits.min_properties:
        return [schema_errors.invalid(path, len(value), f"should have at least {limits.min_properties} properties")]
    if limits.max_properties is not None and len(value) > limits.max_properties:
        return [schema_errors.too_many(path, len(value), limits.max_properties)]
    return []


def number_text(number: float) -> str:
    """A number as Go's `%v` prints a float64."""
    if number == int(number) and abs(number) < _LEAST_WITH_EXPONENT:
        return str(int(number))
    mantissa, _, exponent = repr(float(number)).partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+03d}" if exponent else mantissa


def _integer_range_errors(value: float, schema: Structural, path: str) -> list[FieldError]:
    """An error of an integer beyond its format, as Go's JSON schema validator words it."""
    if schema.types != ("integer",):
        return []
    lowest, highest = _INTEGER_RANGES.get(schema.format, _INT64_RANGE)
    if lowest <= value <= highest and value == int(value):
        return []
    format_text = f"with format {schema.format}" if schema.format else "(default format)"
    return [schema_errors.without_path(f"Checked value must be of type integer {format_text} in {path}")]


def _is_multiple(value: float, factor: float) -> bool:
    """Whether a value is a multiple of a factor above 0, but for the rounding of floats."""
    if factor <= 0:
        return False
    quotient = value / factor
    return quotient == int(quotient) or abs(quotient - round(quotient)) < _ROUNDING_TOLERANCE


def _exceeds(value: float, limit: float, *, exclusive: bool) -> bool:
    return value >= limit if exclusive else value > limit


def _is_json_equal(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_json_equal(item, right[name]) for name, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_json_equal, left, right))
    return bool(left == right)
