"""Limits the rate of requests by a token bucket: an average per second, and a burst after a quiet time.

`client.client` takes a token for each request if `--kube-api-qps` is given.

Source: client-go's flowcontrol (a wait of over a second is logged).
"""

import logging

from podscaler.base.clock import Clock

log = logging.getLogger(__name__)

LONG_WAIT_S = 1.0
"""A wait of at least this is logged."""


class TokenBucket:
    """A bucket of tokens, one for each request, given in the order of the calls.

    Args:
        per_second: tokens added each second; above 0.
        burst: the size of the bucket; at least 1.
        clock: measures time, and waits for tokens.
    """

    def __init__(self, per_second: float, burst: int, clock: Clock) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._counted_at_s = clock.monotonic_s()

    async def take(self) -> None:
        """Return once there is a token for the caller; the token of a cancelled call is lost."""
        now_s = self._clock.monotonic_s()
        self._tokens = min(self._burst, self._tokens + (now_s - self._counted_at_s) * self._per_second)
        self._counted_at_s = now_s
        self._tokens -= 1
        if self._tokens >= 0:
            return
        wait_s = -self._tokens / self._per_second
        if wait_s >= LONG_WAIT_S:
            log.info("a request waits %.1f s because of --kube-api-qps=%g", wait_s, self._per_second)
        await self._clock.sleep(wait_s)
