"""Writes the status of an autoscaler, only when it differs from the stored one, and always with the whole object.

`podscaler.controller.reconcile.reconcile` calls `StatusWriter.write` at the end of a sync that it carries out, and
`is_same` to tell whether a sync would change anything. Statuses are compared by meaning: the quantities `1000m` and
`1` are equal. A new field of the status: a comparison in `is_same`; a quantity or a time inside of a metric or
a condition: a name in QUANTITY_FIELDS or TIME_FIELDS.

Source: docs/spec/decision.md 11.2 (Writing).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podscaler.api.machinery import instants, quantity
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.controller.informers.consistency import WrittenVersion
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.reconcile.autoscaler_state import AutoscalerState
from podscaler.kube.client.client import Client

QUANTITY_FIELDS = frozenset({"value", "averageValue"})
TIME_FIELDS = frozenset({"lastTransitionTime"})
ABSENT_OR_EMPTY: tuple[Any, ...] = ({}, [], (), None)
"""Values that count as equal, as JSON output leaves out empty fields."""
_ENCODER = msgspec.json.Encoder()


class _WrittenMeta(msgspec.Struct, rename="camel"):
    """The field of the metadata that is read."""

    resource_version: str = ""


class _WriteResponse(msgspec.Struct):
    """The response to a write of the status, of which only the new resourceVersion is read."""

    metadata: _WrittenMeta


_RESPONSE_DECODER = msgspec.json.Decoder(_WriteResponse)


class StatusWriter:
    """Writes the statuses of autoscalers.

    Args:
        client: sends the writes.
        clock: tells when the period has passed.
        period_s: the shortest time between two writes of a status in which only values of metrics changed; 0: none.
    """

    def __init__(self, client: Client, clock: Clock, period_s: float) -> None:
        self._client = client
        self._clock = clock
        self._period_s = period_s

    async def write(
        self, autoscaler: Autoscaler, latest: HorizontalPodAutoscalerStatus, state: AutoscalerState
    ) -> StatusError | None:
        """Write the status `latest` if it differs from the stored one; returns the error of a failed write, or None.

        The result is noted in `state`. A status that differs in values of metrics alone may wait for a later sync.
        """
        if is_same(autoscaler.wire.status, latest) or self._can_wait(autoscaler, latest, state):
            return None
        try:
            version = await put_status(self._client, autoscaler, latest)
        except StatusError as error:
            state.note_failed_write(error)
            return error
        written_version = WrittenVersion(autoscaler.metadata.uid, version)
        state.note_status_write(written_version, self._clock.monotonic_s(), self._period_s)
        return None

    def _can_wait(self, autoscaler: Autoscaler, latest: HorizontalPodAutoscalerStatus, state: AutoscalerState) -> bool:
        """Whether only values of metrics changed, and the status was written less than a status period ago."""
        period_start_s = state.status_period_start_s
        if period_start_s is None or self._clock.monotonic_s() - period_start_s >= self._period_s:
            return False  # without a status period there never is a start
        return differs_in_metric_values(autoscaler.wire.status, latest)


def is_same(old: HorizontalPodAutoscalerStatus, new: HorizontalPodAutoscalerStatus) -> bool:
    """Whether two statuses are equal: quantities by value, times as instants, an absent list as an empty one."""
    return old == new or (
        old.current_replicas == new.current_replicas
        and old.desired_replicas == new.desired_replicas
        and old.observed_generation == new.observed_generation
        and instants.parse_optional(old.last_scale_time) == instants.parse_optional(new.last_scale_time)
        and _are_same_lists(old.current_metrics, new.current_metrics)
        and _are_same_lists(old.conditions, new.conditions)
    )


def differs_in_metric_values(old: HorizontalPodAutoscalerStatus, new: HorizontalPodAutoscalerStatus) -> bool:
    """Whether two statuses that are not equal differ in the values of metrics alone."""
    old_metrics = [_without_values(metric) for metric in old.current_metrics or ()]
    new_metrics = [_without_values(metric) for metric in new.current_metrics or ()]
    return old_metrics == new_metrics and is_same(
        msgspec.structs.replace(old, current_metrics=None), msgspec.structs.replace(new, current_metrics=None)
    )


def _without_values(metric_status: Any) -> dict[str, Any]:
    """The status of a metric with the names of its values (`averageUtilization`) in place of the values.

    The names stay, so that a value that appears or disappears is a difference.
    """
    fields: dict[str, Any] = msgspec.to_builtins(metric_status)
    for name, field in fields.items():
        if isinstance(field, dict) and "current" in field:  # one of `resource`, `pods`, ...; `type` is a string
            fields[name] = field | {"current": sorted(field["current"])}
    return fields


def _are_same_lists(old_list: Sequence[Any] | None, new_list: Sequence[Any] | None) -> bool:
    """Whether two lists (None: absent) of metrics or conditions are equal as in `is_same`."""
    old_list, new_list = old_list or (), new_list or ()
    return len(old_list) == len(new_list) and all(
        old == new or _are_same_json(msgspec.to_builtins(old), msgspec.to_builtins(new))
        for old, new in zip(old_list, new_list, strict=True)
    )


def _are_same_json(old: Any, new: Any, name: str = "") -> bool:
    """Whether two JSON values are equal as in `is_same`; `name` is that of the field, empty in a list."""
    if old == new or (old in ABSENT_OR_EMPTY and new in ABSENT_OR_EMPTY):
        return True
    if isinstance(old, dict | None) and isinstance(new, dict | None):
        old, new = old or {}, new or {}
        return all(_are_same_json(old.get(key), new.get(key), key) for key in old.keys() | new.keys())
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(_are_same_json, old, new))
    if isinstance(old, str) and isinstance(new, str) and name in QUANTITY_FIELDS:
        return quantity.parse(old) == quantity.parse(new)
    if isinstance(old, str) and isinstance(new, str) and name in TIME_FIELDS:
        return instants.parse(old) == instants.parse(new)
    return False


async def put_status(client: Client, autoscaler: Autoscaler, status: HorizontalPodAutoscalerStatus) -> str:
    """Send the status to the API server; returns the new resourceVersion of the object, empty if the response has none.

    The body is the whole object with the resourceVersion that was read, so that a newer object causes a conflict.
    Raises StatusError.
    """
    meta, kind = autoscaler.metadata, autoscaler.kind
    body = msgspec.structs.replace(autoscaler.wire, kind=kind.kind, api_version=kind.api_version, status=status)
    path = kind.path(meta.namespace, meta.name, "status")
    response = await client.put(path, _ENCODER.encode(body), subject=f"{kind.resource} {meta.name}")
    try:
        return _RESPONSE_DECODER.decode(response).metadata.resource_version
    except JSON_DECODE_ERRORS:
        return ""  # the write succeeded all the same; the next watch event brings the version
