"""The state of decoding one object: the path to the current value, the first type error, unknown and duplicate fields.

`decoding` makes one for each object; the decoders of `decode_plan` and `decode_values` change it.

Rules, all Go's: decoding continues after a type error, and the first one is reported; an error of a quantity, time or
other value with a decoder of its own ends the decoding, and replaces earlier type errors. Type errors name the Go
struct and the path of fields; problems (unknown and duplicate fields) name also indexes and keys.

Source: the behaviour of encoding/json and sigs.k8s.io/json, measured (tests/conformance/decoding.jsonl).
"""

from dataclasses import dataclass
from typing import Any

from podscaler.api.text import quoting
from podscaler.api.text.json_text import DecodeError, Number

_MAX_PROBLEMS = 100
"""The number of unknown and duplicate fields that are reported, as in Go."""


@dataclass(frozen=True, slots=True)
class FieldLocation:
    """A field as errors name it.

    Attributes:
        struct: the Go struct that has the field: `PodSpec`.
        path: the names from there to the field, several for a field of an inlined struct.
    """

    struct: str
    path: tuple[str, ...]


Step = FieldLocation | int | str | None
"""One step of the path to a value: a field, the index in a list, the key in a map; None: not known yet."""


class DecodeState:
    """The state of decoding one object.

    Attributes:
        steps: the path to the current value; the last step is that of the object or list being decoded.
        error: the first type error; empty without one.
        problems: the unknown and duplicate fields, in order: `unknown field "spec.foo"`; the values are None.
    """

    __slots__ = ("error", "problems", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.error = ""
        self.problems: dict[str, None] = {}

    def record_mismatch(self, value: Any, go_type: str, *, is_number: bool = False) -> None:
        """Record the type error that `value` cannot become `go_type`; `is_number`: whether that is a number."""
        if not self.error:  # the first type error counts
            self.error = self._mismatch_message(value, go_type, is_number=is_number)

    def mismatch_error(self, value: Any, go_type: str, *, is_number: bool = False) -> DecodeError:
        """As `record_mismatch`, but returns the error, which the decoder of a quantity, time, ... raises."""
        return DecodeError(self._mismatch_message(value, go_type, is_number=is_number))

    def _mismatch_message(self, value: Any, go_type: str, *, is_number: bool) -> str:
        """`json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string`."""
        beginning = f"json: cannot unmarshal {_json_type(value, is_number=is_number)}"
        locations = [step for step in self.steps if isinstance(step, FieldLocation)]
        if not locations:
            return f"{beginning} into Go value of type {go_type}"
        path = ".".join(name for location in locations for name in location.path)
        return f"{beginning} into Go struct field {locations[-1].struct}.{path} of type {go_type}"

    def record_unknown(self, key: str) -> None:
        """Record the problem that the message has no field `key`."""
        self._record_problem("unknown field", key)

    def record_duplicate(self, key: str) -> None:
        """Record the problem that the field or key `key` is repeated."""
        self._record_problem("duplicate field", key)

    def _record_problem(self, problem: str, key: str) -> None:
        """Records a problem with the field `key` of the current object, if there are not too many yet."""
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems[f"{problem} {quoting.quoted(self._path_of_field(key))}"] = None

    def _path_of_field(self, key: str) -> str:
        """The path of a field of the current object, as Go's messages print it: `spec.containers[0].name`."""
        path = ""
        for step in self.steps[:-1]:  # `key` stands for the last step
            if isinstance(step, int):
                path += f"[{step}]"
            elif step is not None:
                name = step.path[-1] if isinstance(step, FieldLocation) else step
                path += f".{name}" if path else name
        return f"{path}.{key}" if path else key


def _json_type(value: Any, *, is_number: bool) -> str:
    """Go's name of the JSON type of a value; with the literal of a number where a number is expected."""
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
