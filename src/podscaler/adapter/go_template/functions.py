"""Implements the functions that a template may call, as Go's text/template defines them.

Called by `go_template.template`. Values are texts, whole numbers, booleans, None, lists and mappings of texts. A new
function: an entry of FUNCTIONS.

Source: documentation of Go's package text/template (functions) and fmt.
Differs: `js` and `call` do not exist; `printf` has the verbs %s, %q, %v, %d and %% without widths; `and` and `or`
evaluate all arguments; `slice` counts the characters of a text, not its bytes, and has no third bound (a capacity).
"""

import html
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from podscaler.adapter.go_template.lexing import TemplateError
from podscaler.api.text.quoting import quoted

_VERB = re.compile(r"%(.?)", re.DOTALL)
_ORDERED_TYPES = (str, int)
"""The types that `lt` and its like compare; not bool, although it is an int of Python."""


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


def index(container: Any, *keys: Any) -> Any:
    """The element of a list or mapping; several keys lead into nested ones. Raises TemplateError."""
    element = container
    for key in keys:
        if isinstance(element, Mapping):
            element = element.get(key, "")  # for an absent key Go returns the zero value of the values, which are texts
        elif isinstance(element, Sequence) and not isinstance(element, str) and isinstance(key, int):
            if not 0 <= key < len(element):
                raise TemplateError(f"error calling index: index out of range: {key}")
            element = element[key]
        else:
            raise TemplateError(f"error calling index: cannot index {shown(element)} with {shown(key)}")
    return element


def slice_of(sliced: Any, *bounds: Any) -> Any:
    """The part of a text or list from the first bound (0) to before the second (the length). Raises TemplateError."""
    if not isinstance(sliced, Sequence) or not all(isinstance(bound, int) for bound in bounds):
        raise TemplateError("error calling slice: cannot slice this value")
    if len(bounds) > 2:
        raise TemplateError(f"error calling slice: too many slice indexes: {len(bounds)}")
    start = bounds[0] if bounds else 0
    end = bounds[1] if len(bounds) > 1 else len(sliced)
    if not 0 <= start <= end <= len(sliced):
        raise TemplateError("error calling slice: index out of range")
    return sliced[start:end]


def length(container: Any) -> int:
    """The number of elements, or of bytes of a text. Raises TemplateError."""
    if isinstance(container, str):
        return len(container.encode())
    if isinstance(container, Mapping | Sequence):
        return len(container)
    raise TemplateError(f"error calling len: {shown(container)} has no length")


def printf(format_text: Any, *arguments: Any) -> str:
    """The arguments in a format. Raises TemplateError for an unknown verb, and for missing or surplus arguments."""
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

    output = _VERB.sub(replace, shown(format_text))
    if unused_arguments:
        raise TemplateError("error calling printf: too many arguments")
    return output


def print_values(*values: Any) -> str:
    """The texts of the values, with a space between two values of which neither is a text, as Go's `print`."""
    output = ""
    for position, value in enumerate(values):
        needs_space = position > 0 and not isinstance(value, str) and not isinstance(values[position - 1], str)
        output += (" " if needs_space else "") + shown(value)
    return output


def _first_with_truth_or_last(*values: Any, truth: bool) -> Any:
    """The first value that is true (or false, as `truth` says); the last value if there is no such."""
    for value in values:
        if is_true(value) is truth:
            return value
    return values[-1]


def _equals(left: Any, right: Any) -> bool:
    """Whether two values are equal. Raises TemplateError if their types differ."""
    if type(left) is not type(right):
        raise TemplateError("incompatible types for comparison")
    return bool(left == right)


def _equals_any(value: Any, *candidates: Any) -> bool:
    """Whether a value equals one of the others. Raises TemplateError for one of another type."""
    return any(_equals(value, candidate) for candidate in candidates)


def _ordering(is_in_order: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """The template function that compares two texts, or two numbers, with `is_in_order`; it raises TemplateError."""

    def compare(left: Any, right: Any) -> bool:
        if type(left) not in _ORDERED_TYPES or type(right) not in _ORDERED_TYPES:
            raise TemplateError("invalid type for comparison")
        if type(left) is not type(right):
            raise TemplateError("incompatible types for comparison")
        return is_in_order(left, right)

    return compare


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "and": lambda *values: _first_with_truth_or_last(*values, truth=False),
    "or": lambda *values: _first_with_truth_or_last(*values, truth=True),
    "not": lambda value: not is_true(value),
    "eq": _equals_any,
    "ne": lambda left, right: not _equals(left, right),
    "lt": _ordering(operator.lt),
    "le": _ordering(operator.le),
    "gt": _ordering(operator.gt),
    "ge": _ordering(operator.ge),
    "html": lambda *values: html.escape(print_values(*values)).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "index": index,
    "len": length,
    "print": print_values,
    "printf": printf,
    "println": lambda *values: " ".join(map(shown, values)) + "\n",
    "slice": slice_of,
    "urlquery": lambda *values: quote_plus(print_values(*values)),
}
"""The functions by the names that templates use."""
