"""Waiting for one thing, but not for ever, on a Clock (asyncio's time-outs know only the machine's).

Called by what keeps leases, and by the loop where parts of the work come and go.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from podscaler.clock import Clock
from podscaler.errors import StatusError

T = TypeVar("T")


async def within(clock: Clock, limit_s: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled after `limit_s` seconds. Raises StatusError then, or what it raises."""
    task = asyncio.ensure_future(work)
    timer = asyncio.ensure_future(clock.sleep(limit_s))
    try:
        await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise StatusError(f"no answer within {limit_s:g}s", code=0)
        return task.result()
    finally:
        await end(task, timer)


async def first_of(*waits: Coroutine[Any, Any, Any] | asyncio.Task[Any]) -> None:
    """Return when one of them is over; those that are not tasks already are cancelled then."""
    mine = [asyncio.ensure_future(each) for each in waits if not isinstance(each, asyncio.Task)]
    given = [each for each in waits if isinstance(each, asyncio.Task)]
    try:
        await asyncio.wait((*mine, *given), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(*mine)


async def end(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks, and return when they are over; their failures are nobody's any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
