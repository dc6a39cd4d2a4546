"""Writes the status of MetricSources in the background.

`podscaler.sources.cluster_sources` runs `run`, has `podscaler.sources.direct_metrics` call `record_read` after each
read, and calls `forget` for deleted objects. Rules:

1. A status is written at once if the condition Ready changes its status or its reason, or the spec is newer; else
   once in PERIOD_S at most.
2. lastTransitionTime is kept while the status of the condition stays, also across restarts of the controller.
3. A write that fails is repeated by a later read: after RETRY_S, then twice as long each time, PERIOD_S at most. A read
   never waits for a write.

Source: the API conventions of Kubernetes (typical status properties).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, is_not_found
from podscaler.kube.informers.cache import Key, key_of
from podscaler.sources import metric_numbers, metric_source
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.open_sources import ReadResult

log = logging.getLogger(__name__)

PERIOD_S, RETRY_S = 60, 5
BACKOFF_STEPS_MAX = 10
"""How often the wait after a failure is doubled at most; PERIOD_S is reached before."""
READY = "Ready"
READ_SUCCEEDED = "ReadSucceeded"


@dataclass(frozen=True, slots=True)
class _DueStatus:
    """The last status of an object that was due to be written; it may still wait, or have failed.

    Attributes:
        uid: the object's uid.
        status: all fields of the status.
        due_at_ns: the instant of the read that led to it, nanoseconds since the epoch.
        failures: how many of its writes failed in a row since the last one that succeeded.
    """

    uid: str
    status: Mapping[str, Any]
    due_at_ns: int
    failures: int = 0

    @property
    def next_at_ns(self) -> int:
        """When it is due again, though nothing changed."""
        wait_s = PERIOD_S
        if self.failures:
            doublings = min(self.failures - 1, BACKOFF_STEPS_MAX)
            wait_s = min(RETRY_S * int(2**doublings), PERIOD_S)
        return self.due_at_ns + wait_s * NANOSECONDS


class SourceStatusWriter:
    """Writes the results of reads into the statuses of MetricSources, by the module's rules.

    Args:
        client: sends the patches.
        may_write: whether statuses may be written now; while it returns False, reads are ignored.
    """

    def __init__(self, client: Client, *, may_write: Callable[[], bool]) -> None:
        self._client = client
        self._may_write = may_write
        self._last_due: dict[Key, _DueStatus] = {}
        # the object that was read and the fields to write; a later read replaces a status that waits
        self._pending: dict[Key, tuple[MetricSource, Mapping[str, Any]]] = {}
        self._has_pending = asyncio.Event()

    def record_read(self, source: MetricSource, read_result: ReadResult) -> None:
        """Compute the status after a read, and have it written by `run` if that is due (rules 1 and 3)."""
        if not self._may_write():
            return
        key = key_of(source)
        last_due = self._last_due.get(key)
        if last_due is None or last_due.uid != source.metadata.uid:
            last_due = _DueStatus(source.metadata.uid, source.status, due_at_ns=0)
        status = status_of(source, read_result, old_status=last_due.status)
        if _is_transition(last_due.status, status) or read_result.read_at_ns >= last_due.next_at_ns:
            due = {**last_due.status, **status}
            self._last_due[key] = replace(last_due, status=due, due_at_ns=read_result.read_at_ns)
            self._pending[key] = (source, status)
            self._has_pending.set()

    def forget(self, key: Key) -> None:
        """Drop what is kept about an object, which was deleted."""
        self._last_due.pop(key, None)
        self._pending.pop(key, None)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._has_pending.wait()
            self._has_pending.clear()
            while self._pending:
                key = next(iter(self._pending))
                await self._write_status(*self._pending.pop(key))

    async def _write_status(self, source: MetricSource, status: Mapping[str, Any]) -> None:
        """Patch the status of an object; a failure is logged, and makes the status due again."""
        namespace, name = key_of(source)
        path = metric_source.BASE_PATH + urls.path("namespaces", namespace, "metricsources", name, "status")
        body = msgspec.json.encode({"metadata": {"uid": source.metadata.uid}, "status": status})
        try:
            await self._client.patch(path, body, subject=f"{metric_source.RESOURCE} {name}")
            is_written = True
        except PodscalerError as error:  # also a lost leadership
            log.info("the status of the MetricSource %s/%s is not written: %s", namespace, name, error)
            is_written = False
            if isinstance(error, StatusError) and is_not_found(error):
                self.forget(key_of(source))  # a read can end after the object was deleted
        last_due = self._last_due.get(key_of(source))
        if last_due is not None and last_due.uid == source.metadata.uid:
            self._last_due[key_of(source)] = replace(last_due, failures=0 if is_written else last_due.failures + 1)


def status_of(source: MetricSource, read_result: ReadResult, *, old_status: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the status to write after a read; value and lastReadTime are absent if the read failed.

    Args:
        source: the object that was read.
        read_result: the result of the read.
        old_status: the status so far, JSON-ready; its lastTransitionTime is kept while Ready has the same status.
    """
    read_time = rfc3339(read_result.read_at_ns)
    is_ready = read_result.error is None
    old = _ready_condition(old_status)
    ready_status = "True" if is_ready else "False"
    is_unchanged = old.get("status") == ready_status
    condition = {
        "type": READY,
        "status": ready_status,
        "observedGeneration": source.metadata.generation,
        "lastTransitionTime": old.get("lastTransitionTime", read_time) if is_unchanged else read_time,
        "reason": READ_SUCCEEDED if read_result.error is None else read_result.error.reason,
        "message": "" if read_result.error is None else str(read_result.error),
    }
    status: dict[str, Any] = {"observedGeneration": source.metadata.generation, "conditions": [condition]}
    if read_result.query:
        status["query"] = read_result.query
    if read_result.value_milli is not None:
        status |= {"value": metric_numbers.quantity(read_result.value_milli), "lastReadTime": read_time}
    return status


def _ready_condition(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The condition Ready of a status, both as JSON objects; empty if there is none."""
    conditions = status.get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == READY), {})


def _is_transition(old_status: Mapping[str, Any], new_status: Mapping[str, Any]) -> bool:
    """Whether the condition Ready changed its status or reason, or the generation is another."""
    old, new = _ready_condition(old_status), _ready_condition(new_status)
    is_changed = any(old.get(name) != new.get(name) for name in ("status", "reason"))
    return is_changed or old_status.get("observedGeneration") != new_status.get("observedGeneration")
