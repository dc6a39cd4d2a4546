"""Calls in batches that start small and double, so that a hopeless call is not made five hundred times.

The ReplicaSet controller creates pods this way. Source: upstream's slow-start batches.
"""

import asyncio
from collections.abc import Awaitable, Callable


async def slow_start(count: int, call: Callable[[], Awaitable[None]], *, first: int = 1) -> int:
    """Make `count` calls in batches of `first`, twice that, ... calls, all of a batch at once.

    Returns how many succeeded: `count`. After a batch with failures no further batch is started and an ExceptionGroup
    with all failures of that batch is raised.
    """
    done, size = 0, min(first, count)
    while size > 0:
        outcomes = await asyncio.gather(*(call() for _ in range(size)), return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if failures:
            raise ExceptionGroup(f"{len(failures)} of {size} calls failed", failures)
        done += size
        size = min(2 * size, count - done)
    return done
