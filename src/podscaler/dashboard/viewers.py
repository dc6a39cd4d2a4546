"""Defines the viewers of the dashboard, and checks which namespaces each may see.

`podscaler.dashboard.sessions` keeps one Viewer for each session; `podscaler.dashboard.server` makes LocalViewers,
`podscaler.cli.dashboard.bearer_viewers` TokenViewers. A LocalViewer is the user of the kubeconfig with which the server
reads the cluster anyway. A TokenViewer logged in with a bearer token: the API server decides about each namespace with
a SelfSubjectAccessReview, and details are read with that token. A further kind of viewer: a class with the methods of
Viewer, made in `DashboardServer._login`.

Source: authorization.k8s.io/v1 SelfSubjectAccessReview (API reference).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.base.lru import LRU
from podscaler.kube.client.client import Client

ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CACHE_S = 60.0
"""How long the result of a review is used."""
NAMESPACES_MAX = 10_000
"""Of how many namespaces results are cached for one viewer."""
CONCURRENT_REVIEWS_MAX = 8
NEEDED_VERB, NEEDED_GROUP, NEEDED_RESOURCE = "get", "autoscaling", "horizontalpodautoscalers"


class Viewer(Protocol):
    """The user of one session.

    Attributes:
        client: reads details for the viewer; None: the server's own client does.
    """

    client: Client | None

    async def may_see(self, namespace: str) -> bool:
        """Whether the viewer may get autoscalers in a namespace. Raises StatusError if that is not known."""
        ...

    async def close(self) -> None:
        """Close what belongs to the viewer alone."""
        ...


class LocalViewer:
    """The user of the kubeconfig, who may see whatever was read."""

    client: Client | None = None

    async def may_see(self, namespace: str) -> bool:
        """True: what this user may not see was not read."""
        del namespace
        return True

    async def close(self) -> None:
        """Nothing to do."""


OpenViewer = Callable[[str], Awaitable[Viewer]]
"""Makes the viewer of a bearer token. Raises StatusError: 401 where the API server does not know the token."""


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


class TokenViewer:
    """The user of a bearer token.

    Args:
        client: has that token; closed with the viewer.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client: Client | None = client
        self._client = client  # the same, whose type does not include None
        self._clock = clock
        self._results_by_namespace: LRU[str, tuple[float, bool]] = LRU(NAMESPACES_MAX)
        self._slots = asyncio.Semaphore(CONCURRENT_REVIEWS_MAX)

    async def may_see(self, namespace: str) -> bool:
        """Whether the user may get autoscalers in all namespaces, or in this one. Raises StatusError."""
        return await self._is_allowed("") or await self._is_allowed(namespace)

    async def check(self) -> None:
        """Check that the API server knows the token. Raises StatusError: 401 where it does not."""
        await self._is_allowed("")

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _is_allowed(self, namespace: str) -> bool:
        """Whether the viewer may see a namespace (empty: all), by a review of the last CACHE_S. Raises StatusError."""
        now_s = self._clock.monotonic_s()
        cached = self._results_by_namespace.find(namespace)
        if cached is not None:
            reviewed_s, is_allowed = cached
            if now_s - reviewed_s < CACHE_S:
                return is_allowed
        async with self._slots:
            is_allowed = await self._review(namespace)
        self._results_by_namespace.put(namespace, (now_s, is_allowed))
        return is_allowed

    async def _review(self, namespace: str) -> bool:
        """Whether the API server allows the needed permission in a namespace (empty: in all). Raises StatusError."""
        attributes = {"verb": NEEDED_VERB, "group": NEEDED_GROUP, "resource": NEEDED_RESOURCE, "namespace": namespace}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        body = await self._client.post(ACCESS_REVIEWS, msgspec.json.encode(review), subject="selfsubjectaccessreviews")
        try:
            return msgspec.json.decode(body, type=_Review).status.allowed
        except msgspec.DecodeError as error:
            raise StatusError(f"the response of a review cannot be read: {error}", code=0) from None


def needed_permission(namespace: str) -> str:
    """The permission that `may_see` checks, in words."""
    return f"{NEEDED_VERB} {NEEDED_RESOURCE} in {namespace}"
