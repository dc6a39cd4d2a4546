"""Sends requests on one HTTP/1.1 connection to an API server, one after the other.

`transport.dialing` makes it, `transport.connection_pool` keeps it, `transport.http_transport` sends through it. Every
failure is a NoResponse, after which the connection is closed; it is closed too when a waiting caller is cancelled.

Source: RFC 9112.
"""

import asyncio
from typing import cast

from podscaler.kube.transport import network_errors
from podscaler.kube.transport.http_response import HTTPResponse
from podscaler.kube.transport.network_errors import NoResponse

UNREAD_MAX_BYTES = 1 << 20
"""The bytes of a stream that may wait to be read; beyond that, reading from the socket pauses."""


class Connection(asyncio.Protocol):
    """One kept-alive connection to an API server.

    Args:
        address: `host:port`, for messages.
        body_max_bytes: the longest body of a response that is read whole; None if there is no limit.

    Attributes:
        idle_since_s: the event loop's time at which the last request was done.
        request_count: the number of requests that are done.
    """

    def __init__(self, address: str, body_max_bytes: int | None = None) -> None:
        self._address = address
        self._body_max_bytes = body_max_bytes
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._response: HTTPResponse | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_streamed = False
        self._unread_bytes = 0
        self._failure: NoResponse | None = None
        self.idle_since_s = 0.0
        self.request_count = 0

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None and self._response is None and not self._transport.is_closing()

    def close(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    async def send(self, encoded_request: bytes, timeout_s: float | None) -> HTTPResponse:
        """Send an encoded request; the complete response, at the latest after `timeout_s`. Raises NoResponse."""
        response = self._begin(encoded_request, streams=False)
        timer = None if timeout_s is None else self._loop.call_later(timeout_s, self._expire)
        try:
            await self._wait_for_data()  # only the end of a response that is read whole wakes it, or a failure
        finally:
            if timer is not None:
                timer.cancel()
        self.finish()
        return response

    async def send_streamed(self, encoded_request: bytes) -> HTTPResponse:
        """The response to a request once its head has arrived; then read its body, and `finish`. Raises NoResponse."""
        response = self._begin(encoded_request, streams=True)
        while not response.status:
            await self._wait_for_data()
        return response

    async def read_chunks(self) -> list[bytes]:
        """The next pieces of the body; empty at its end. Raises NoResponse."""
        response = cast(HTTPResponse, self._response)
        while not (chunks := response.take()):
            if response.is_complete:
                return []
            await self._wait_for_data()
        if self._unread_bytes > UNREAD_MAX_BYTES and self._transport is not None:
            self._transport.resume_reading()
        self._unread_bytes = 0
        return chunks

    def finish(self) -> None:
        """End the request; closes the connection unless the response was complete."""
        response, self._response = self._response, None
        is_paused, self._unread_bytes = self._unread_bytes > UNREAD_MAX_BYTES, 0  # paused: the next could not be read
        if response is None or is_paused or not (response.is_complete and response.keeps_alive):
            self.close()
        self.request_count += 1
        self.idle_since_s = self._loop.time()

    def expire_in(self, timeout_s: float) -> asyncio.TimerHandle:
        """Fail the request in progress after `timeout_s`, unless the returned timer is cancelled before."""
        return self._loop.call_later(timeout_s, self._expire)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio: bytes of the response; without a request in progress the connection is closed."""
        response = self._response
        if response is None:
            self.close()
            return
        try:
            response.feed(data)
        except ValueError as error:
            self._fail(NoResponse(f"net/http: HTTP/1.x transport connection broken: {error}"))
            return
        if self._is_streamed:
            self._unread_bytes += len(data)
            if self._unread_bytes > UNREAD_MAX_BYTES and self._transport is not None:
                self._transport.pause_reading()
            self._wake()
        elif response.is_complete:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed, by the server (None) or by an error."""
        self._transport = None
        if self._response is None:
            return
        try:
            self._response.feed_end()
        except EOFError:
            self._fail(network_errors.of_read(exc, self._address, unanswered=not self._response.status))
            return
        self._wake()

    def _begin(self, encoded_request: bytes, *, streams: bool) -> HTTPResponse:
        """Send a request; returns its response, which is still empty. Raises NoResponse if the connection is closed."""
        if self._transport is None:
            raise NoResponse("EOF", broken=True, unanswered=True)
        response = HTTPResponse(None if streams else self._body_max_bytes)
        self._response, self._is_streamed, self._failure = response, streams, None
        self._loop.call_soon(self._write_request, encoded_request)
        return response

    def _write_request(self, encoded_request: bytes) -> None:
        """Called at the end of the event loop's iteration: writes in a row wake the kernel and the server less often.

        Over TLS that saves a third of the CPU of a request (docs/decisions/http-client.md).
        """
        if self._transport is not None:
            self._transport.write(encoded_request)

    async def _wait_for_data(self) -> None:
        """Return when bytes or the end of the response have arrived. Raises NoResponse."""
        if self._failure is None:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self._response = None
                self.close()
                raise
            finally:
                self._waiter = None
        if self._failure is not None:
            self._response = None
            raise self._failure

    def _wake(self) -> None:
        """Let the caller in `_wait_for_data` go on, if there is one."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, failure: NoResponse) -> None:
        """End the request in progress with `failure`, unless it has failed before, and close the connection."""
        if self._failure is None:
            self._failure = failure
        self.close()
        self._wake()

    def _expire(self) -> None:
        """Fail the request in progress, whose time limit is over."""
        self._fail(NoResponse(network_errors.TIMED_OUT))
