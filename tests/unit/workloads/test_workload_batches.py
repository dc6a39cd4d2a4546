"""Slow-start pod_control."""

import pytest

from podscaler.controlplane.controllers.framework import pod_control


def counting(log, failing_after=10**9):
    async def call():
        log.append(len(log))
        if len(log) > failing_after:
            raise OSError("no")

    return call


@pytest.mark.parametrize("count", [0, 1, 2, 7, 20])
async def test_every_call_is_made(count):
    """As many calls as asked for."""
    log = []
    await pod_control.slow_start(count, counting(log))
    assert len(log) == count


@pytest.mark.parametrize(("succeeding", "made"), [(0, 1), (1, 3), (3, 7), (6, 7)])
async def test_after_a_failure_no_further_batch_is_started(succeeding, made):
    """Batches are 1, 2, 4, ...: a call that cannot succeed is not made five hundred times."""
    log = []
    with pytest.raises(ExceptionGroup):
        await pod_control.slow_start(500, counting(log, succeeding))
    assert len(log) == made
