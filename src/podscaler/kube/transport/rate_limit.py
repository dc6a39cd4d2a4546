"""How often requests may go out: so many a second on average, and so many at once after a quiet time.

`client.client` takes a turn for each request where `--kube-api-qps` is given.

Source: client-go's flowcontrol (a token bucket; a wait of over a second is said in the log).
"""

import logging

from podscaler.base.clock import Clock

log = logging.getLogger(__name__)

LONG_WAIT_S = 1.0


class TokenBucket:
    """Turns, in the order in which they are asked for.

    Args:
        per_second: turns that become free each second; above 0.
        burst: turns that can be had at once; at least 1.
        clock: for time and waits.
    """

    def __init__(self, per_second: float, burst: int, clock: Clock) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._turns = float(burst)
        self._counted_at_s = clock.monotonic_s()

    async def take(self) -> None:
        """Return when it is the caller's turn. One who gives up leaves its turn unused."""
        now_s = self._clock.monotonic_s()
        self._turns = min(self._burst, self._turns + (now_s - self._counted_at_s) * self._per_second)
        self._counted_at_s = now_s
        self._turns -= 1
        if self._turns >= 0:
            return
        wait_s = -self._turns / self._per_second
        if wait_s >= LONG_WAIT_S:
            log.info("a request waits %.1f s because of --kube-api-qps=%g", wait_s, self._per_second)
        await self._clock.sleep(wait_s)
