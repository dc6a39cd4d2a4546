"""The state of one decoding: the path to the value, the first type error, the unknown and duplicate fields.

Called by `decode_plan` (which walks) and `decoding` (which starts it and reads the outcome).

Rules, all Go's: the walk goes on after a type error, and the first one is reported; an error of a value's
own decoder (a quantity, a time) ends the walk and wins over type errors before it. Errors name the struct and the
fields on the way, problems also the indexes and keys.

Source: the behaviour of encoding/json and sigs.k8s.io/json, measured (tests/conformance/decoding.jsonl).
"""

from dataclasses import dataclass
from typing import Any

from podscaler.api.text import quoting
from podscaler.api.text.json_text import DecodeError, Number

MAX_PROBLEMS = 100
"""Upstream stops collecting here as well."""


@dataclass(frozen=True, slots=True)
class FieldLocation:
    """A field as errors name it: the Go struct that holds it, and its path from there (several names if inlined)."""

    struct: str
    path: tuple[str, ...]


Step = FieldLocation | int | str | None
"""On the way to a value: a field, the index in a list, the key in a map."""


class Run:
    """The state of one decoding. The last of `steps` belongs to the object that is being walked."""

    __slots__ = ("error", "problems", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.error = ""
        self.problems: dict[str, None] = {}

    def mismatch(self, value: Any, go_type: str, *, is_number: bool = False) -> None:
        """Note that `value` cannot become `go_type`; of a number, its literal is shown where a number was wanted."""
        if not self.error:
            self.error = self.described(f"json: cannot unmarshal {_kind(value, is_number=is_number)}", go_type)

    def fail(self, text: str) -> DecodeError:
        """The error of a value's own decoder, which ends the walk."""
        return DecodeError(text)

    def wrong_kind(self, value: Any, go_type: str, *, is_number: bool = False) -> DecodeError:
        """As `mismatch`, for a value's own decoder: ends the walk."""
        return DecodeError(self.described(f"json: cannot unmarshal {_kind(value, is_number=is_number)}", go_type))

    def described(self, beginning: str, go_type: str) -> str:
        """`<beginning> into Go struct field PodSpec.spec.nodeName of type string`."""
        places = [step for step in self.steps if isinstance(step, FieldLocation)]
        if not places:
            return f"{beginning} into Go value of type {go_type}"
        path = ".".join(name for place in places for name in place.path)
        return f"{beginning} into Go struct field {places[-1].struct}.{path} of type {go_type}"

    def unknown(self, key: str) -> None:
        """Note a field that the message does not have."""
        self._problem("unknown field", key)

    def duplicate(self, key: str) -> None:
        """Note a field that stands a second time."""
        self._problem("duplicate field", key)

    def _problem(self, kind: str, key: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems[f"{kind} {quoting.quoted(self._path(key))}"] = None

    def _path(self, key: str) -> str:
        path = ""
        for step in self.steps[:-1]:
            if isinstance(step, int):
                path += f"[{step}]"
            elif step is not None:
                name = step.path[-1] if isinstance(step, FieldLocation) else step
                path += f".{name}" if path else name
        return f"{path}.{key}" if path else key


def _kind(value: Any, *, is_number: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {literal(value)}" if is_number else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def literal(number: float) -> str:
    """A number as it was written."""
    return number.text if isinstance(number, Number) else str(number)
