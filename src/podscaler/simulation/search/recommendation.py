"""Formats a recommended spec for people and for kubectl: what changes and why, and the manifest.

Called by `podscaler tune` with the result of a search.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podscaler.api.typed.autoscaling import (
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HPAScalingRules,
)
from podscaler.simulation.search.scores import MEASURES, Scores, text, value


def manifest(namespace: str, name: str, spec: HorizontalPodAutoscalerSpec) -> dict[str, Any]:
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
        return f"{self.path}: {_field_text(self.before)} -> {_field_text(self.after)}"


def _field_text(field: Any) -> str:
    return "unset" if field is None else msgspec.json.encode(field).decode()


def changes(before: HorizontalPodAutoscalerSpec, after: HorizontalPodAutoscalerSpec) -> tuple[FieldChange, ...]:
    """The fields that differ, in the order of their paths; the policies of a direction are one field."""
    old, new = dict(_fields(msgspec.to_builtins(before))), dict(_fields(msgspec.to_builtins(after)))
    paths = dict.fromkeys([*old, *new])
    return tuple([FieldChange(path, old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path)])


def _fields(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The paths and values of a spec; the policies are one value."""
    if isinstance(part, Mapping):
        for key, member in part.items():
            yield from _fields(member, f"{path}.{key}" if path else key)
    elif isinstance(part, list | tuple) and not path.endswith("policies"):
        for index, member in enumerate(part):
            yield from _fields(member, f"{path}[{index}]")
    else:
        yield path, part


def undone(
    group: str, before: HorizontalPodAutoscalerSpec, after: HorizontalPodAutoscalerSpec
) -> HorizontalPodAutoscalerSpec | None:
    """`after` with one of GROUPS as it was before; None if that group is the same in both.

    The difference of the scores of `after` and of the result says what the group does.
    """
    restored = GROUPS[group](before, after)
    return None if restored is None or _without_empty(restored) == _without_empty(after) else _without_empty(restored)


def _without_empty(spec: HorizontalPodAutoscalerSpec) -> HorizontalPodAutoscalerSpec:
    """The spec without rules that state nothing."""
    if spec.behavior is None:
        return spec
    rules = (spec.behavior.scale_up, spec.behavior.scale_down)
    up, down = (None if rule == HPAScalingRules() else rule for rule in rules)
    behavior = None if up is None and down is None else HorizontalPodAutoscalerBehavior(scale_up=up, scale_down=down)
    return msgspec.structs.replace(spec, behavior=behavior)


_Undo = Callable[[HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerSpec], HorizontalPodAutoscalerSpec | None]


def _undo_field(field: str) -> _Undo:
    return lambda before, after: msgspec.structs.replace(after, **{field: getattr(before, field)})


def _undo_rule(direction: str, fields: Sequence[str]) -> _Undo:
    """Makes the function that sets fields of a direction's rules back to the present spec."""

    def undo(
        before: HorizontalPodAutoscalerSpec, after: HorizontalPodAutoscalerSpec
    ) -> HorizontalPodAutoscalerSpec | None:
        if after.behavior is None or (rules := getattr(after.behavior, direction)) is None:
            return None
        earlier = getattr(before.behavior, direction) if before.behavior is not None else None
        restored = msgspec.structs.replace(
            rules, **{field: None if earlier is None else getattr(earlier, field) for field in fields}
        )
        behavior = msgspec.structs.replace(after.behavior, **{direction: restored})
        return msgspec.structs.replace(after, behavior=behavior)

    return undo


GROUPS: Mapping[str, _Undo] = {
    "minReplicas": _undo_field("min_replicas"),
    "maxReplicas": _undo_field("max_replicas"),
    "metrics": _undo_field("metrics"),
    **{
        f"behavior.{words}.{part}": _undo_rule(direction, fields)
        for direction, words in (("scale_up", "scaleUp"), ("scale_down", "scaleDown"))
        for part, fields in (
            ("stabilizationWindowSeconds", ("stabilization_window_seconds",)),
            ("policies", ("policies", "select_policy")),
            ("tolerance", ("tolerance",)),
        )
    },
}
"""Groups of fields that belong together, by their paths, and how to undo their changes."""


def effect(group: str, with_change: Scores, without: Scores, measures: Sequence[str]) -> str:
    """One sentence on what a group of changes does: the measures with and without it."""
    parts = [
        f"{measure} {text(with_change, measure)} instead of {text(without, measure)}"
        for measure in measures
        if abs(value(with_change, measure) - value(without, measure)) > 0.005 * max(value(without, measure), 0.01)
    ]
    return f"{group}: {', '.join(parts)}" if parts else f"{group}: makes no difference on this load"


def all_measures(first: Sequence[str]) -> tuple[str, ...]:
    """All measures, those of the goals first."""
    return tuple(dict.fromkeys([*first, *MEASURES]))
