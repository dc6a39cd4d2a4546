"""Writing an autoscaler's status: only when it says something new, and always as the whole object.

The reconciler calls `is_same` with what the autoscaler had, and `write` where that is not so.

Source: decision.md 11.2.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podscaler.api import instants, quantity
from podscaler.api.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from podscaler.kube import urls
from podscaler.kube.client import Client

QUANTITIES = frozenset({"value", "averageValue"})
TIMES = frozenset({"lastTransitionTime"})
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
        old == new or _means(msgspec.to_builtins(old)) == _means(msgspec.to_builtins(new))
        for old, new in zip(before, after, strict=True)
    )


def _means(value: Any, name: str = "") -> Any:
    """A form of JSON-ready data that is equal where the meaning is."""
    if isinstance(value, dict):
        return {key: meaning for key in value if (meaning := _means(value[key], key)) not in ({}, [], None)}
    if isinstance(value, list | tuple):
        return [_means(item) for item in value]
    if isinstance(value, str) and name in QUANTITIES:
        return quantity.parse(value)
    if isinstance(value, str) and name in TIMES:
        return instants.parse(value)
    return value


async def write(client: Client, autoscaler: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus) -> str:
    """Put `status`; the resourceVersion that the object then has.

    The body is the whole object with the resourceVersion that was read, so that a newer object refuses it. Raises
    StatusError.
    """
    meta = autoscaler.metadata
    body = msgspec.structs.replace(
        autoscaler, kind="HorizontalPodAutoscaler", api_version="autoscaling/v2", status=status
    )
    path = urls.group_version("autoscaling", "v2") + urls.path(
        "namespaces", meta.namespace, "horizontalpodautoscalers", meta.name, "status"
    )
    subject = f"horizontalpodautoscalers.autoscaling {meta.name}"
    answer = await client.put(path, _ENCODER.encode(body), subject=subject)
    try:
        return _WRITTEN.decode(answer).metadata.resource_version
    except msgspec.DecodeError:
        return ""
