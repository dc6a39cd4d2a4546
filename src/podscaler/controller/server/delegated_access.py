"""Who may read /metrics, as the API server says: a TokenReview tells who asks, a SubjectAccessReview what he may.

`podscaler.controller.server.serving` asks before it answers, with `--metrics-authentication=delegated`. Rules:

1. Who sends no bearer token is system:anonymous. One that the API server does not know is refused (401).
2. Members of system:masters may everything; of others the API server is asked (403 where they may not).
3. An answer counts for CACHE_S, also a refusal: a scrape costs nothing most of the time. Tokens are not kept, only
   their digests.
4. Where the API server cannot be asked nobody is let in. No more than REVIEWS_AT_ONCE are on their way, so that
   strangers cannot keep it busy through us.

Source: k8s.io/apiserver's delegating authentication and authorization, as kube-controller-manager has them on its port.
Differs: client certificates and front proxies are not asked about; upstream answers 401 where a token review fails, and
500 where an access review does: here both are 500.
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


class Refusal(NamedTuple):
    """Why somebody gets nothing: as a Status has it."""

    code: int
    reason: str
    message: str


UNAUTHORIZED = Refusal(401, "Unauthorized", "Unauthorized")
UNKNOWN = Refusal(500, "InternalError", "who may read this could not be found out; the log says why")


class ReviewedUser(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whom a token belongs to."""

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
        client: of the API server; it must be able to make reviews.
        clock: for the age of answers.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._users: LRU[str, _Kept] = LRU(CACHED)
        self._access: LRU[tuple[bytes, str, str], _Kept] = LRU(CACHED)
        self._gate = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def refusal(self, authorization: str, verb: str, path: str) -> Refusal | None:
        """Why a request is refused; None where it is allowed.

        Args:
            authorization: the header of that name, empty where there is none.
            verb: the method in lower case.
            path: what is asked for.
        """
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_S):
                user = await self._user(authorization)
                return UNAUTHORIZED if user is None else await self._refusal_of(user, verb, path)
        except (StatusError, msgspec.DecodeError, TimeoutError) as error:
            log.warning("whether somebody may read %s could not be found out: %s", path, error or "no answer in time")
            return UNKNOWN

    async def _user(self, authorization: str) -> ReviewedUser | None:
        """Who asks; None where the token is nobody's. Raises StatusError, DecodeError."""
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

    async def _refusal_of(self, user: ReviewedUser, verb: str, path: str) -> Refusal | None:
        """Why a user is refused. Raises StatusError, DecodeError."""
        if MASTERS in user.groups:
            return None
        key = (msgspec.json.encode(user), verb, path)
        kept = self._access.find(key)
        if kept is None or kept.until_s <= self._clock.monotonic_s():
            kept = self._keep(await self._review_access(user, verb, path))
            self._access.put(key, kept)
        found: Refusal | None = kept.value
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

    async def _review_access(self, user: ReviewedUser, verb: str, path: str) -> Refusal | None:
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        what = {"nonResourceAttributes": {"path": path, "verb": verb}}
        answer = await self._review(ACCESS_REVIEWS, "SubjectAccessReview", who | what)
        status = msgspec.json.decode(answer, type=_AccessReview).status
        if status.allowed:
            return None
        why = f": {status.reason}" if status.reason else ""
        return Refusal(403, "Forbidden", f'forbidden: User "{user.username}" cannot {verb} path "{path}"{why}')

    async def _review(self, path: str, kind: str, spec: Mapping[str, Any]) -> bytes:
        group_version = "/".join(path.split("/")[2:4])
        body = {"apiVersion": group_version, "kind": kind, "spec": spec}
        async with self._gate:
            return await self._client.post(path, msgspec.json.encode(body), subject=path.rpartition("/")[2])


def _bearer_token(authorization: str) -> str:
    """The token of the header; empty where it has none."""
    parts: Sequence[str] = authorization.strip().split(" ")
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""
