"""Sends HTTP requests to a web service at a given rate, however long the responses take.

Used by `podscaler.cli.demo.web_scenario`. The generator is open-loop: a slow service does not reduce the rate of
requests, which accumulate as those of users do. The number of concurrent requests is bounded; a request beyond the
bound counts as failed without being sent.
"""

import asyncio
import time
from dataclasses import dataclass, field

import aiohttp

IN_FLIGHT_MAX = 256
"""How many requests may wait for their responses at the same time."""
TIMEOUT_S = 10.0
LATE_MAX_S = 1.0
"""Requests that are due for longer are not sent, and not counted."""
SLEEP_MAX_S = 0.1
"""The longest sleep, so that a new rate applies soon."""


@dataclass(slots=True)
class Outcomes:
    """The results of the requests: the number of failures, and the latency of each success in seconds."""

    failed: int = 0
    latencies_s: list[float] = field(default_factory=list)

    @property
    def served(self) -> int:
        """How many requests had a response with status 200."""
        return len(self.latencies_s)

    def percentile_s(self, percent: float) -> float:
        """The latency that `percent` % of the served requests did not exceed; 0.0 if none was served."""
        ordered = sorted(self.latencies_s)
        if not ordered:
            return 0.0
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class LoadGenerator:
    """Sends requests to one URL.

    Args:
        url: an http URL of this machine.

    Attributes:
        requests_per_s: the rate, which may be changed while it runs; 0 at first: none is sent.
        outcomes: the results so far.
    """

    def __init__(self, url: str) -> None:
        self.requests_per_s = 0.0
        self.outcomes = Outcomes()
        self._url = url
        self._in_flight: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Send requests until cancelled."""
        # Every request has a connection of its own, so that the Service can spread them over the pods.
        connector = aiohttp.TCPConnector(limit=IN_FLIGHT_MAX, force_close=True)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            try:
                await self._send_in_time(session)
            finally:
                await self._wait_for_sent()

    async def _send_in_time(self, session: aiohttp.ClientSession) -> None:
        """Send each request when it is due."""
        due_s = time.monotonic()
        while True:
            now_s = time.monotonic()
            if self.requests_per_s <= 0:
                due_s = now_s
                await asyncio.sleep(SLEEP_MAX_S)
                continue
            if due_s > now_s:
                await asyncio.sleep(min(due_s - now_s, SLEEP_MAX_S))
                continue
            due_s = max(due_s, now_s - LATE_MAX_S) + 1.0 / self.requests_per_s
            self._send(session)

    def _send(self, session: aiohttp.ClientSession) -> None:
        """Begin to send a request; beyond IN_FLIGHT_MAX it counts as failed."""
        if len(self._in_flight) >= IN_FLIGHT_MAX:
            self.outcomes.failed += 1
            return
        task = asyncio.create_task(self._request(session))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)

    async def _request(self, session: aiohttp.ClientSession) -> None:
        """Send one request and count its outcome."""
        started_s = time.monotonic()
        try:
            async with session.get(self._url) as response:
                await response.read()
                is_served = response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            is_served = False
        if is_served:
            self.outcomes.latencies_s.append(time.monotonic() - started_s)
        else:
            self.outcomes.failed += 1

    async def _wait_for_sent(self) -> None:
        """Wait for the requests that were sent."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=TIMEOUT_S)
