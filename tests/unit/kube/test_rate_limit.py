"""The client-side limit of requests."""

import asyncio

from podscaler.kube.transport.rate_limit import TokenBucket
from podscaler.testing import VirtualClock


async def test_a_burst_then_the_rate() -> None:
    """A burst goes out at once, what follows at the given rate, and a quiet time fills the burst again."""
    clock = VirtualClock()
    bucket = TokenBucket(2.0, 3, clock)
    taken: list[float] = []

    async def take() -> None:
        await bucket.take()
        taken.append(clock.monotonic_s())

    tasks = [asyncio.ensure_future(take()) for _ in range(6)]
    await clock.advance(100)
    tasks += [asyncio.ensure_future(take()) for _ in range(4)]
    await clock.advance(10)
    await asyncio.gather(*tasks)
    assert taken == [0, 0, 0, 0.5, 1, 1.5, 100, 100, 100, 100.5]
