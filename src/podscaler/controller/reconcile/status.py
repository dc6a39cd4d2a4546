"""Writing an autoscaler's status: only when it says something new, and always as the whole object.

The reconciler calls `is_same` with what the autoscaler had, and `write` where that is not so.

Source: docs/spec/decision.md 11.2 (Writing).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podscaler.api.machinery import instants, quantity
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.kube.client.client import Client

QUANTITIES = frozenset({"value", "averageValue"})
TIMES = frozenset({"lastTransitionTime"})
NOTHING: tuple[Any, ...] = ({}, [], (), None)
_ENCODER = msgspec.json.Encoder()


class _WrittenMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _WrittenMeta


_WRITTEN = msgspec.json.Decoder(_Written)


def is_same(before: HorizontalPodAutoscalerStatus, after: HorizontalPodAutoscalerStatus) -> bool:
    """Whether two statuses mean the same: quantities by value, times as instants, nothing as an empty list or map."""
    return before == after or (
        before.current_replicas == after.current_replicas
        and before.desired_replicas == after.desired_replicas
        and before.observed_generation == after.observed_generation
        and instants.parse_optional(before.last_scale_time) == instants.parse_optional(after.last_scale_time)
        and _are_same(before.current_metrics, after.current_metrics)
        and _are_same(before.conditions, after.conditions)
    )


def differs_in_values(before: HorizontalPodAutoscalerStatus, after: HorizontalPodAutoscalerStatus) -> bool:
    """Whether two statuses that are not the same differ in the values of metrics alone: same metrics, all else same."""
    old, new = before.current_metrics or (), after.current_metrics or ()
    return list(map(_subject, old)) == list(map(_subject, new)) and is_same(
        msgspec.structs.replace(before, current_metrics=None), msgspec.structs.replace(after, current_metrics=None)
    )


def _subject(metric: Any) -> Any:
    """What a metric's status is about: all of it but the values, by the order in which their names stand."""
    parts = msgspec.to_builtins(metric)
    return {
        name: {each: value for each, value in part.items() if each != "current"} | {"has": sorted(part["current"])}
        if isinstance(part, dict) and "current" in part
        else part
        for name, part in parts.items()
    }


def _are_same(before: Sequence[Any] | None, after: Sequence[Any] | None) -> bool:
    before, after = before or (), after or ()
    return len(before) == len(after) and all(
        old == new or _mean_the_same(msgspec.to_builtins(old), msgspec.to_builtins(new))
        for old, new in zip(before, after, strict=True)
    )


def _mean_the_same(old: Any, new: Any, name: str = "") -> bool:
    """Whether two pieces of JSON-ready data mean the same; ends at the first difference, which most syncs have."""
    if old == new or (old in NOTHING and new in NOTHING):
        return True
    if isinstance(old, dict | None) and isinstance(new, dict | None):
        old, new = old or {}, new or {}
        return all(_mean_the_same(old.get(key), new.get(key), key) for key in old.keys() | new.keys())
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(_mean_the_same, old, new))
    if isinstance(old, str) and isinstance(new, str) and name in QUANTITIES:
        return quantity.parse(old) == quantity.parse(new)
    if isinstance(old, str) and isinstance(new, str) and name in TIMES:
        return instants.parse(old) == instants.parse(new)
    return False


async def write(client: Client, autoscaler: Autoscaler, status: HorizontalPodAutoscalerStatus) -> str:
    """Put `status`; the resourceVersion that the object then has.

    The body is the whole object with the resourceVersion that was read, so that a newer object refuses it. Raises
    StatusError.
    """
    meta, kind = autoscaler.metadata, autoscaler.kind
    body = msgspec.structs.replace(autoscaler.wire, kind=kind.kind, api_version=kind.api_version, status=status)
    path = kind.path(meta.namespace, meta.name, "status")
    answer = await client.put(path, _ENCODER.encode(body), subject=f"{kind.resource} {meta.name}")
    try:
        return _WRITTEN.decode(answer).metadata.resource_version
    except msgspec.DecodeError:
        return ""
