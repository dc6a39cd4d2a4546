"""Implements the functions that a template may call, as Go's text/template defines them.

Called by `go_template.template`. Values are texts, whole numbers, booleans, None, lists and mappings of texts.

Source: documentation of Go's package text/template (functions) and fmt.
Differs: `js` and `call` do not exist; `printf` has the verbs %s, %q, %v, %d and %% without widths.
"""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from podscaler.adapter.go_template.lexing import TemplateError
from podscaler.api.text.quoting import quoted

_VERB = re.compile(r"%(.?)", re.DOTALL)


def is_true(value: Any) -> bool:
    """Whether a value is not empty: not 0, false, nil, or a text or list without elements."""
    return bool(value)


def shown(value: Any) -> str:
    """The text of a value, as Go prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, Sequence):
        return f"[{' '.join(map(shown, value))}]"
    return str(value)


def index(value: Any, *keys: Any) -> Any:
    """The element of a list or mapping; several keys lead into nested ones. Raises TemplateError."""
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key, "")
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(key, int):
            if not 0 <= key < len(value):
                raise TemplateError(f"error calling index: index out of range: {key}")
            value = value[key]
        else:
            raise TemplateError(f"error calling index: cannot index {shown(value)} with {shown(key)}")
    return value


def slice_of(value: Any, *bounds: Any) -> Any:
    """A part of a text or list. Raises TemplateError."""
    default_bounds = [0, len(value)]
    limits = [*bounds, *default_bounds[len(bounds) :]]
    if isinstance(value, Mapping) or not all(isinstance(limit, int) for limit in limits):
        raise TemplateError("error calling slice: cannot slice this value")
    if len(limits) != len(default_bounds):
        raise TemplateError("error calling slice: index out of range")
    start, end = limits
    if not 0 <= start <= end <= len(value):
        raise TemplateError("error calling slice: index out of range")
    return value[start:end]


def length(value: Any) -> int:
    """The number of elements, or of bytes of a text. Raises TemplateError."""
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping | Sequence):
        return len(value)
    raise TemplateError(f"error calling len: {shown(value)} has no length")


def printf(form: Any, *arguments: Any) -> str:
    """The arguments in a format. Raises TemplateError for a verb that is not supported, and for a missing argument."""
    unused_arguments = list(arguments)

    def replace(verb: re.Match[str]) -> str:
        letter = verb[1]
        if letter == "%":
            return "%"
        if letter not in ("s", "q", "v", "d"):
            raise TemplateError(f"error calling printf: the verb {verb[0]} is not supported")
        if not unused_arguments:
            raise TemplateError(f"error calling printf: no argument for {verb[0]}")
        argument_text = shown(unused_arguments.pop(0))
        return quoted(argument_text) if letter == "q" else argument_text

    output = _VERB.sub(replace, shown(form))
    if unused_arguments:
        raise TemplateError("error calling printf: too many arguments")
    return output


def print_values(*values: Any) -> str:
    """The texts of the values, with a space between two values of which neither is a text, as Go's `print`."""
    output = ""
    for number, value in enumerate(values):
        needs_space = number and not isinstance(value, str) and not isinstance(values[number - 1], str)
        output += (" " if needs_space else "") + shown(value)
    return output


def _last_of(*values: Any, stops_at: bool) -> Any:
    """The first value whose truth is `stops_at`, or the last."""
    for value in values:
        if is_true(value) is stops_at:
            return value
    return values[-1]


def _compare(operation: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """A comparison of two values of the same type."""

    def compare(left: Any, right: Any) -> bool:
        if type(left) is not type(right):
            raise TemplateError("incompatible types for comparison")
        return operation(left, right)

    return compare


def _equals_any(value: Any, *candidates: Any) -> bool:
    """Whether a value equals one of the others. Raises TemplateError for one of another type."""
    is_equal = _compare(lambda left, right: bool(left == right))
    return any(is_equal(value, candidate) for candidate in candidates)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "and": lambda *values: _last_of(*values, stops_at=False),
    "or": lambda *values: _last_of(*values, stops_at=True),
    "not": lambda value: not is_true(value),
    "eq": _equals_any,
    "ne": _compare(lambda left, right: bool(left != right)),
    "lt": _compare(lambda left, right: bool(left < right)),
    "le": _compare(lambda left, right: bool(left <= right)),
    "gt": _compare(lambda left, right: bool(left > right)),
    "ge": _compare(lambda left, right: bool(left >= right)),
    "html": lambda *values: html.escape(print_values(*values)).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "index": index,
    "len": length,
    "print": print_values,
    "printf": printf,
    "println": lambda *values: " ".join(map(shown, values)) + "\n",
    "slice": slice_of,
    "urlquery": lambda *values: quote_plus(print_values(*values)),
}
"""The functions by name; a new one: add it here."""
