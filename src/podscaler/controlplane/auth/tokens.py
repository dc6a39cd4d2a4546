"""Bearer tokens: making, keeping and recognising them.

`ensure` is called by the wiring of `up`, in a thread; `Authenticator` by `apiserver.app` for every request.
"""

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.registry.users import User

TOKEN_BYTES = 32
TOKEN_MIN_CHARACTERS = 16
DEFAULT_AUDIENCES = ("https://kubernetes.default.svc.cluster.local",)


def ensure(path: Path) -> str:
    """The token kept in `path` (0600), made on first use.

    Raises:
        UsageError: the file cannot be read or written, or is too short to be a token.
    """
    content = secret_files.read(path)
    if content is None:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        secret_files.write(path, token.encode() + b"\n")
        return token
    token = content.decode("ascii", "replace").strip()
    if len(token) < TOKEN_MIN_CHARACTERS:
        raise UsageError(f"{path} holds no token: remove it to have a new one made")
    return token


@dataclass(frozen=True, slots=True)
class TokenFault:
    """Why a token is nobody's, in upstream's words."""

    message: str


@dataclass(frozen=True, slots=True)
class Known:
    """Whose a token is, and for which of the asked audiences it is good."""

    user: User
    audiences: Sequence[str]


INVALID = TokenFault("invalid bearer token")


class AccountTokenVerifier(Protocol):
    """Who knows the tokens of service accounts."""

    @property
    def audiences(self) -> Sequence[str]:
        """Those for which a token must be good to be used here."""
        ...

    def user_of_token(self, token: str, audiences: Sequence[str]) -> Known | TokenFault | None:
        """Whose token it is; None for one that was not made for a service account."""
        ...


class Authenticator:
    """Knows users by their bearer tokens.

    Args:
        tokens: user by token.
        accounts: knows service accounts, None where there are none.
    """

    def __init__(self, tokens: Mapping[str, User], accounts: AccountTokenVerifier | None = None) -> None:
        self._digests = [(_digest(token), user) for token, user in tokens.items()]
        self._accounts = accounts

    @property
    def audiences(self) -> Sequence[str]:
        """Those for which a token must be good to be used here."""
        return self._accounts.audiences if self._accounts is not None else DEFAULT_AUDIENCES

    def user_of(self, authorization: str) -> User | None:
        """The user whom the `Authorization` header names, None where it names nobody."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        found = self.user_of_token(token.strip(), self.audiences)
        return found.user if isinstance(found, Known) else None

    def user_of_token(self, token: str, audiences: Sequence[str]) -> Known | TokenFault:
        """Whose token it is.

        Every known token is compared, each in constant time, so that the time taken tells nothing about any of them.
        """
        given = _digest(token)
        user: User | None = None
        for digest, owner in self._digests:
            if hmac.compare_digest(digest, given):
                user = owner
        if user is not None:
            own = self.audiences
            common = [audience for audience in audiences if audience in own]
            return Known(user, common) if common else INVALID
        found = self._accounts.user_of_token(token, audiences) if self._accounts is not None else None
        return found or INVALID


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
