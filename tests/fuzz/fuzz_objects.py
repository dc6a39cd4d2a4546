"""Objects that are nearly right: valid ones with further fields that the schema knows, and with parts that are wrong.

Called by the tests of this folder. All choices come from a random.Random.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any

from podscaler.api.schema import schema
from podscaler.api.schema.schema import Field

Object = dict[str, Any]

TEXTS = (
    "",
    " ",
    "a",
    "A-b.c/d_e",
    "fuzz",
    "default",
    "x" * 64,
    "x" * 254,
    "y" * 70_000,
    "\x00",
    "\ud800",
    "\ufeff",
    "\u2028<&>",
    "é",
    "😀",
    "..",
    "../..",
    "%2e%2e",
    "a=b,c in (d,e)",
    "10.0.0.1",
    "::1/129",
    "100m",
    "1e400",
    "-1",
    "9" * 400,
    "50%",
    "-0%",
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60.999999999+23:59",
    "true",
    "null",
    "$(A)",
    "{{.}}",
    "AAE=",
    "====",
    "*",
    "^(a+)+$",
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    80,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    10**400,
    0.5,
    -0.0,
    1e300,
    5e-324,
)
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    *NUMBERS,
    *TEXTS,
    [],
    [None],
    [[]],
    [{}],
    {},
    {"": ""},
    {"a": None},
    {"fuzz": {"b": []}},
)
_LIKELY = {
    "string": ("a", "fuzz", "default", "", "x" * 64, "A b", "1.5", "Always", "true"),
    "bool": (True, False),
    "bytes": ("", "AAE=", "====", "a"),
    "double": (0, 1.5, -1, 1e300),
}
_OPAQUE: dict[str, tuple[Any, ...]] = {
    schema.QUANTITY: (
        "1",
        "100m",
        "1Gi",
        "1e3",
        5,
        0.1,
        "-1",
        "0",
        "1e400",
        "1e-400",
        "x",
        "",
        "9" * 40,
        "9223372036854775808Ei",
    ),
    schema.TIME: (
        "2026-01-01T00:00:00Z",
        None,
        "2026-01-01T00:00:00.5+01:00",
        "x",
        "",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
    ),
    schema.MICRO_TIME: ("2026-01-01T00:00:00.000001Z", None, "x", "0001-01-01T00:00:00.000000Z"),
    schema.DURATION: ("15s", "1h", "x", "-1s", "9" * 30 + "h", ""),
    schema.INT_OR_STRING: (1, "50%", "http", 0, -1, "101%", "", 2**31, "%"),
    schema.SCHEMA_OR_BOOL: (True, False, {"type": "string"}, {}, {"additionalProperties": True}),
    schema.SCHEMA_OR_ARRAY: ({"type": "string"}, {}, [{}], []),
    schema.SCHEMA_OR_STRINGS: (["a"], {"type": "string"}, {}, []),
}
_FREE: tuple[Any, ...] = (
    {"a": [1, {"b": None}]},
    {},
    None,
    5,
    "x",
    [],
    {"f:metadata": {".": {}}},
    {"kind": "Pod", "apiVersion": "v1"},
)
DEEPEST = 5


def value_of(rng: random.Random, field: Field, depth: int = 0) -> Any:
    """A value for a field: of its type, if not always one that validation likes."""
    if field.repeated:
        return [_element(rng, field, depth) for _ in range(rng.randrange(3))]
    if field.map:
        return {
            rng.choice(("a", "fuzz", "cpu", "b/c", "", "x" * 64)): _element(rng, field, depth)
            for _ in range(rng.randrange(3))
        }
    return _element(rng, field, depth)


def _element(rng: random.Random, field: Field, depth: int) -> Any:
    if field.enum and rng.random() < 0.8:
        return rng.choice(field.enum)
    if field.type in _LIKELY:
        return rng.choice(_LIKELY[field.type])
    if field.is_scalar:
        return rng.choice((0, 1, 5, 80, -1, 3600, 2**31 - 1))
    if field.type in schema.FREE_FORM:
        return copy.deepcopy(rng.choice(_FREE))
    if field.type in _OPAQUE:
        return copy.deepcopy(rng.choice(_OPAQUE[field.type]))
    return message_value(rng, field.type, depth + 1)


def message_value(rng: random.Random, name: str, depth: int = 0) -> Any:
    """An object of a message with some of its fields."""
    message = schema.get_message(name)
    if message.list:
        return ["a"]
    fields = list(message.json_fields())
    share = 0.5 if depth < 2 else 0.2
    if depth >= DEEPEST:
        fields = [field for field in fields if field.is_scalar]
    return {field.name: value_of(rng, field, depth) for field in fields if field.required or rng.random() < share}


def grown(rng: random.Random, obj: Object, message: str, times: int = 3) -> Object:
    """The object with values for fields of its message that it did not have, or other ones."""
    obj = copy.deepcopy(obj)
    for _ in range(times):
        places = list(_messages(obj, message))
        place, name = rng.choice(places)
        fields = list(schema.get_message(name).json_fields())
        if fields:
            field = rng.choice(fields)
            place[field.name] = value_of(rng, field)
    return obj


def _messages(obj: Object, name: str) -> Iterator[tuple[Object, str]]:
    """Every part of an object that is a message, with the message's name."""
    yield obj, name
    for field in schema.get_message(name).json_fields():
        if field.is_scalar or field.type in schema.OPAQUE or field.name not in obj:
            continue
        value = obj[field.name]
        parts = (
            value
            if isinstance(value, list)
            else list(value.values())
            if field.map and isinstance(value, dict)
            else [value]
        )
        for part in parts:
            if isinstance(part, dict):
                yield from _messages(part, field.type)


def mutated(rng: random.Random, value: Any, times: int = 2) -> Any:
    """The value with parts replaced, removed, renamed, repeated, wrapped or nested."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, times)):
        places = list(_places(value))
        if not places:
            return copy.deepcopy(rng.choice(ODD))
        holder, key = rng.choice(places)
        rng.choice(_CHANGES)(rng, holder, key)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield value, key
            yield from _places(part)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield value, index
            yield from _places(part)


def _replace(rng: random.Random, holder: Any, key: Any) -> None:
    holder[key] = copy.deepcopy(rng.choice(ODD))


def _remove(rng: random.Random, holder: Any, key: Any) -> None:
    del holder[key]


def _rename(rng: random.Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(TEXTS)] = holder.pop(key)
    else:
        holder.append(copy.deepcopy(holder[key]))


def _wrap(rng: random.Random, holder: Any, key: Any) -> None:
    holder[key] = rng.choice(([holder[key]], {"a": holder[key]}, [holder[key], holder[key]]))


def _nest(rng: random.Random, holder: Any, key: Any) -> None:
    for _ in range(rng.choice((3, 40))):
        holder[key] = {"a": holder[key]} if rng.random() < 0.5 else [holder[key]]


def _odd_text(rng: random.Random, holder: Any, key: Any) -> None:
    holder[key] = f"{holder[key]}{rng.choice(TEXTS)}" if isinstance(holder[key], str) else rng.choice(NUMBERS)


_CHANGES = (_replace, _replace, _replace, _remove, _rename, _wrap, _nest, _odd_text, _odd_text)
