"""Writes Events about Leases: which process became the leader, and which stopped leading.

A LeaseHolder records them. Nothing waits for them, and an event that cannot be written is dropped with a log line.

Source: client-go's leaselock (reason, message), its event recorder (the other fields).
"""

import asyncio
import logging
from typing import Any

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.lease import GROUP, LeaseLock
from podscaler.event_correlation import EventDraft, core_event
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client

log = logging.getLogger(__name__)

COMPONENT = "podscaler-controller"
REASON = "LeaderElection"
TIMEOUT_S = 5.0


class LeaseEventRecorder:
    """Writes the events of one process about its Leases in the background.

    Args:
        client: a client whose writes need no lease.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def record(self, lock: LeaseLock, identity: str, change: str) -> None:
        """Have the event `<identity> <change>` written about a Lease, such as `web-1_4f0c became leader`."""
        task = asyncio.get_running_loop().create_task(self._write(lock, f"{identity} {change}"))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Return when every recorded event is written or dropped."""
        await asyncio.gather(*self._tasks)

    async def _write(self, lock: LeaseLock, message: str) -> None:
        """Write one event; one that fails, or takes longer than TIMEOUT_S, is dropped with a log line."""
        now_ns = self._clock.now_ns()
        path = urls.path("api", "v1", "namespaces", lock.namespace, "events")
        body = msgspec.json.encode(_event(lock, message, now_ns))
        try:
            await timeouts.within(self._clock, TIMEOUT_S, self._client.post(path, body, subject="events"))
        except StatusError as error:
            log.info("the event %r about the lease %s is dropped: %s", message, lock, error)


def _event(lock: LeaseLock, message: str, now_ns: int) -> dict[str, Any]:
    """The core/v1 Event about the Lease, as JSON-ready data."""
    involved = {
        "kind": "Lease",
        "apiVersion": f"{GROUP}/v1",
        "namespace": lock.namespace,
        "name": lock.name,
        "uid": lock.metadata.get("uid", ""),
        "resourceVersion": lock.metadata.get("resourceVersion", ""),
    }
    name = f"{lock.name}.{now_ns:x}"
    event = EventDraft(
        subject=lock.name,
        object_name=lock.name,
        type="Normal",
        reason=REASON,
        message=message,
        at_ns=now_ns,
        name=name,
        first_at_ns=now_ns,
    )
    return core_event(event, involved, component=COMPONENT)
