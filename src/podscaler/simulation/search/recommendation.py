"""Formats a recommended spec for people and for kubectl: what changes and why, and the manifest.

Called by `podscaler tune` with the result of a search; `search` undoes changes by GROUPS. A new field that is tuned:
its group there, and its dimension in `space`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerBehavior, HPAScalingRules
from podscaler.simulation.search.scores import MEASURES, Scores, score_text, score_value
from podscaler.simulation.search.space import WireSpec


def manifest(namespace: str, name: str, spec: WireSpec) -> dict[str, Any]:
    """The autoscaler in autoscaling/v2, for `kubectl apply` (also `--server-side`): only metadata and spec."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": msgspec.to_builtins(spec),
    }


class FieldChange(msgspec.Struct, frozen=True):
    """A field that differs: its path in the spec, and both values as JSON; None if it is not set."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {_json_text(self.before)} -> {_json_text(self.after)}"


def _json_text(field_value: Any) -> str:
    return "unset" if field_value is None else msgspec.json.encode(field_value).decode()


def changes(present_spec: WireSpec, changed_spec: WireSpec) -> tuple[FieldChange, ...]:
    """The fields that differ, in the order of their paths; the policies of a direction are one field."""
    present_values, changed_values = [
        dict(_flatten(msgspec.to_builtins(spec))) for spec in (present_spec, changed_spec)
    ]
    paths = dict.fromkeys([*present_values, *changed_values])
    return tuple(
        [
            FieldChange(path, present_values.get(path), changed_values.get(path))
            for path in paths
            if present_values.get(path) != changed_values.get(path)
        ]
    )


def _flatten(spec_part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The paths and values of a spec; the policies are one value."""
    if isinstance(spec_part, Mapping):
        for key, member in spec_part.items():
            yield from _flatten(member, f"{path}.{key}" if path else key)
    elif isinstance(spec_part, list | tuple) and not path.endswith("policies"):
        for index, member in enumerate(spec_part):
            yield from _flatten(member, f"{path}[{index}]")
    else:
        yield path, spec_part


def undo_group(group: str, present_spec: WireSpec, changed_spec: WireSpec) -> WireSpec | None:
    """The changed spec with one of GROUPS as in the present spec; None if that group is the same in both.

    The difference of the scores of the changed spec and of the result is the effect of the group.
    """
    restored_spec = GROUPS[group](present_spec, changed_spec)
    if restored_spec is None or _without_empty_rules(restored_spec) == _without_empty_rules(changed_spec):
        return None
    return _without_empty_rules(restored_spec)


def _without_empty_rules(spec: WireSpec) -> WireSpec:
    """The spec without rules that state nothing."""
    if spec.behavior is None:
        return spec
    rules = (spec.behavior.scale_up, spec.behavior.scale_down)
    up, down = (None if rule == HPAScalingRules() else rule for rule in rules)
    behavior = None if up is None and down is None else HorizontalPodAutoscalerBehavior(scale_up=up, scale_down=down)
    return msgspec.structs.replace(spec, behavior=behavior)


_DIFFERENCE_MIN_SHARE = 0.005
_COMPARED_VALUE_MIN = 0.01

_Undo = Callable[[WireSpec, WireSpec], WireSpec | None]
"""Returns the changed spec (the second one) with fields of the present spec; None if it has no such fields."""


def _undo_field(field: str) -> _Undo:
    """Makes the function that sets a field back to the present spec."""
    return lambda present_spec, changed_spec: msgspec.structs.replace(
        changed_spec, **{field: getattr(present_spec, field)}
    )


def _undo_rule(direction: str, fields: Sequence[str]) -> _Undo:
    """Makes the function that sets fields of a direction's rules back to the present spec."""

    def undo(present_spec: WireSpec, changed_spec: WireSpec) -> WireSpec | None:
        if changed_spec.behavior is None or (rules := getattr(changed_spec.behavior, direction)) is None:
            return None
        present_rules = getattr(present_spec.behavior, direction) if present_spec.behavior is not None else None
        restored_rules = msgspec.structs.replace(
            rules, **{field: None if present_rules is None else getattr(present_rules, field) for field in fields}
        )
        behavior = msgspec.structs.replace(changed_spec.behavior, **{direction: restored_rules})
        return msgspec.structs.replace(changed_spec, behavior=behavior)

    return undo


GROUPS: Mapping[str, _Undo] = {
    "minReplicas": _undo_field("min_replicas"),
    "maxReplicas": _undo_field("max_replicas"),
    "metrics": _undo_field("metrics"),
    **{
        f"behavior.{json_direction}.{json_field}": _undo_rule(direction, fields)
        for direction, json_direction in (("scale_up", "scaleUp"), ("scale_down", "scaleDown"))
        for json_field, fields in (
            ("stabilizationWindowSeconds", ("stabilization_window_seconds",)),
            ("policies", ("policies", "select_policy")),
            ("tolerance", ("tolerance",)),
        )
    },
}
"""Groups of fields that belong together, by their paths, and how to undo their changes."""


def effect(group: str, with_change: Scores, without_change: Scores, measures: Sequence[str]) -> str:
    """One sentence on the effect of a group of changes: the measures with and without it."""
    differences = [
        f"{measure} {score_text(with_change, measure)} instead of {score_text(without_change, measure)}"
        for measure in measures
        if _differs(score_value(with_change, measure), score_value(without_change, measure))
    ]
    return f"{group}: {', '.join(differences)}" if differences else f"{group}: makes no difference on this load"


def _differs(with_change: float, without_change: float) -> bool:
    """Whether a measure differs by more than half a percent, and so by more than its text rounds away."""
    return abs(with_change - without_change) > _DIFFERENCE_MIN_SHARE * max(without_change, _COMPARED_VALUE_MIN)


def all_measures(first: Sequence[str]) -> tuple[str, ...]:
    """All measures, those of the goals first."""
    return tuple(dict.fromkeys([*first, *MEASURES]))
