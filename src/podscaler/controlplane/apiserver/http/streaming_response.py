"""A response that grows while its client reads: watches and followed logs.

Called by `streams` and `pod_logs`. Once its head is sent a failure can no longer be told as a status, so the connection
is cut instead: what the client has got ends in the middle, which every client knows how to take. A client that does not
read is cut off too, instead of holding what it should get for ever.

What is small goes straight to the transport as a chunk of its own: aiohttp keeps nothing back once the head is sent,
and a watch with a thousand readers consists of such writes.
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
SMALL_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a request wants to be called when its stream begins."""

    tell: Callable[[], Awaitable[None]]


BEGINNING = web.RequestKey("beginning", Beginning)

_log = logging.getLogger(__name__)


class GrowingResponse:
    """The response to `request`, begun on entering and ended on leaving; failures in between end it, and no more."""

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
        if (beginning := self._request.get(BEGINNING)) is not None:
            await beginning.tell()
        return self

    @property
    def is_idle(self) -> bool:
        """Whether all that was written has gone out, and more would go."""
        transport = self._transport
        return transport is not None and transport.get_write_buffer_size() == 0 and not transport.is_closing()

    def push(self, data: bytes) -> None:
        """Send `data`, which is not empty, as one chunk; only where the response `is_idle`."""
        assert self._transport is not None
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def write(self, data: bytes) -> None:
        """Send `data` (nothing, if it is empty); returns when there is room for more.

        Raises:
            ConnectionResetError: the client has gone, or does not read.
        """
        if not data:
            return
        if len(data) < SMALL_BYTES and self.is_idle:
            self.push(data)  # goes out at once: no need for a timer
            return
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await self.response.write(data)
        except TimeoutError:
            self._cut()
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
        self._cut()
        return True

    def _cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()
