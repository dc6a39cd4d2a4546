"""Authenticates and authorizes requests by TokenReviews and SubjectAccessReviews of the API server.

`podscaler.controller.server.serving` calls `check` for each request of /metrics, with
`--metrics-authentication=delegated`. The adapter calls `authenticate` and `authorize` for each request. Rules:

1. A request without a bearer token is of system:anonymous. A token that the API server does not know gets 401.
2. Members of system:masters may read everything; for others the API server decides (403 if it does not allow it).
3. A result is cached for CACHE_S, a rejection too: most scrapes cost no request. Tokens are not cached, only their
   digests.
4. If a review fails, the request gets 500. At most CONCURRENT_REVIEWS_MAX reviews run at once, so that requests of
   unknown clients cannot load the API server through this endpoint.

Source: k8s.io/apiserver's delegating authentication and authorization, as kube-controller-manager has them on its port.
Differs: `check` accepts no client certificates and front proxies; upstream responds with 401 if a token review fails,
and with 500 if an access review does: here both are 500. A user who may do something with all resources of a group
in all namespaces is found by one review for all of them.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.base.lru import LRU
from podscaler.kube.client.client import Client

log = logging.getLogger(__name__)

AUTHENTICATION_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CACHE_S = 10.0
CACHED_REVIEWS_MAX = 1024
CONCURRENT_REVIEWS_MAX = 8
REVIEW_TIMEOUT_S = 10.0
ALL = "*"
MASTERS_GROUP = "system:masters"
AUTHENTICATED_GROUP = "system:authenticated"


class AccessError(NamedTuple):
    """Why a request is rejected: the fields of the Status of the response.

    Attributes:
        code: the HTTP status (401, 403, 500).
        reason, message: as in the Status.
        details: the object in question; None if the Status has none.
    """

    code: int
    reason: str
    message: str
    details: Mapping[str, str] | None = None


class AccessAttributes(NamedTuple):
    """What a request does: with a path, or with a resource.

    Attributes:
        verb: `get`, `list`, ...
        path: the path of a request that is about no resource; else empty.
        group, version, namespace, resource, subresource, name: empty if they do not apply.
    """

    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""

    @property
    def of_everything(self) -> "AccessAttributes":
        """The same verb with all resources of the group, in all namespaces."""
        return AccessAttributes(self.verb, group=self.group, version=self.version, resource=ALL, subresource=ALL)

    def spec(self) -> dict[str, Any]:
        """The attributes in a SubjectAccessReview."""
        if self.path:
            return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}
        attributes = {name: attribute for name, attribute in self._asdict().items() if attribute}
        return {"resourceAttributes": attributes}

    def rejection(self, user: str, reason: str) -> AccessError:
        """403 for a user, with the reason of the authorizer if there is one."""
        ending = f": {reason}" if reason else ""
        if self.path:
            message = f'forbidden: User "{user}" cannot {self.verb} path "{self.path}"{ending}'
            return AccessError(403, "Forbidden", message)
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        scope = f' in the namespace "{self.namespace}"' if self.namespace else " at the cluster scope"
        described = f"{self.resource}.{self.group}" + (f' "{self.name}"' if self.name else "")
        message = f'User "{user}" cannot {self.verb} resource "{resource}" in API group "{self.group}"{scope}{ending}'
        details = {"name": self.name, "group": self.group, "kind": self.resource}
        shown_details = {name: detail for name, detail in details.items() if detail}
        return AccessError(403, "Forbidden", f"{described} is forbidden: {message}", shown_details)


UNAUTHORIZED = AccessError(401, "Unauthorized", "Unauthorized")
UNREVIEWED = AccessError(500, "InternalError", "access could not be reviewed; the log has the cause")


class ReviewedUser(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user behind a token or a client certificate, as in `status.user` of a TokenReview.

    Attributes:
        groups: decide about access, with the user name; the API server's `system:authenticated` included.
        extra: further attributes of the authenticator, by key.
    """

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


ANONYMOUS = ReviewedUser("system:anonymous", groups=("system:unauthenticated",))


class _TokenStatus(msgspec.Struct):
    """The status of a TokenReview."""

    authenticated: bool = False
    user: ReviewedUser = ReviewedUser()


class _TokenReview(msgspec.Struct):
    """The response to a TokenReview."""

    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    """The status of a SubjectAccessReview."""

    allowed: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct):
    """The response to a SubjectAccessReview."""

    status: _AccessStatus


R = TypeVar("R")


class _CachedReview(NamedTuple, Generic[R]):
    """The result of a review, used until an instant of the monotonic clock."""

    until_s: float
    review_result: R


