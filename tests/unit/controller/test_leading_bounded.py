"""Waiting for the first of several: what is returned, cancelled and raised."""

import asyncio

import pytest

from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import timeouts


async def _fail(error: Exception) -> None:
    raise error


async def test_a_failure_is_raised() -> None:
    """What the first that is over raises is raised: nothing that leads may fail unseen."""
    with pytest.raises(KeyError, match="bug"):
        await timeouts.first_of(_fail(KeyError("bug")), asyncio.Event().wait())


async def test_a_failure_of_a_given_task_is_raised() -> None:
    """A task that goes on beside the wait counts as well."""
    task = asyncio.ensure_future(_fail(KeyError("bug")))
    with pytest.raises(KeyError, match="bug"):
        await timeouts.first_of(task, asyncio.Event().wait())


async def test_a_cancelled_task_is_over() -> None:
    """A given task that somebody cancelled ends the wait like one that returned."""
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await timeouts.first_of(task, asyncio.Event().wait())


async def test_only_what_is_not_given_is_cancelled() -> None:
    """Coroutines are cancelled when another is over, tasks go on."""
    given = asyncio.ensure_future(asyncio.Event().wait())
    await timeouts.first_of(asyncio.sleep(0), given)
    was_running = not given.done()
    given.cancel()
    assert was_running


@pytest.mark.parametrize(("error", "lines"), [(KeyError("bug"), 1), (StatusError("gone", code=0), 0)])
async def test_a_failure_while_ending(error: Exception, lines: int, caplog: pytest.LogCaptureFixture) -> None:
    """A task that fails when it is cancelled is logged with its traceback, unless the world caused it."""

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise error

    task = asyncio.ensure_future(stubborn())
    await asyncio.sleep(0)
    await timeouts.end(task)
    assert [record.exc_info is not None for record in caplog.records] == [True] * lines
