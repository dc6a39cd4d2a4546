"""Parts that fail are started again."""

import asyncio
import logging

import pytest

from podscaler.base import supervision
from podscaler.testing import VirtualClock


async def test_a_failing_part_starts_again_with_growing_delays(caplog: pytest.LogCaptureFixture) -> None:
    """Attempts are 1, 2, 4 ... seconds apart, each failure is logged, and success ends it."""
    clock = VirtualClock()
    attempts: list[float] = []

    async def part() -> None:
        attempts.append(clock.monotonic_s())
        if len(attempts) < 4:
            raise OSError("disk")

    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(supervision.keep_running("store", part, clock))
        await clock.advance(30)
        await task
    assert attempts == [0, 1, 3, 7]
    assert [record.message for record in caplog.records] == [
        "store failed; it starts again in 1 s",
        "store failed; it starts again in 2 s",
        "store failed; it starts again in 4 s",
    ]


async def test_a_part_that_had_run_well_starts_again_quickly() -> None:
    """After a minute of health the delay begins at one second again."""
    clock = VirtualClock()
    attempts: list[float] = []

    async def part() -> None:
        attempts.append(clock.monotonic_s())
        if len(attempts) == 3:
            await clock.sleep(61)
        if len(attempts) < 5:
            raise OSError("disk")

    task = asyncio.create_task(supervision.keep_running("store", part, clock))
    await clock.advance(120)
    await task
    assert attempts == [0, 1, 3, 65, 67]


async def test_cancelling_ends_it() -> None:
    """A part that is told to stop is not started again."""
    clock = VirtualClock()
    task = asyncio.create_task(supervision.keep_running("store", lambda: clock.sleep(10), clock))
    await clock.advance(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
