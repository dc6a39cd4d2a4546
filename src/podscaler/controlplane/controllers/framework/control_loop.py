"""The loop that every controller of the control plane runs in: watches feed a queue of keys, workers sync them.

A controller gives its watches and a `sync`; `ControlLoop.run` does the rest until it is cancelled. Rules:

1. Level-triggered: a key says only that something about it may have changed; `sync` reads what is there now.
2. One sync at a time for a key; a key that changes meanwhile is synced again.
3. A failed sync is reported and repeated after 10 ms, twice that, ... at most 60 s; the first success forgets the
   failures. A lost race (409 Conflict) is repeated likewise but not reported.
4. A watch that breaks (it fell too far behind, or a handler failed) starts anew with everything there is, after a
   back-off of the same kind, and every key is synced.

Source: the pattern of client-go's informers and work queues.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.base.workqueue import ShutDown, WorkQueue
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

K = TypeVar("K", bound=Hashable)

FIRST_RETRY_S = 0.01
LONGEST_RETRY_S = 60.0

_log = logging.getLogger(__name__)


def _at_once(_key: object) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Watched(Generic[K]):
    """One watch of a controller.

    Attributes:
        resource: what is watched (`Resource.key`).
        keys: the keys that a change concerns; it may also keep an index of the controller's up to date.
        delay_s: how long changes for a key are collected before it is synced.
    """

    resource: str
    keys: Callable[[ObjectEvent], Iterable[K]]
    delay_s: Callable[[K], float] = _at_once


class Reconciler(Protocol[K]):
    """What a controller is to its loop."""

    @property
    def name(self) -> str:
        """For logs: `deployment-controller`."""
        ...

    def watches(self) -> Sequence[Watched[K]]:
        """What must be watched."""
        ...

    def prime(self) -> Iterable[K]:
        """(Re)build indexes from what there is and name every key; called before any watch starts or starts anew."""
        ...

    async def sync(self, key: K) -> float | None:
        """Bring what `key` names closer to what it should be.

        Returns the seconds after which it must be looked at again, None if only a change can make that necessary.
        Any exception makes it be repeated with back-off.
        """
        ...

    def report(self, key: K, error: Exception) -> None:
        """Tell the user about a failed sync (an event); the loop logs it itself."""
        ...


class ExponentialFailureRateLimiter(Generic[K]):
    """How long to wait after the n-th failure in a row, for each key."""

    def __init__(self, first_s: float = FIRST_RETRY_S, longest_s: float = LONGEST_RETRY_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._failures: dict[K, int] = {}

    def failed(self, key: K) -> float:
        """Note a failure; returns the delay before the next attempt."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return min(self._first_s * 2.0 ** min(failures, 32), self._longest_s)

    def succeeded(self, key: K) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)


class ControlLoop(Generic[K]):
    """Runs one controller.

    Args:
        reconciler: the controller.
        registry: where the objects are.
        clock: delays.
        workers: how many keys are synced at once.
    """

    def __init__(self, reconciler: Reconciler[K], registry: Registry, clock: Clock, *, workers: int = 5) -> None:
        self._reconciler = reconciler
        self._registry = registry
        self._clock = clock
        self._workers = workers
        self._queue: WorkQueue[K] = WorkQueue(clock)
        self._backoff: ExponentialFailureRateLimiter[K] = ExponentialFailureRateLimiter()

    def add(self, key: K, delay_s: float = 0.0) -> None:
        """Queue a key from outside the watches."""
        self._queue.add_after(key, delay_s)

    async def run(self) -> None:
        """Work until cancelled."""
        self._queue_everything()
        try:
            async with asyncio.TaskGroup() as group:
                for watched in self._reconciler.watches():
                    group.create_task(self._follow(watched))
                for _ in range(self._workers):
                    group.create_task(self._work())
        finally:
            self._queue.shut_down()

    def _queue_everything(self) -> None:
        for key in self._reconciler.prime():
            self._queue.add(key)

    async def _follow(self, watched: Watched[K]) -> None:
        backoff: ExponentialFailureRateLimiter[str] = ExponentialFailureRateLimiter()
        while True:
            try:
                await self._read(watched, backoff)
            except StatusError as error:
                _log.info("%s: watch of %s starts anew: %s", self._reconciler.name, watched.resource, error.message)
            except Exception:
                _log.exception("%s: watch of %s failed", self._reconciler.name, watched.resource)
            await self._clock.sleep(backoff.failed(watched.resource))
            self._queue_everything()

    async def _read(self, watched: Watched[K], backoff: ExponentialFailureRateLimiter[str]) -> None:
        changes = self._registry.watch(watched.resource)
        try:
            async for change in changes:
                for key in watched.keys(change):
                    self._queue.add_after(key, watched.delay_s(key))
                backoff.succeeded(watched.resource)
        finally:
            if isinstance(changes, AsyncGenerator):
                await changes.aclose()

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            try:
                await self._sync(key)
            finally:
                self._queue.done(key)

    async def _sync(self, key: K) -> None:
        try:
            again_s = await self._reconciler.sync(key)
        except Exception as error:
            self._queue.add_after(key, self._backoff.failed(key))
            self._tell(key, error)
            return
        self._backoff.succeeded(key)
        if again_s is not None:
            self._queue.add_after(key, again_s)

    def _tell(self, key: K, error: Exception) -> None:
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
