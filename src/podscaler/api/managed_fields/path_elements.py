"""Makes, parses and prints the elements of field paths, which have one text in FieldsV1 and another one in messages.

    f:replicas                      .replicas                           a field of an object, a key of a map
    k:{"name":"web"}                [name="web"]                        an item of a list, by its keys
    v:"example.com/guard"           [="example.com/guard"]              an item of a set
    i:3                             [3]                                 an item by its index

Called by the modules of this package. A new kind of element: a function that makes it, `parse` and `_element_text`; for
items of lists, `field_types.item_element` and `extracting`, too. The text of an element is canonical: keys sorted, JSON
without blanks.

Source: structured-merge-diff's fieldpath.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from podscaler.api.text import quoting

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode


class ElementError(ValueError):
    """A text is not a path element."""


def field(name: str) -> str:
    """The element of a field of an object or a key of a map."""
    return f"f:{name}"


def keyed(keys: Mapping[str, Any]) -> str:
    """The element of an item of a list with keys; `keys` has the values of the item's keys by name."""
    return "k:" + _encode({name: keys[name] for name in sorted(keys)}).decode()


def keyed_by(name: str, key_value: Any) -> str:
    """As `keyed`, for a list with the one key `name`; faster for texts, as the names of containers recur."""
    return _keyed_by_text(name, key_value) if isinstance(key_value, str) else keyed({name: key_value})


@lru_cache(maxsize=8192)
def _keyed_by_text(name: str, key_value: str) -> str:
    return keyed({name: key_value})


def value(item: Any) -> str:
    """The element of an item (a scalar) of a list that is a set."""
    return "v:" + _encode(item).decode()


def parse(element_text: str) -> str:
    """The canonical form of an element that a client sent; empty for one of an unknown kind. Raises ElementError."""
    prefix, value_json = element_text[:2], element_text[2:]
    if prefix == "f:":
        return element_text
    if prefix not in ("k:", "v:", "i:"):
        is_of_unknown_kind = prefix[1:] == ":"  # another letter: a later version may define it
        if not is_of_unknown_kind:
            raise ElementError(f"no step of a path: {element_text}")
        return ""
    try:
        element_value = _decode(value_json)
    except msgspec.DecodeError:
        raise ElementError(f"no step of a path: {element_text}") from None
    if prefix == "k:" and isinstance(element_value, dict) and element_value:
        return keyed(element_value)
    if prefix == "v:":
        return value(element_value)
    if prefix == "i:" and isinstance(element_value, int) and not isinstance(element_value, bool):
        return f"i:{element_value}"
    raise ElementError(f"no step of a path: {element_text}")


def path_text(path: Iterable[str]) -> str:
    """A path as messages show it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    """An element as messages show it: `.name`, `[name="web"]`, `[="x"]` or `[0]`."""
    prefix, content = element[:2], element[2:]
    match prefix:
        case "f:":
            return f".{content}"
        case "k:":
            return f"[{','.join(f'{name}={value_text(item)}' for name, item in _decode(content).items())}]"
        case "v:":
            return f"[={value_text(_decode(content))}]"
        case _:
            return f"[{content}]"


def value_text(item: Any) -> str:
    """A value in a path: texts quoted as Go does, other values as JSON."""
    if isinstance(item, str):
        return quoting.quoted(item)
    return _encode(item).decode()
