"""Runs coroutines with a timeout, waits for the first of several, and ends tasks, by a `podscaler.base.clock.Clock`.

Used by elections and by the controller. `within` is asyncio.wait_for, and `first_of` asyncio.wait, by a Clock, so that
tests run in virtual time.
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
    """The result of `work`. Raises StatusError after `limit_s` seconds, when `work` is cancelled, or what it raises."""
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
    """Return when one of the arguments has ended; the other coroutines are cancelled then, the other tasks go on.

    Raises the exception of an argument that has ended, of the first if there are several; a cancelled task has ended.
    """
    waiting = [asyncio.ensure_future(wait) for wait in waits]
    own_tasks = [task for task, wait in zip(waiting, waits, strict=True) if not isinstance(wait, asyncio.Task)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        ended = [task for task in waiting if task.done()]
    finally:
        await end(*own_tasks)
    for task in ended:
        if not task.cancelled():
            task.result()


async def end(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks, and return when they have ended; a failure meanwhile that is a bug is logged."""
    running = [task for task in tasks if not task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in running:
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, PodscalerError):
            log.error("a task failed while it was ended, which is a bug", exc_info=failure)
