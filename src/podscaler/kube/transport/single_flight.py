"""Runs calls with the same key that overlap in time only once (Go's singleflight).

Discovery, queries of metrics, credential plugins and the history store share their requests with it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs of a coroutine by key; calls with the key of a run in progress share its result or its exception."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, start: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The result of the run for `key`, started now if there is none; its exceptions escape.

        A cancelled caller stops waiting; the run goes on.
        """
        task = self._running.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(start())
            self._running[key] = task
            task.add_done_callback(lambda ended_task: self._finish(key, ended_task))
        return await asyncio.shield(task)

    def _finish(self, key: K, task: asyncio.Task[V]) -> None:
        """Forget a run that has ended."""
        del self._running[key]
        if not task.cancelled():
            task.exception()  # marks it as retrieved: all callers may have been cancelled
