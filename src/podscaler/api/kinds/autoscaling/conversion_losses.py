"""What one autoscaler says and another, made from it, no longer does.

Called by `conversion` with the stored form of an object before and after it went through another version. Both are
canonical, so that what is equal is written equally.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text

_METRIC_LISTS = (("spec", "metrics"), ("status", "currentMetrics"))


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that a conversion does not keep: the field (`spec.metrics[2]`) and why, or what becomes of it."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


def between(before: Object, after: Object, version: str) -> list[Loss]:
    """What `before` says and `after`, which came back from `version`, does not."""
    losses: list[Loss] = []
    for part, name in _METRIC_LISTS:
        old, new = {**before.get(part, {})}, {**after.get(part, {})}
        metrics, returned = (each.pop(name, None) or [] for each in (old, new))
        losses += _metric_losses(metrics, returned, f"{part}.{name}", version)
        losses += _differences(old, new, part, version)
    return losses


def _metric_losses(old: list[Object], new: list[Object], path: str, version: str) -> Iterator[Loss]:
    places = _places(old, new)
    for index, place in enumerate(places):
        if place is None:
            yield Loss(f"{path}[{index}]", f"{version} has no place for it")
        else:
            yield from _differences(old[index], new[place], f"{path}[{index}]", version)
    kept = [place for place in places if place is not None]
    if kept != sorted(kept):
        order = sorted((place, index) for index, place in enumerate(places) if place is not None)
        yield Loss(path, f"the order: what was {', '.join(f'[{index}]' for _, index in order)} now stands so")


def _places(old: list[Object], new: list[Object]) -> list[int | None]:
    """Where each old metric stands now: first those that are the same, then those of the same type, in order."""
    places: list[int | None] = [None] * len(old)
    free = set(range(len(new)))
    for likeness in (_text, _type):
        waiting: dict[str, list[int]] = defaultdict(list)
        for place in sorted(free, reverse=True):
            waiting[likeness(new[place])].append(place)
        for index, metric in enumerate(old):
            if places[index] is None and (found := waiting[likeness(metric)]):
                places[index] = found.pop()
        free -= {place for place in places if place is not None}
    return places


def _text(metric: Object) -> str:
    return json_text.encode(metric).decode()


def _type(metric: Object) -> str:
    return str(metric.get("type", ""))


def _differences(old: Any, new: Any, path: str, version: str) -> Iterator[Loss]:
    """Everything in `old` that is missing or different in `new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            yield from _differences(value, new.get(key), f"{path}.{key}", version)
    elif isinstance(old, list) and isinstance(new, list):
        for index, value in enumerate(old):
            yield from _differences(value, new[index] if index < len(new) else None, f"{path}[{index}]", version)
    elif new is None:
        if old is not None:
            yield Loss(path, f"{version} has no place for it")
    elif old != new:
        yield Loss(path, f"{_shown(old)} becomes {_shown(new)}")


def _shown(value: Any) -> str:
    return json_text.encode(value).decode()
