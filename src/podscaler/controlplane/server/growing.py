"""A response that grows while its client reads: watches and followed logs.

Called by `streams` and `pod_logs`. Once its head is sent a failure can no longer be told as a status, so the connection
is cut instead: what the client has got ends in the middle, which every client knows how to take. A client that does not
read is cut off too, instead of holding what it should get for ever.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

from podscaler.controlplane.server import answers

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
        self.response = web.StreamResponse(headers={"Cache-Control": "no-cache, private"})
        answers.add_warnings(self.response, warnings)
        self.response.content_type = content_type

    async def __aenter__(self) -> Self:
        self.response.enable_chunked_encoding()
        await self.response.prepare(self._request)
        if (beginning := self._request.get(BEGINNING)) is not None:
            await beginning.tell()
        return self

    async def write(self, data: bytes) -> None:
        """Send `data` (nothing, if it is empty); returns when there is room for more.

        Raises:
            ConnectionResetError: the client has gone, or does not read.
        """
        if not data:
            return
        transport = self._request.transport
        if len(data) < SMALL_BYTES and transport is not None and transport.get_write_buffer_size() == 0:
            await self.response.write(data)  # goes out at once: no need for a timer
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
        if self._request.transport is not None:
            self._request.transport.abort()
