"""The few threads in which the node does what would block the event loop: files, process creation, scans.

Every part of the node shares one `Threads`, so that a slow disk delays the node alone and never other parts of `up`.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

THREADS: Final = 8

P = ParamSpec("P")
R = TypeVar("R")


class Threads:
    """A bounded pool of threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="podscaler-node")

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of `function(*args, **kwargs)`, worked out in a thread; what it raises escapes here."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Let the threads end once they are idle."""
        self._pool.shutdown(wait=False)
