"""Applies assignments such as `minReplicas=3,metrics[0].target=60%` to the spec and the settings of an autoscaler.

`podscaler explain --what-if` and `podscaler.observe.what_if` parse assignments with `parse`; `decide_again` applies
them with `apply`. The result has no error of the API's validation that the spec did not have before.

Source: autoscaling/v2 (docs/spec/api.md 1 (Types), 2 (Validation)); kube-controller-manager's flags.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from podscaler.api.kinds.autoscaling import hpa_validation
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.core.model import settings
from podscaler.core.model.settings import GATE_NAMES, Settings
from podscaler.explain import what_if_fields
from podscaler.explain.what_if_fields import Object

FLAG_PREFIX = "horizontal-pod-autoscaler-"
FLAGS = {
    "tolerance": "tolerance",
    "downscale-stabilization": "downscale_stabilization_ns",
    "cpu-initialization-period": "cpu_initialization_period_ns",
    "initial-readiness-delay": "initial_readiness_delay_ns",
}
"""Flags by their names without prefix, and the fields of Settings."""

_PATHS = (*what_if_fields.PATHS, *FLAGS, *GATE_NAMES)
"""One example of each path that can be assigned; a new flag: an entry of FLAGS."""


class Assignment(NamedTuple):
    """One assignment, as written: the path of a field or a flag, and its new value."""

    path: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}={self.value}"


def parse(text: str) -> tuple[Assignment, ...]:
    """The assignments of `a=1,b.c=2`. Raises UsageError for an empty text, and for a part without `=`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise UsageError("what-if needs assignments such as minReplicas=3,metrics[0].target=60%")
    return tuple(_parse_assignment(part) for part in parts)


def _parse_assignment(part: str) -> Assignment:
    path, equals, value = (side.strip() for side in part.partition("="))
    if not equals or not path or not value:
        raise UsageError(f'what-if "{part}" is not an assignment such as minReplicas=3')
    return Assignment(path.removeprefix("spec."), value)


def apply(
    assignments: Sequence[Assignment], spec: HorizontalPodAutoscalerSpec, flags: Settings
) -> tuple[HorizontalPodAutoscalerSpec, Settings]:
    """The spec and the settings with all assignments, in order.

    Raises UsageError naming an invalid assignment with a suggestion, or the errors of the API's validation.
    """
    before, after = _as_json(spec), _as_json(spec)
    for assignment in assignments:
        changed_flags = _changed_flags(assignment, flags)
        if changed_flags is None:
            _assign(assignment, after)
        else:
            flags = changed_flags
    _validate(before, what_if_fields.set_defaults(after), assignments)
    return msgspec.convert(after, HorizontalPodAutoscalerSpec), flags


def _as_json(spec: HorizontalPodAutoscalerSpec) -> Object:
    copy: Object = msgspec.json.decode(msgspec.json.encode(spec))
    return what_if_fields.set_defaults(copy)


def _validate(before: Object, after: Object, assignments: Sequence[Assignment]) -> None:
    """Raise UsageError for errors of validation that the spec did not have before."""
    errors_before, errors_after = (
        [str(error) for error in hpa_validation.validate({"spec": spec}, None)] for spec in (before, after)
    )
    new_errors = [error for error in errors_after if error not in errors_before]
    if new_errors:
        shown = ",".join(str(assignment) for assignment in assignments)
        raise UsageError(f"what-if {shown} would be refused: {'; '.join(new_errors)}")


def _changed_flags(assignment: Assignment, flags: Settings) -> Settings | None:
    """The settings with a flag or a gate assigned; None if it is neither. Raises UsageError for an invalid value."""
    name, value = assignment.path.removeprefix(FLAG_PREFIX), assignment.value
    try:
        if name in FLAGS:
            text = what_if_fields.ratio_text(value) if name == "tolerance" else value
            parsed = settings.from_flags({f"{FLAG_PREFIX}{name}": text})
            return msgspec.structs.replace(flags, **{FLAGS[name]: getattr(parsed, FLAGS[name])})
        if name in GATE_NAMES:
            field = GATE_NAMES[name]
            parsed = settings.from_flags({"feature-gates": str(assignment)})
            gates = msgspec.structs.replace(flags.gates, **{field: getattr(parsed.gates, field)})
            return msgspec.structs.replace(flags, gates=gates)
    except ValueError as error:
        raise UsageError(f"what-if {assignment}: {error}") from None
    return None


def _assign(assignment: Assignment, spec: Object) -> None:
    """Set one path of the spec. Raises UsageError with what can be set."""
    try:
        is_known = what_if_fields.assign(spec, assignment.path, assignment.value)
    except ValueError as error:
        raise UsageError(f"what-if {assignment}: {error}") from None
    if not is_known:
        raise UsageError(f"what-if {assignment}: {assignment.path} cannot be assigned; {_suggestion(assignment.path)}")


def _suggestion(path: str) -> str:
    close = get_close_matches(re.sub(r"\[\d+]", "[0]", path), _PATHS, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"what can be: {', '.join(each for each in _PATHS if 'scaleUp' not in each)}, and scaleUp as scaleDown"
