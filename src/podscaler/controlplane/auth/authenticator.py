"""Authenticates requests by client certificate, or by bearer token: static tokens, and service account tokens.

Static tokens are the admin's and those of the token file (`token_file`). `podscaler up` calls `ensure_token` in a
thread for the admin's token; `apiserver.auth_filter` and `kubelet.server.node_access` call `Authenticator` and
`user_of_certificate` for every request, `apiserver.handlers.reviews` for token reviews. A new credential: a method
here, and its call in `auth_filter` and `node_access`.
"""

import hmac
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from podscaler.base.errors import UsageError
from podscaler.controlplane.auth.account_tokens import (
    DEFAULT_AUDIENCES,
    INVALID_TOKEN,
    AccountTokens,
    AuthenticatedUser,
    TokenRejection,
)
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.registry.users import User

TOKEN_BYTES = 32
TOKEN_MIN_CHARACTERS = 16


def ensure_token(path: Path) -> str:
    """The token in the file `path` (mode 0600), which is created with a random token if it is missing. Blocks.

    Raises UsageError if the file cannot be read or written, or is too short to be a token.
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
    """Maps bearer tokens to users.

    Args:
        tokens: user by static token.
        accounts: verifies tokens of service accounts, None if there are none.
    """

    def __init__(self, tokens: Mapping[str, User], accounts: AccountTokens | None = None) -> None:
        self._digests = [(_digest(token), user) for token, user in tokens.items()]
        self._accounts = accounts

    def user_of_header(self, authorization: str) -> User | None:
        """The user of an `Authorization` header; None for one that is empty, of another scheme, or not accepted."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        outcome = self.user_of_token(token.strip(), DEFAULT_AUDIENCES)
        return outcome.user if isinstance(outcome, AuthenticatedUser) else None

    def user_of_token(self, token: str, audiences: Sequence[str]) -> AuthenticatedUser | TokenRejection:
        """The user of a token that is valid for one of `audiences`, with those of them that it is valid for.

        A TokenRejection says why it is not accepted. Static tokens are valid for DEFAULT_AUDIENCES. The token is
        compared with every static token, each in constant time, against timing attacks.
        """
        digest_of_token = _digest(token)
        user: User | None = None
        for digest, owner in self._digests:
            if hmac.compare_digest(digest, digest_of_token):
                user = owner
        if user is not None:
            common_audiences = [audience for audience in audiences if audience in DEFAULT_AUDIENCES]
            return AuthenticatedUser(user, common_audiences) if common_audiences else INVALID_TOKEN
        outcome = self._accounts.user_of_token(token, audiences) if self._accounts is not None else None
        return INVALID_TOKEN if outcome is None else outcome  # None: no JWT, or another issuer


def user_of_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    """The user of a verified certificate: its common name, with its organizations as groups.

    None if there is no certificate, or it has no common name.

    Args:
        certificate: as `ssl.SSLSocket.getpeercert` returns it.
    """
    attributes: dict[str, list[str]] = {}
    for relative_name in (certificate or {}).get("subject", ()):  # such as (("commonName", "jane"),)
        for key, value in relative_name:
            attributes.setdefault(key, []).append(value)
    common_names = attributes.get("commonName")
    return User(common_names[0], tuple(attributes.get("organizationName", ()))) if common_names else None


def _digest(token: str) -> bytes:
    """The SHA-256 digest of a token: `hmac.compare_digest` takes constant time only for equal lengths."""
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
