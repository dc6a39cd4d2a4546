"""Texts of the cells in `kubectl get` tables: ages, labels, truncated lists.

    elapsed(330)                         "5m30s"
    labels({"app": "web"})               "app=web"
    cut_short(["a", "b", "c"], 2)        "a,b + 1 more..."

Called by the printers in `podscaler.api.kinds`. `now_ns` is the present time, in nanoseconds since the epoch.

Source: docs/spec/api.md 7.2 (Elapsed time); the tables of kube-apiserver (golden captures).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podscaler.api.machinery import instants

NONE = "<none>"
UNKNOWN = "<unknown>"

_NS = 1_000_000_000


def age(created: str | None, now_ns: int) -> str:
    """The time since `created` (RFC 3339), as kubectl shows it; `<unknown>` where `created` is None or empty."""
    if not created:
        return UNKNOWN
    elapsed_ns = now_ns - instants.parse(created)
    whole_s = abs(elapsed_ns) // _NS
    return elapsed(whole_s if elapsed_ns >= 0 else -whole_s)


def elapsed(seconds: int) -> str:
    """A span in whole seconds as kubectl shows it: `75s`, `5m30s`, `3h`, `2d4h`, `3y12d`."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes, rest_s = divmod(seconds, 60)
    if minutes < 180:
        return _two(minutes, "m", rest_s if minutes < 10 else 0, "s")
    hours, rest_min = divmod(minutes, 60)
    if hours < 48:
        return _two(hours, "h", rest_min if hours < 8 else 0, "m")
    days, rest_h = divmod(hours, 24)
    if hours < 17_520:
        return _two(days, "d", rest_h if hours < 192 else 0, "h")
    years, rest_d = divmod(days, 365)
    return _two(years, "y", rest_d if hours < 70_080 else 0, "d")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    """`5m30s`, or `5m` where the smaller number is 0."""
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def labels(pairs: Mapping[str, str] | None) -> str:
    """A map of labels as `a=1,b=2`, sorted; `<none>` when empty."""
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs)) if pairs else NONE


def containers(pod_spec: Mapping[str, Any]) -> tuple[str, str]:
    """The names and the images of a pod template's containers, each joined by commas."""
    pod_containers = pod_spec.get("containers") or []
    return ",".join(container.get("name", "") for container in pod_containers), ",".join(
        container.get("image", "") for container in pod_containers
    )


def cut_short(items: Iterable[str], most: int) -> str:
    """At most `most` items joined by commas, then how many more there are; `<unset>` without items."""
    all_items = list(items)
    text = ",".join(all_items[:most])
    if len(all_items) > most:
        return f"{text} + {len(all_items) - most} more..."
    return text or "<unset>"


def created_age(obj: Mapping[str, Any], now_ns: int) -> str:
    """The age of an object by its creationTimestamp."""
    return age((obj.get("metadata") or {}).get("creationTimestamp"), now_ns)


def or_none(texts: Sequence[str]) -> str:
    """The texts joined by commas; `<none>` without texts."""
    return ",".join(texts) or NONE
