"""How requests prove who sends them: providers of the Authorization header.

`config.kubeconfig` and `transport.config` choose one; `transport.transport` asks it before each request, so that a
token may change while the program runs. Credentials that a program hands out are in `config.exec_plugin`. Nothing here
is ever logged, and `repr` shows no secret.

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
REFUSAL_PERIOD_S = 1.0


class Credentials(Protocol):
    """Where the Authorization header comes from."""

    async def authorization(self) -> str | None:
        """The header's value for the next request, None where requests carry none."""
        ...

    def refused(self, authorization: str | None) -> bool:
        """The server answered 401 to a request with that header.

        Whether asking again may give another header, so that one more try makes sense.
        """
        ...


class ClientCertificates(Protocol):
    """Where the client certificate of new connections comes from, if it may change."""

    async def pem(self) -> bytes | None:
        """The certificate and its key, one after the other, None without one. Raises UsageError."""
        ...


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """For client certificates and for servers that ask for nothing."""

    async def authorization(self) -> str | None:
        """None."""
        return None

    def refused(self, authorization: str | None) -> bool:
        """There is nothing to renew."""
        return False


@dataclass(frozen=True, slots=True)
class StaticHeader:
    """A header that never changes; see `bearer`."""

    value: str = field(repr=False)

    async def authorization(self) -> str | None:
        """The header's value."""
        return self.value

    def refused(self, authorization: str | None) -> bool:
        """It would be the same again."""
        return False


def bearer(token: str) -> StaticHeader:
    """The header of a bearer token."""
    return StaticHeader(f"Bearer {token}")


class TokenFile:
    """A bearer token in a file that somebody else renews (a service account's).

    Args:
        path: the file.
        clock: for the minute after which the file is read again.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._value: str | None = None
        self._fresh_until_s = float("-inf")
        self._read_at_s = float("-inf")

    async def authorization(self) -> str | None:
        """The header, at most a minute old. Raises UsageError where the file cannot be read and never could."""
        if self._clock.monotonic_s() >= self._fresh_until_s:
            await self._read()
        return self._value

    def refused(self, authorization: str | None) -> bool:
        """Read the file again before the next request, at most once a second: it may hold a newer token."""
        if authorization != self._value:
            return True
        if self._clock.monotonic_s() - self._read_at_s < REFUSAL_PERIOD_S:
            return False
        self._fresh_until_s = float("-inf")
        return True

    async def _read(self) -> None:
        self._read_at_s = self._clock.monotonic_s()
        try:
            token = (await asyncio.to_thread(self.path.read_text)).strip()
        except OSError as error:
            if self._value is None:
                raise UsageError(f"token file {self.path}: {error.strerror}") from error
            log.warning("token file %s: %s; the last token stays in use", self.path, error.strerror)
            return
        self._value = f"Bearer {token}"
        self._fresh_until_s = self._clock.monotonic_s() + TOKEN_FILE_PERIOD_S
