"""Provides the Authorization header of requests: none, a fixed bearer token, or a token file that is renewed.

`config.kubeconfig` and `config.locate` choose one; `transport.http_transport` calls it before each request, so that a
token may change while the program runs. Exec credential plugins are in `config.exec_plugin`. Secrets are never logged
and not in any `repr`.

Source: client-go's transport (a token file is read again after a minute).
"""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError

log = logging.getLogger(__name__)

TOKEN_FILE_PERIOD_S = 60.0
NO_RENEWAL_S = 1.0
"""A token that was read more recently than this is not read again after a 401."""


class Credentials(Protocol):
    """A provider of the Authorization header."""

    async def authorization(self) -> str | None:
        """The header's value for the next request; None for no such header. Raises UsageError."""
        ...

    def renew_after_401(self, authorization: str | None) -> bool:
        """The server responded with 401 to a request with that header.

        Returns whether the next `authorization` may return another header, so that a retry makes sense.
        """
        ...


class ClientCertificates(Protocol):
    """A provider of the client certificate of new connections, for certificates that are renewed."""

    async def pem(self) -> bytes | None:
        """The certificate and its key, one after the other, in PEM; None if there is none. Raises UsageError."""
        ...


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """No Authorization header: for client certificates, and for servers without authentication."""

    async def authorization(self) -> str | None:
        """None: there is no header."""
        return None

    def renew_after_401(self, authorization: str | None) -> bool:
        """False: there is nothing to renew."""
        return False


@dataclass(frozen=True, slots=True)
class StaticHeader:
    """An Authorization header that never changes, such as `Bearer abc`."""

    value: str = field(repr=False)

    async def authorization(self) -> str | None:
        """The header's value."""
        return self.value

    def renew_after_401(self, authorization: str | None) -> bool:
        """False: the header stays the same."""
        return False


def bearer(token: str) -> StaticHeader:
    """The header of a bearer token."""
    return StaticHeader(f"Bearer {token}")


class TokenFile:
    """A bearer token in a file that another process renews (a service account's).

    Args:
        path: the file.
        clock: for the minute after which the file is read again.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._header: str | None = None
        self._fresh_until_s = float("-inf")
        self._read_at_s = float("-inf")

    async def authorization(self) -> str | None:
        """The header; the file is read again once it is a minute old.

        If that fails, the last token stays in use. Raises UsageError if no token has been read yet.
        """
        if self._clock.monotonic_s() >= self._fresh_until_s:
            await self._read_token()
        return self._header

    def renew_after_401(self, authorization: str | None) -> bool:
        """Have the file read before the next request, as it may hold a newer token.

        Returns False if it was read within the last second: a repeated request would have the same token.
        """
        if authorization != self._header:
            return True
        if self._clock.monotonic_s() - self._read_at_s < NO_RENEWAL_S:
            return False
        self._fresh_until_s = float("-inf")
        return True

    async def _read_token(self) -> None:
        """Read the file; a failure is logged if there is a token already. Raises UsageError if there is none."""
        self._read_at_s = self._clock.monotonic_s()
        try:
            token = (await asyncio.to_thread(self.path.read_text, "utf-8")).strip()
            problem = "" if token else "it is empty"
        except (OSError, UnicodeDecodeError) as error:
            problem = (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text"
        if problem and self._header is None:
            raise UsageError(f"token file {self.path}: {problem}")
        if problem:
            log.warning("token file %s: %s; the last token stays in use", self.path, problem)
            return
        self._header = f"Bearer {token}"
        self._fresh_until_s = self._clock.monotonic_s() + TOKEN_FILE_PERIOD_S
