"""Delegated authentication and authorization of /metrics: a TokenReview for who, a SubjectAccessReview for whether.

`podscaler.controller.server.serving` calls `check` for each request, with `--metrics-authentication=delegated`. Rules:

1. A request without a bearer token is of system:anonymous. A token that the API server does not know gets 401.
2. Members of system:masters may read everything; for others the API server decides (403 where it does not allow it).
3. A result is cached for CACHE_S, a rejection too: most scrapes cost no request. Tokens are not kept, only their
   digests.
4. Where the API server cannot be asked, the request gets 500. At most REVIEWS_AT_ONCE reviews run at once, so that
   strangers cannot load the API server through this endpoint.

Source: k8s.io/apiserver's delegating authentication and authorization, as kube-controller-manager has them on its port.
Differs: client certificates and front proxies are not supported; upstream responds with 401 where a token review fails,
and with 500 where an access review does: here both are 500.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.base.lru import LRU
from podscaler.kube.client.client import Client

log = logging.getLogger(__name__)

IDENTITY_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CACHE_S = 10.0
CACHED = 1024
REVIEWS_AT_ONCE = 8
REVIEW_TIMEOUT_S = 10.0
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"


class AccessError(NamedTuple):
    """The code, reason and message of the Status that rejects a request."""

    code: int
    reason: str
    message: str


UNAUTHORIZED = AccessError(401, "Unauthorized", "Unauthorized")
UNKNOWN = AccessError(500, "InternalError", "access could not be reviewed; the log has the cause")


class ReviewedUser(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user of a token."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


ANONYMOUS = ReviewedUser("system:anonymous", groups=("system:unauthenticated",))


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: ReviewedUser = ReviewedUser()


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


class _Kept(NamedTuple):
    until_s: float
    value: Any


class DelegatedAccess:
    """See the module.

    Args:
        client: of the API server; its user needs permission to create reviews.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._users: LRU[str, _Kept] = LRU(CACHED)
        self._access: LRU[tuple[bytes, str, str], _Kept] = LRU(CACHED)
        self._gate = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def check(self, authorization: str, verb: str, path: str) -> AccessError | None:
        """The error of a request; None where it is allowed.

        Args:
            authorization: the header of that name, empty where there is none.
            verb: the method in lower case.
            path: of the request.
        """
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_S):
                user = await self._authenticate(authorization)
                return UNAUTHORIZED if user is None else await self._authorize(user, verb, path)
        except (StatusError, msgspec.DecodeError, TimeoutError) as error:
            log.warning("access to %s could not be reviewed: %s", path, error or "no answer in time")
            return UNKNOWN

    async def _authenticate(self, authorization: str) -> ReviewedUser | None:
        """The user of a request; None where the token is not known. Raises StatusError, DecodeError."""
        token = _bearer_token(authorization)
        if not token:
            return ANONYMOUS
        digest = hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
        kept = self._users.find(digest)
        if kept is None or kept.until_s <= self._clock.monotonic_s():
            kept = self._keep(await self._review_token(token))
            self._users.put(digest, kept)
        found: ReviewedUser | None = kept.value
        return found

    async def _authorize(self, user: ReviewedUser, verb: str, path: str) -> AccessError | None:
        """The error for a user; None where access is allowed. Raises StatusError, DecodeError."""
        if MASTERS in user.groups:
            return None
        key = (msgspec.json.encode(user), verb, path)
        kept = self._access.find(key)
        if kept is None or kept.until_s <= self._clock.monotonic_s():
            kept = self._keep(await self._review_access(user, verb, path))
            self._access.put(key, kept)
        found: AccessError | None = kept.value
        return found

    def _keep(self, value: Any) -> _Kept:
        return _Kept(self._clock.monotonic_s() + CACHE_S, value)

    async def _review_token(self, token: str) -> ReviewedUser | None:
        answer = await self._review(IDENTITY_REVIEWS, "TokenReview", {"token": token})
        status = msgspec.json.decode(answer, type=_TokenReview).status
        if not status.authenticated:
            return None
        groups = tuple(dict.fromkeys((*status.user.groups, AUTHENTICATED)))
        return msgspec.structs.replace(status.user, groups=groups)

    async def _review_access(self, user: ReviewedUser, verb: str, path: str) -> AccessError | None:
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        what = {"nonResourceAttributes": {"path": path, "verb": verb}}
        answer = await self._review(ACCESS_REVIEWS, "SubjectAccessReview", who | what)
        status = msgspec.json.decode(answer, type=_AccessReview).status
        if status.allowed:
            return None
        why = f": {status.reason}" if status.reason else ""
        return AccessError(403, "Forbidden", f'forbidden: User "{user.username}" cannot {verb} path "{path}"{why}')

    async def _review(self, path: str, kind: str, spec: Mapping[str, Any]) -> bytes:
        group_version = "/".join(path.split("/")[2:4])
        body = {"apiVersion": group_version, "kind": kind, "spec": spec}
        async with self._gate:
            return await self._client.post(path, msgspec.json.encode(body), subject=path.rpartition("/")[2])


def _bearer_token(authorization: str) -> str:
    """The bearer token in the header; empty where it has none."""
    parts: Sequence[str] = authorization.strip().split(" ")
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""
