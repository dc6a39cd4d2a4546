"""Sends streaming responses of watches and followed logs: chunked, with a timeout for clients that do not read.

`watch_streams` and `pod_logs` use it, and `handlers.proxied_response` its timeout and `notify_start`. After the head is
sent an error cannot become a status code any more, so the connection is closed in the middle of the body: clients see a
truncated response. A client that does not read for `WRITE_TIMEOUT_S` is disconnected too, so that its pending data is
freed.

Small chunks are written to the transport directly, past aiohttp's writer, which buffers nothing after the head: a watch
event for a thousand watchers is a thousand such writes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

from podscaler.controlplane.apiserver.http import responses

WRITE_TIMEOUT_S = 30.0
DIRECT_WRITE_MAX_BYTES = 16 * 1024
"""Smaller chunks are written to the transport directly."""


@dataclass(frozen=True, slots=True)
class StreamStart:
    """A callback for the moment in which the head of a stream has been sent, for the audit log."""

    notify: Callable[[], Awaitable[None]]


STREAM_START = web.RequestKey("stream_start", StreamStart)
"""The key under which `app` puts the callback into a request."""

_log = logging.getLogger(__name__)


class StreamingResponse:
    """The response to `request` as a context manager: entering sends the head, leaving ends the body.

    An error inside the context closes the connection and is logged (unless the client has gone); it does not escape.

    Args:
        request: the request.
        content_type: of the response.
        warnings: texts of `Warning` headers.

    Attributes:
        response: aiohttp's response, for the handler to return.
    """

    def __init__(self, request: web.BaseRequest, content_type: str, warnings: Iterable[str] = ()) -> None:
        self._request = request
        self._transport: asyncio.Transport | None = None
        self.response = web.StreamResponse(headers={"Cache-Control": "no-cache, private"})
        responses.add_warnings(self.response, warnings)
        self.response.content_type = content_type

    async def __aenter__(self) -> Self:
        self.response.enable_chunked_encoding()
        await self.response.prepare(self._request)
        self._transport = self._request.transport
        await notify_start(self._request)
        return self

    @property
    def is_idle(self) -> bool:
        """Whether everything written has been sent and the connection is open."""
        transport = self._transport
        return transport is not None and transport.get_write_buffer_size() == 0 and not transport.is_closing()

    def push(self, data: bytes) -> None:
        """Send `data` (not empty) as one chunk of HTTP/1.1, without waiting; only while the response `is_idle`."""
        assert self._transport is not None
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def write(self, data: bytes) -> None:
        """Send `data`; returns when the write buffer has room for more. Does nothing for empty `data`.

        Raises ConnectionResetError if the client has disconnected, or has not read for `WRITE_TIMEOUT_S`.
        """
        if not data:
            return
        if len(data) < DIRECT_WRITE_MAX_BYTES and self.is_idle:
            self.push(data)  # no timer: the socket takes it at once
            return
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await self.response.write(data)
        except TimeoutError:
            self._abort()
            raise ConnectionResetError("the client does not read") from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            await self.response.write_eof()
            return False
        if not isinstance(error, Exception):
            return False
        if not isinstance(error, ConnectionError):
            _log.error("%s %s broke off", self._request.method, self._request.path, exc_info=error)
        self._abort()
        return True

    def _abort(self) -> None:
        """Close the connection at once, with what was not sent yet."""
        if self._transport is not None:
            self._transport.abort()


async def notify_start(request: web.BaseRequest) -> None:
    """Call the request's `StreamStart`, if it has one."""
    if (start := request.get(STREAM_START)) is not None:
        await start.notify()
