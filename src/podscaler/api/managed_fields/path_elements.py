"""Makes, parses and prints the elements of field paths, which have one text in FieldsV1 and another one in messages.

    f:replicas                      .replicas                           a field of an object, a key of a map
    k:{"name":"web"}                [name="web"]                        an item of a list, by its keys
    v:"example.com/guard"           [="example.com/guard"]              an item of a set
    i:3                             [3]                                 an item by its index

Called by the modules of this package. The text of an element is canonical: keys sorted, JSON without blanks.

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
    """The element of an item of a list that is a map by `keys`."""
    return "k:" + _encode({name: keys[name] for name in sorted(keys)}).decode()


def keyed_by(name: str, item: Any) -> str:
    """The element of an item of a list that is a map by one key."""
    return _keyed_by_text(name, item) if isinstance(item, str) else keyed({name: item})


@lru_cache(maxsize=8192)
def _keyed_by_text(name: str, item: str) -> str:
    return keyed({name: item})


def value(item: Any) -> str:
    """The element of an item (a scalar) of a list that is a set."""
    return "v:" + _encode(item).decode()


def parsed(text: str) -> str:
    """The canonical form of an element that a client sent; empty for one of an unknown kind. Raises ElementError."""
    kind, rest = text[:2], text[2:]
    if kind == "f:":
        return text
    if kind not in ("k:", "v:", "i:"):
        if kind[1:] != ":":
            raise ElementError(f"no step of a path: {text}")
        return ""
    try:
        item = _decode(rest)
    except msgspec.DecodeError:
        raise ElementError(f"no step of a path: {text}") from None
    if kind == "k:" and isinstance(item, dict) and item:
        return keyed(item)
    if kind == "v:":
        return value(item)
    if kind == "i:" and isinstance(item, int) and not isinstance(item, bool):
        return f"i:{item}"
    raise ElementError(f"no step of a path: {text}")


def shown(path: Iterable[str]) -> str:
    """A path as messages show it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    """An element as messages show it: `.name`, `[name="web"]`, `[="x"]` or `[0]`."""
    kind, rest = element[:2], element[2:]
    match kind:
        case "f:":
            return f".{rest}"
        case "k:":
            return f"[{','.join(f'{name}={shown_value(item)}' for name, item in _decode(rest).items())}]"
        case "v:":
            return f"[={shown_value(_decode(rest))}]"
        case _:
            return f"[{rest}]"


def shown_value(item: Any) -> str:
    """A value in a path: texts quoted as Go does, other values as JSON."""
    if isinstance(item, str):
        return quoting.quoted(item)
    return _encode(item).decode()
