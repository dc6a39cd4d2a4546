"""Timeouts and the end of tasks, by a Clock (asyncio's timeouts know only the machine's clock).

Source: asyncio.wait_for and asyncio.wait have the same meaning by the event loop's clock.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError, StatusError

log = logging.getLogger(__name__)

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
    """Return when one of them is over; those that are not tasks already are cancelled then.

    Raises what one of those that are over raised, in the order of the arguments; a task that was cancelled is over.
    """
    tasks = [(each, isinstance(each, asyncio.Task)) for each in waits]
    waiting = [asyncio.ensure_future(each) for each, _ in tasks]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        over = [task for task in waiting if task.done()]
    finally:
        await end(*(task for task, (_, is_given) in zip(waiting, tasks, strict=True) if not is_given))
    for task in over:
        if not task.cancelled():
            task.result()


async def end(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks, and return when they are over; a failure while they end is logged where it is a bug."""
    running = [task for task in tasks if not task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in running:
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, PodscalerError):
            log.error("a task failed while it was ended, which is a bug", exc_info=failure)
