"""Texts of the cells in `kubectl get` tables: ages, labels, truncated lists.

    elapsed(330)                         "5m30s"
    labels({"app": "web"})               "app=web"
    cut_short(["a", "b", "c"], 2)        "a,b + 1 more..."

Called by the printers in `podscaler.api`, and by `podscaler.cli.diagnosis.list_autoscalers`. `now_ns` is the present
time, in nanoseconds since the epoch.

Source: docs/spec/api.md 7.2 (Elapsed time); the tables of kube-apiserver (golden captures).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podscaler.api.machinery import instants

NONE = "<none>"
UNKNOWN = "<unknown>"
"""The cells for an empty value, and for a time that is not known."""

_SECOND_NS = 1_000_000_000
_DAY_H = 24
_YEAR_D = 365
_YEAR_H = _YEAR_D * _DAY_H


def age(created: str | None, now_ns: int) -> str:
    """The time since `created` (RFC 3339), as kubectl shows it; `<unknown>` for None or empty. Raises ValueError."""
    if not created:
        return UNKNOWN
    elapsed_ns = now_ns - instants.parse(created)
    whole_s = abs(elapsed_ns) // _SECOND_NS
    return elapsed(whole_s if elapsed_ns >= 0 else -whole_s)  # truncated toward zero, as in Go


def elapsed(seconds: int) -> str:
    """A span in whole seconds as kubectl shows it: `75s`, `5m30s`, `3h`, `2d4h`, `3y12d`.

    The longer the span, the fewer smaller units are shown; the bounds are those of kubectl.
    """
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:  # clocks differ by a second
        return "0s"
    if seconds < 120:  # two minutes
        return f"{seconds}s"
    minutes, left_s = divmod(seconds, 60)
    if minutes < 180:  # three hours
        return _two_units(minutes, "m", left_s if minutes < 10 else 0, "s")
    hours, left_min = divmod(minutes, 60)
    if hours < 2 * _DAY_H:
        return _two_units(hours, "h", left_min if hours < 8 else 0, "m")
    days, left_h = divmod(hours, _DAY_H)
    if hours < 2 * _YEAR_H:
        return _two_units(days, "d", left_h if days < 8 else 0, "h")
    years, left_d = divmod(days, _YEAR_D)
    return _two_units(years, "y", left_d if years < 8 else 0, "d")


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    """`5m30s`, or `5m` where the smaller number is 0."""
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def labels(pairs: Mapping[str, str] | None) -> str:
    """A map of labels as `a=1,b=2`, sorted; `<none>` when empty."""
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs)) if pairs else NONE


def containers(pod_spec: Mapping[str, Any]) -> tuple[str, str]:
    """The names and the images of a pod template's containers, each joined by commas."""
    pod_containers = pod_spec.get("containers") or []
    names = ",".join(container.get("name", "") for container in pod_containers)
    images = ",".join(container.get("image", "") for container in pod_containers)
    return names, images


def cut_short(items: Iterable[str], max_items: int) -> str:
    """At most `max_items` items joined by commas, then how many more there are; `<unset>` without items."""
    all_items = list(items)
    shown_text = ",".join(all_items[:max_items])
    if len(all_items) > max_items:
        return f"{shown_text} + {len(all_items) - max_items} more..."
    return shown_text or "<unset>"


def created_age(obj: Mapping[str, Any], now_ns: int) -> str:
    """The age of an object by its creationTimestamp, as `age`. Raises ValueError."""
    return age((obj.get("metadata") or {}).get("creationTimestamp"), now_ns)


def or_none(texts: Sequence[str]) -> str:
    """The texts joined by commas; `<none>` without texts."""
    return ",".join(texts) or NONE
