"""The log of the HTTP server, without what clients sent.

Called by `app`. aiohttp logs a request that is no HTTP as an error, with a traceback and the line that it could not
read: anyone who can connect could fill the log, and the line may be the one with somebody's token.
"""

import logging
from typing import Final

from aiohttp import http_exceptions

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
