"""Requests that are no HTTP, or too large to be read: what they are answered, and that nothing of them is logged.

Called by `app`. A line of the head that is too long is a 431, as with Go's server. aiohttp logs a request that is no
HTTP as an error, with a traceback and the line that it could not read: anyone who can connect could fill the log, and
the line may be the one with somebody's token.
"""

import logging
from http import HTTPStatus
from typing import Final

from aiohttp import http_exceptions, web

TOO_LARGE: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
LOGGER: Final = logging.getLogger(f"{__name__}.http")
"""For `aiohttp.web.Server`."""

_log = logging.getLogger(__name__)


class _WithoutContents(logging.Filter):
    """Drops records about requests that cannot be read; says at level INFO only that there was one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        fault = record.exc_info[1] if record.exc_info else None
        if not isinstance(fault, http_exceptions.HttpProcessingError):
            return True
        _log.info("a request could not be read as HTTP (%s)", type(fault).__name__)
        return False


LOGGER.addFilter(_WithoutContents())


class Server(web.Server):
    """aiohttp's server with answers of ours to requests that it cannot read."""

    def __call__(self) -> web.RequestHandler:
        """A handler for one more connection."""
        return _Handler(self, loop=self._loop, **self._kwargs)


class _Handler(web.RequestHandler):
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer; the connection is closed after it."""
        if isinstance(exc, http_exceptions.LineTooLong):
            status, message = TOO_LARGE.value, f"{TOO_LARGE.value} {TOO_LARGE.phrase}"
        return super().handle_error(request, status, exc, message)
