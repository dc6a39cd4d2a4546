"""Bearer tokens: making, keeping and recognising them.

`ensure` is called by the wiring of `up`, in a thread; `Authenticator` by `server.app` for every request.
"""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from podscaler.controlplane.access import secret_files
from podscaler.controlplane.access.users import User
from podscaler.errors import UsageError

TOKEN_BYTES = 32
TOKEN_MIN_CHARACTERS = 16


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


class Authenticator:
    """Knows users by their bearer tokens.

    Args:
        tokens: user by token.
    """

    def __init__(self, tokens: Mapping[str, User]) -> None:
        self._digests = [(_digest(token), user) for token, user in tokens.items()]

    def user_of(self, authorization: str) -> User | None:
        """The user whom the `Authorization` header names, None where it names nobody.

        Every known token is compared, each in constant time, so that the time taken tells nothing about any of them.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        given = _digest(token.strip())
        found: User | None = None
        for digest, user in self._digests:
            if hmac.compare_digest(digest, given):
                found = user
        return found


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
