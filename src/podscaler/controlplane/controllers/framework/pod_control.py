"""Creates and deletes the pods of workload objects, with an Event for each result.

The ReplicaSet, DaemonSet, StatefulSet and Job controllers call it. Creations run in batches that start small and double
(slow start), so that a create that cannot succeed is not tried five hundred times. A new Event: in `_record_event`.

Source: PodControlInterface and slowStartBatch of kube-controller-manager; events are upstream's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

PODS = "pods"
BURST_PODS = 500
"""The most pods created or deleted in one sync."""
BATCH_S_PER_POD = 0.00025
"""How long the controllers collect changes before a sync, for each pod of an owner (`control_loop.BatchPeriod`).

A sync reads all pods of the owner, so without it n changes of n pods would cost n * n.
"""
MAX_BATCH_S = 1.0
"""How long they collect changes at most."""

MessageFormat = Callable[[Object, str, str, StatusError | None], str]
"""Returns the message of an Event, from owner, verb (`create`, `delete`), pod name, and error (None: success)."""


async def slow_start(count: int, call: Callable[[], Awaitable[None]]) -> None:
    """Make `count` calls in batches of 1, 2, 4, ... calls; those of a batch run concurrently.

    After a batch with failures no further batch is started and an ExceptionGroup with all failures of that batch is
    raised.
    """
    succeeded, batch_size = 0, min(1, count)
    while batch_size > 0:
        outcomes = await asyncio.gather(*(call() for _ in range(batch_size)), return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if failures:
            raise ExceptionGroup(f"{len(failures)} of {batch_size} calls failed", failures)
        succeeded += batch_size
        batch_size = min(2 * batch_size, count - succeeded)


_VERB_FORMS = {"create": ("Created", "creating"), "delete": ("Deleted", "deleting")}


def pod_message(_owner: Object, verb: str, name: str, error: StatusError | None) -> str:
    """The message of most controllers: `Created pod: web-x7k2p`, `Error deleting: ...`."""
    past, gerund = _VERB_FORMS[verb]
    return f"{past} pod: {name}" if error is None else f"Error {gerund}: {error.message}"


class PodControl:
    """Creates and deletes pods for one controller.

    Args:
        registry: where pods are written.
        events: the recorder of the controller.
        format_message: makes the messages of the events.
    """

    def __init__(self, registry: Registry, events: EventRecorder, format_message: MessageFormat = pod_message) -> None:
        self._registry = registry
        self._events = events
        self._format_message = format_message

    async def create_all(self, owner: Object, pods: Sequence[Object]) -> StatusError | None:
        """Create the first `BURST_PODS` pods in slow-start batches; returns the first error, None if there was none.

        A namespace that is being deleted ends the creations and counts as no error. Raises ExceptionGroup if there are
        errors other than StatusError, as `write_errors.first_error` does.
        """
        pending = iter(pods[:BURST_PODS])
        try:
            await slow_start(min(len(pods), BURST_PODS), lambda: self.create(owner, next(pending)))
        except ExceptionGroup as group:
            return write_errors.first_error(group.exceptions)
        return None

    async def delete_all(self, owner: Object, pods: Sequence[Object]) -> StatusError | None:
        """Delete the first `BURST_PODS` pods concurrently; returns and raises as `create_all`."""
        calls = (self.delete(owner, pod) for pod in pods[:BURST_PODS])
        return write_errors.first_error(await asyncio.gather(*calls, return_exceptions=True))

    async def create(self, owner: Object, pod: Object) -> None:
        """Create one pod. Raises StatusError."""
        try:
            created = await self._registry.create(PODS, pod)
        except StatusError as error:
            if not write_errors.is_namespace_terminating(error):
                self._record_event(owner, "create", pod["metadata"].get("name", ""), error)
            raise
        self._record_event(owner, "create", created["metadata"]["name"])

    async def delete(self, owner: Object, pod: Object) -> None:
        """Delete one pod; one that is gone or replaced is ignored. Raises StatusError."""
        namespace, pod_name = selection.key_of(pod)
        delete = self._registry.delete(PODS, namespace, pod_name, uid=pod["metadata"]["uid"])
        try:
            was_there = await write_errors.ignoring_gone(delete, or_replaced=True)
        except StatusError as error:
            self._record_event(owner, "delete", pod_name, error)
            raise
        if was_there:
            self._record_event(owner, "delete", pod_name)

    def _record_event(self, owner: Object, verb: str, pod_name: str, error: StatusError | None = None) -> None:
        """Record the Event of a create or delete at the owner; `error` is None for a success."""
        message = self._format_message(owner, verb, pod_name, error)
        if error is None:
            self._events.event(owner, "Normal", f"Successful{verb.capitalize()}", message)
        else:
            self._events.event(owner, "Warning", f"Failed{verb.capitalize()}", message)
