"""The event loops of the tests of Services: both kinds on which podscaler runs."""

import asyncio

import pytest
import uvloop

from patience import WITHIN_S


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    """Run a scenario on one kind of loop, with a deadline."""

    def runner(scenario):
        async def limited():
            async with asyncio.timeout(WITHIN_S):
                await scenario

        with asyncio.Runner(loop_factory=request.param) as loop_runner:
            loop_runner.run(limited())

    return runner
