"""The control loop of every controller: watches add keys to a work queue, workers sync them.

A controller is a `Reconciler`: it has watches and a `sync`. `ControlLoop.run` runs it until cancelled. Rules:

1. Level-triggered: a key says only that something about it may have changed; `sync` reads the current state.
2. A key is synced by one worker at a time; a key that changes meanwhile is synced again.
3. A failed sync is reported and retried after 10 ms, twice that, ... at most 60 s; the first success resets the
   back-off. A conflict (409) is retried likewise but not reported. One that failed because its namespace is being
   deleted is neither retried nor reported.
4. A watch that breaks (it fell behind the change log, or a handler failed) restarts with an ADDED for every object,
   after a back-off of the same kind, and every key is synced.

`controlplane.controller_manager` makes most of the loops. A new controller: a subclass of `Reconciler`, with its name
and its factory there.

Source: client-go's informers and work queues.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.base.workqueue import ShutDown, WorkQueue
from podscaler.controlplane.controllers.framework import write_errors
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

K = TypeVar("K", bound=Hashable)

FIRST_RETRY_S = 0.01
LONGEST_RETRY_S = 60.0
_MAX_DOUBLINGS = 32
"""Bounds the power of two of a back-off; the longest delay is reached long before."""

_log = logging.getLogger(__name__)


def _no_delay(_key: object) -> float:
    """The `get_delay_s` of a watch whose keys are synced at once."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Watched(Generic[K]):
    """One watch of a controller.

    Attributes:
        resource: the watched kind (`Resource.key`).
        get_keys: returns the keys to sync after a change; it may also update an index of the controller.
        get_delay_s: returns the seconds for which changes of a key are collected before it is synced.
    """

    resource: str
    get_keys: Callable[[ObjectEvent], Iterable[K]]
    get_delay_s: Callable[[K], float] = _no_delay


class BatchPeriod(Generic[K]):
    """How long changes are collected, in proportion to the number of objects behind a key; a `Watched.get_delay_s`.

    Args:
        per_object_s: seconds for each object.
        max_s: the longest period in seconds.
        base_s: seconds in addition, also without any object.
        min_objects: with fewer objects changes are not collected.

    Source: the endpoint controller's flag --endpoint-updates-batch-period, which is one period for all.
    """

    def __init__(self, per_object_s: float, max_s: float, *, base_s: float = 0.0, min_objects: int = 0) -> None:
        self._per_object_s = per_object_s
        self._max_s = max_s
        self._base_s = base_s
        self._min_objects = min_objects
        self._counts: dict[K, int] = {}

    def note(self, key: K, count: int) -> None:
        """Remember how many objects a sync found behind a key."""
        self._counts[key] = count

    def forget(self, key: K) -> None:
        """Drop a key whose object is gone."""
        self._counts.pop(key, None)

    def __call__(self, key: K) -> float:
        """The period of a key in seconds."""
        count = self._counts.get(key, 0)
        return min(self._base_s + count * self._per_object_s, self._max_s) if count >= self._min_objects else 0.0


class Reconciler(ABC, Generic[K]):
    """A controller: watches, and a sync of one key.

    Attributes:
        name: the controller's name in logs and events (`deployment-controller`).
    """

    name: str

    @abstractmethod
    def watches(self) -> Sequence[Watched[K]]:
        """The watches that feed the queue."""

    def prime(self) -> Iterable[K]:
        """Rebuild the indexes from the registry and return every key; called before watches start or restart."""
        return ()

    @abstractmethod
    async def sync(self, key: K) -> float | None:
        """Bring the object of `key` closer to its desired state.

        Returns the seconds after which it must be synced again, None if only a change makes that necessary. After an
        exception the key is retried with back-off (rule 3 of the module has the exceptions).
        """

    def report(self, key: K, error: Exception) -> None:
        """Report a failed sync to the user, with an Event; the loop logs it anyway. By default nothing is reported.

        A conflict (409) is not reported.
        """
        del key, error


