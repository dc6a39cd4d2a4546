"""Concurrent work of the node: background tasks, and the thread pool for blocking calls.

`kubelet.node_agent` makes one of each, which all parts of the node share, so that a slow disk delays the node and no
other part of `up`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

THREADS_MAX: Final = 8

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger(__name__)


class BackgroundTasks:
    """The running tasks of one owner. A reference to each is kept, and a task that fails is logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run `work` in a new task; the log names it `name` if it fails."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._remove_ended)
        return task

    async def cancel_all(self) -> None:
        """Cancel all tasks and return when they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _remove_ended(self, task: asyncio.Task[None]) -> None:
        """Remove a task that has ended; its error is logged."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)


class ThreadPool:
    """A pool of at most THREADS_MAX threads for files, process creation and scans of processes."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="podscaler-node")

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of `function(*args, **kwargs)`, called in a thread. Raises what the function raises."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Accept no more calls. The threads end when they are idle; this does not wait for them."""
        self._pool.shutdown(wait=False)
