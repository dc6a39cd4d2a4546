"""Parses and validates the fields of an entry, the definition of a metric in a ConfigMap; called by `parsing`.

All scalars are the texts that were written in YAML or JSON, so that no number is converted to a float. In each function
`path` names the field in error messages. A new type of field: a function here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from podscaler.api.machinery import duration, instants, selectors
from podscaler.api.machinery.quantity import Quantity, QuantityError
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.api.text.quoting import quoted
from podscaler.base.clock import NANOSECONDS

Fields = Mapping[str, Any]
SHOWN_CHARACTERS = 60
"""How much of a text that the user wrote is repeated in a message."""


class EntryError(ValueError):
    """An invalid entry; the message names the field."""


def mapping(yaml_value: Any, path: str, allowed: Sequence[str]) -> Fields:
    """`yaml_value`, which must be a map whose keys are all in `allowed`. Raises EntryError.

    An empty `path` is the entry itself.
    """
    if not isinstance(yaml_value, dict):
        raise EntryError(f"{path or 'it'} must be a map with the fields {listed(allowed)}")
    for name in yaml_value:
        if name not in allowed:
            of_parent = f" of {path}" if path else ""
            raise EntryError(f"{shown(name)} is no field{of_parent}: known are {listed(allowed)}")
    return yaml_value


def required(fields: Fields, name: str, path: str) -> Any:
    """The field `name` of the map at `path`. Raises EntryError if it is missing."""
    if name not in fields:
        raise EntryError(f"{path}.{name} is missing")
    return fields[name]


def sequence(yaml_value: Any, path: str) -> Sequence[Any]:
    """`yaml_value`, which must be a list that is not empty. Raises EntryError."""
    if not isinstance(yaml_value, list) or not yaml_value:
        raise EntryError(f"{path} must be a list with at least one item")
    return yaml_value


def text(yaml_value: Any, path: str) -> str:
    """`yaml_value`, which must be a scalar. Raises EntryError."""
    if not isinstance(yaml_value, str):
        raise EntryError(f"{path} must be a single value, not a {'map' if isinstance(yaml_value, dict) else 'list'}")
    return yaml_value


def texts(yaml_value: Any, path: str) -> Mapping[str, str]:
    """`yaml_value`, which must be a map of scalars. Raises EntryError."""
    if not isinstance(yaml_value, dict):
        raise EntryError(f"{path} must be a map like {{queue: worker}}")
    return {name: text(scalar, f"{path}.{name}") for name, scalar in yaml_value.items()}


def quantity(yaml_value: Any, path: str) -> Quantity:
    """`yaml_value` as a quantity. Raises EntryError."""
    written = text(yaml_value, path)
    try:
        return Quantity.parse(written)
    except QuantityError as error:
        raise EntryError(f"{path}: {shown(written)} is not a quantity: {error}") from None


def span_ns(yaml_value: Any, path: str) -> int:
    """`yaml_value` as a duration in nanoseconds, not negative. Raises EntryError."""
    written = text(yaml_value, path)
    try:
        parsed_ns = duration.parse(written)
    except ValueError:
        parsed_ns = -1  # reported like a negative duration
    if parsed_ns < 0:
        raise EntryError(f"{path}: {shown(written)} is not a duration like 90s or 1h30m")
    return parsed_ns


def whole_seconds(yaml_value: Any, path: str) -> int:
    """`yaml_value` as a duration of whole seconds. Raises EntryError."""
    seconds, remainder_ns = divmod(span_ns(yaml_value, path), NANOSECONDS)
    if remainder_ns:
        raise EntryError(f"{path} must be whole seconds")
    return seconds


def instant_ns(yaml_value: Any, path: str) -> int:
    """`yaml_value` (RFC 3339) in nanoseconds since the epoch. Raises EntryError."""
    written = text(yaml_value, path)
    try:
        return instants.parse(written)
    except ValueError:
        raise EntryError(f"{path}: {shown(written)} is not a time like 2026-01-31T12:00:00Z") from None


def selector(yaml_value: Any, path: str) -> Selector:
    """`yaml_value` as a label selector; an empty text selects everything. Raises EntryError."""
    written = text(yaml_value, path)
    try:
        return selectors.parse(written)
    except SelectorError as error:
        raise EntryError(f"{path}: {shown(written)} is not a label selector: {error}") from None


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: `a, b and c`; at least one."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def shown(written: str) -> str:
    """A text of the user in quotes, cut to SHOWN_CHARACTERS."""
    cut = written if len(written) <= SHOWN_CHARACTERS else f"{written[:SHOWN_CHARACTERS]}..."
    return quoted(cut)