class ExponentialFailureRateLimiter(Generic[K]):
    """The delay before the next attempt after failures in a row, for each key.

    Args:
        first_s: the delay after the first failure in seconds; it doubles with each further one.
        longest_s: the longest delay in seconds.
    """

    def __init__(self, first_s: float = FIRST_RETRY_S, longest_s: float = LONGEST_RETRY_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._failures: dict[K, int] = {}

    def failed(self, key: K) -> float:
        """Count a failure; returns the delay before the next attempt in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return min(self._first_s * 2.0 ** min(failures, _MAX_DOUBLINGS), self._longest_s)

    def succeeded(self, key: K) -> None:
        """Reset the back-off of a key."""
        self._failures.pop(key, None)


class ControlLoop(Generic[K]):
    """Runs one controller: its watches, its work queue and its workers, as tasks of `run`.

    Args:
        reconciler: the controller.
        registry: where the objects are watched.
        clock: for delays.
        workers: how many keys are synced concurrently.
    """

    def __init__(self, reconciler: Reconciler[K], registry: Registry, clock: Clock, *, workers: int = 5) -> None:
        self._reconciler = reconciler
        self._registry = registry
        self._clock = clock
        self._workers = workers
        self._queue: WorkQueue[K] = WorkQueue(clock)
        self._backoff: ExponentialFailureRateLimiter[K] = ExponentialFailureRateLimiter()

    async def run(self) -> None:
        """Sync until cancelled.

        Raises what the first `prime` raises. Errors of `watches`, `report` and later `prime`s, which are defects, end
        the loop with an ExceptionGroup.
        """
        self._queue_everything()
        try:
            async with asyncio.TaskGroup() as group:
                for watched in self._reconciler.watches():
                    group.create_task(self._keep_watching(watched))
                for _ in range(self._workers):
                    group.create_task(self._run_worker())
        finally:
            self._queue.shut_down()

    def _queue_everything(self) -> None:
        """Queue every key of the controller, whose indexes are rebuilt."""
        for key in self._reconciler.prime():
            self._queue.add(key)

    async def _keep_watching(self, watched: Watched[K]) -> None:
        """Queue the keys of all events; a watch that ends or fails is restarted with back-off, and all keys queued."""
        backoff: ExponentialFailureRateLimiter[str] = ExponentialFailureRateLimiter()
        while True:
            try:
                await self._queue_events(watched, backoff)
            except StatusError as error:
                _log.info("%s: watch of %s restarts: %s", self._reconciler.name, watched.resource, error.message)
            except Exception:
                _log.exception("%s: watch of %s failed", self._reconciler.name, watched.resource)
            await self._clock.sleep(backoff.failed(watched.resource))
            self._queue_everything()

    async def _queue_events(self, watched: Watched[K], backoff: ExponentialFailureRateLimiter[str]) -> None:
        """Queue the keys of events until the watch ends; each event resets `backoff`, whose key is the resource."""
        events = self._registry.watch(watched.resource)
        try:
            async for event in events:
                for key in watched.get_keys(event):
                    self._queue.add_after(key, watched.get_delay_s(key))
                backoff.succeeded(watched.resource)
        finally:
            if isinstance(events, AsyncGenerator):  # the declared AsyncIterator has no aclose
                await events.aclose()

    async def _run_worker(self) -> None:
        """Sync keys of the queue until it is shut down."""
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            try:
                await self._sync_key(key)
            finally:
                self._queue.done(key)
            await asyncio.sleep(0)  # a sync that waited for nothing leaves time for other tasks, too

    async def _sync_key(self, key: K) -> None:
        """Sync one key; one that fails is queued again, by rule 3 of the module."""
        try:
            requeue_after_s = await self._reconciler.sync(key)
        except Exception as error:
            if isinstance(error, StatusError) and write_errors.is_namespace_terminating(error):
                self._backoff.succeeded(key)  # no retry can succeed, and the object itself is deleted soon
                return
            self._queue.add_after(key, self._backoff.failed(key))
            self._report_failure(key, error)
            return
        self._backoff.succeeded(key)
        if requeue_after_s is not None:
            self._queue.add_after(key, requeue_after_s)

    def _report_failure(self, key: K, error: Exception) -> None:
        """Log a failed sync and report it to the controller; a conflict (409), which is usual, only at DEBUG."""
        if isinstance(error, StatusError):
            if error.reason == "Conflict":
                _log.debug("%s: %s: %s", self._reconciler.name, key, error.message)
                return
            _log.warning("%s: %s: %s", self._reconciler.name, key, error.message)
        elif isinstance(error, PodscalerError):
            _log.warning("%s: %s: %s", self._reconciler.name, key, error)
        else:
            _log.error("%s: sync of %s failed", self._reconciler.name, key, exc_info=error)
        self._reconciler.report(key, error)