class DelegatedAccess:
    """Reviews tokens and permissions by one API server, and caches the results.

    Args:
        client: the API server's client; its user needs permission to create reviews.
        clock: measures the age of cached reviews.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        # by the digest of a token: its user, None if the token is unknown
        self._users: LRU[str, _CachedReview[ReviewedUser | None]] = LRU(CACHED_REVIEWS_MAX)
        # by encoded user, and attributes: the error, None if access is allowed
        self._access_errors: LRU[tuple[bytes, AccessAttributes], _CachedReview[AccessError | None]] = LRU(
            CACHED_REVIEWS_MAX
        )
        self._review_slots = asyncio.Semaphore(CONCURRENT_REVIEWS_MAX)

    async def check(self, authorization: str, verb: str, path: str) -> AccessError | None:
        """The error of a request: 401, 403, or 500 if a review failed; None if it is allowed.

        Args:
            authorization: the header of that name; empty if the request has none.
            verb: the method in lower case.
            path: the path of the request.
        """
        user = await self.authenticate(authorization, path)
        if user is None:
            return UNAUTHORIZED
        return user if isinstance(user, AccessError) else await self.authorize(user, AccessAttributes(verb, path))

    async def authenticate(self, authorization: str, path: str) -> ReviewedUser | AccessError | None:
        """The user of a token, or ANONYMOUS without one.

        None if the API server does not know the token; UNREVIEWED if the review failed.

        Args:
            authorization: the header of that name; empty if the request has none.
            path: the path of the request, for the log.
        """
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_S):
                return await self._find_user(authorization)
        except (StatusError, *JSON_DECODE_ERRORS, TimeoutError) as error:
            log.warning("access to %s could not be reviewed: %s", path, error or "no answer in time")
            return UNREVIEWED

    async def authorize(self, user: ReviewedUser, attributes: AccessAttributes) -> AccessError | None:
        """The error for a user (403; UNREVIEWED if the review failed); None if access is allowed."""
        if MASTERS_GROUP in user.groups:
            return None
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_S):
                wider = attributes.of_everything if attributes.resource else None
                if wider is not None and await self._find_error(user, wider) is None:
                    return None
                return await self._find_error(user, attributes)
        except (StatusError, msgspec.DecodeError, UnicodeError, TimeoutError) as error:
            subject = attributes.path or attributes.resource
            log.warning("access to %s could not be reviewed: %s", subject, error or "no answer in time")
            return UNREVIEWED

    async def _find_user(self, authorization: str) -> ReviewedUser | None:
        """The user of a request; None if the token is not known. Raises as `_review_token`."""
        token = _bearer_token(authorization)
        if not token:
            return ANONYMOUS
        if not token.isascii():  # RFC 6750 2.1; such bytes cannot be in the JSON of a review either
            return None
        digest = hashlib.sha256(token.encode()).hexdigest()
        cached = self._users.find(digest)
        if cached is None or cached.until_s <= self._clock.monotonic_s():
            cached = self._cached_review(await self._review_token(token))
            self._users.put(digest, cached)
        return cached.review_result

    async def _find_error(self, user: ReviewedUser, attributes: AccessAttributes) -> AccessError | None:
        """The error for a user; None if access is allowed. Raises as `_review_access`."""
        key = (msgspec.json.encode(user), attributes)
        cached = self._access_errors.find(key)
        if cached is None or cached.until_s <= self._clock.monotonic_s():
            cached = self._cached_review(await self._review_access(user, attributes))
            self._access_errors.put(key, cached)
        return cached.review_result

    def _cached_review(self, review_result: R) -> _CachedReview[R]:
        """A result to be used for CACHE_S from now on."""
        return _CachedReview(self._clock.monotonic_s() + CACHE_S, review_result)

    async def _review_token(self, token: str) -> ReviewedUser | None:
        """The user of a token; None if it is not known. Raises StatusError, DecodeError, UnicodeDecodeError."""
        response = await self._review(AUTHENTICATION_REVIEWS, "TokenReview", {"token": token})
        status = msgspec.json.decode(response, type=_TokenReview).status
        if not status.authenticated:
            return None
        groups = tuple(dict.fromkeys((*status.user.groups, AUTHENTICATED_GROUP)))
        return msgspec.structs.replace(status.user, groups=groups)

    async def _review_access(self, user: ReviewedUser, attributes: AccessAttributes) -> AccessError | None:
        """The error for a user; None if access is allowed. Raises StatusError, DecodeError, UnicodeError."""
        user_fields = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        response = await self._review(ACCESS_REVIEWS, "SubjectAccessReview", user_fields | attributes.spec())
        status = msgspec.json.decode(response, type=_AccessReview).status
        return None if status.allowed else attributes.rejection(user.username, status.reason)

    async def _review(self, path: str, kind: str, spec: Mapping[str, Any]) -> bytes:
        """The body of the API server's response to a review of `kind` with this spec (JSON-ready).

        Raises StatusError.
        """
        group_version = "/".join(path.split("/")[2:4])  # of /apis/GROUP/VERSION/RESOURCE
        body = {"apiVersion": group_version, "kind": kind, "spec": spec}
        async with self._review_slots:
            return await self._client.post(path, msgspec.json.encode(body), subject=path.rpartition("/")[2])


def _bearer_token(authorization: str) -> str:
    """The bearer token in the header; empty if it has none."""
    parts: Sequence[str] = authorization.strip().split(" ")
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""
