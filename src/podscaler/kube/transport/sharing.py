"""One request for many who want the same answer at the same time.

Discovery uses it, and metrics queries that are equal within one tick do.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs of a coroutine by key; whoever asks for a key while its run lasts shares result and failure."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, start: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The result of the run for `key`, started now if there is none. A caller's cancellation ends only its wait."""
        task = self._running.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(start())
            self._running[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(task)

    def _finish(self, key: K, task: asyncio.Task[V]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # marks it as seen: those who wait have it already, and perhaps nobody waits any more
