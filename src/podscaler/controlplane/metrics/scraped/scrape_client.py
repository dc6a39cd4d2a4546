"""Sends the HTTP requests of scrapes.

`podscaler.cli.up.machine` passes the `get` of a `ScrapeClient` to `metrics.scraped.scraper`. Proxies, cookies and
redirects are not used, and certificates are not verified, since the server is a process of this machine at an address
that the node gave to its pod. Size and duration of a response are limited.

Source: the Accept header that Prometheus sends (documentation of its scrape protocols), without protobuf.
"""

from typing import Final

import aiohttp
from aiohttp import ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from podscaler.base.version import __version__

BODY_MAX_BYTES: Final = 8 * 1024 * 1024
ACCEPT: Final = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"
)
"""The preferred formats; `escaping=allow-utf-8` permits names with dots and hyphens."""
_OK: Final = 200


class ScrapeError(Exception):
    """A scrape failed: no connection, no response in time, another status than 200, or too large; str() says which."""


class ScrapeClient:
    """An HTTP client for all scrapes, with one session, which `close` ends."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: URL, timeout_s: float) -> tuple[str, str]:
        """The body and its Content-Type. Raises ScrapeError."""
        try:
            async with self._open_session().get(
                url, allow_redirects=False, timeout=ClientTimeout(total=timeout_s)
            ) as response:
                if response.status != _OK:
                    raise ScrapeError(f"GET {url} answered with status {response.status}")
                body = await response.content.read(BODY_MAX_BYTES + 1)
                while len(body) <= BODY_MAX_BYTES and (chunk := await response.content.read(BODY_MAX_BYTES)):
                    body += chunk
                content_type = response.headers.get("Content-Type", "")
        except TimeoutError as error:
            raise ScrapeError(f"GET {url} took longer than {timeout_s:g} s") from error
        except (OSError, aiohttp.ClientError, ValueError) as error:
            raise ScrapeError(f"GET {url} failed: {error or type(error).__name__}") from error
        if len(body) > BODY_MAX_BYTES:
            raise ScrapeError(f"GET {url} answered with more than {BODY_MAX_BYTES} bytes")
        return body.decode("utf-8", "replace"), content_type

    async def close(self) -> None:
        """Close the session and its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open_session(self) -> aiohttp.ClientSession:
        """The session of all scrapes, opened at the first one."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=TCPConnector(ssl=False, limit=0, use_dns_cache=False),
                cookie_jar=DummyCookieJar(),
                headers={"Accept": ACCEPT, "User-Agent": f"podscaler/{__version__}"},
            )
        return self._session
