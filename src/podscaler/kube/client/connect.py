"""Opens a Client of one API server over real connections, with spread retries and streamed lists (WatchList).

The command line and long-running processes open their clients here; tests put a Client on a scripted transport. A
reader (`open_reader`) sends no writes but the API server's reviews. `podscaler top` and `podscaler dashboard` read one
namespace through a NamespacedTransport.
"""

import random
import re
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.rate_limit import TokenBucket
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport, WrappedTransport

REVIEWS = ("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/v1/tokenreviews")
"""The beginnings of the paths of reviews, which a POST creates and the API server does not store."""
CLUSTER_SCOPED = ("namespaces", "nodes")
"""The cluster-scoped resources that clients of podscaler list."""
_COLLECTION = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)/([a-z]+)")
"""The path of a kind in all namespaces: the API's path, and the plural."""


class NothingIsWritten(StatusError):
    """The error of a write through a ReadOnlyTransport."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request.method} {request.path} is refused: nothing is written by a dry run", code=0)


class ReadOnlyTransport(WrappedTransport):
    """Sends reads and reviews; other requests raise NothingIsWritten."""

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError; NothingIsWritten, without sending anything, for a write."""
        is_review = request.method == "POST" and request.path.startswith(REVIEWS)
        if request.method != "GET" and not is_review:
            raise NothingIsWritten(request)
        return await self._transport.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """As in Transport. Raises NothingIsWritten for another method than GET."""
        if request.method != "GET":
            raise NothingIsWritten(request)
        return self._transport.stream(request)


class NamespacedTransport(WrappedTransport):
    """Lists and watches one namespace when all namespaces are requested.

    For a user who may read one namespace alone: informers of all namespaces then have the objects of that one. Other
    requests pass as they are, also lists of CLUSTER_SCOPED resources.

    Args:
        transport: sends the requests; closed with this one.
        namespace: the only namespace that is read.
    """

    def __init__(self, transport: Transport, namespace: str) -> None:
        super().__init__(transport)
        self._namespace = namespace

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises TransportError."""
        return await self._transport.request(self._narrowed(request))

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """As in Transport; entering and reading may raise TransportError."""
        return self._transport.stream(self._narrowed(request))

    def _narrowed(self, request: Request) -> Request:
        """The request, for one namespace if it lists or watches a kind in all namespaces."""
        match = _COLLECTION.fullmatch(request.path) if request.method == "GET" else None
        if match is None:
            return request
        prefix, plural = match.groups()
        if plural in CLUSTER_SCOPED:
            return request
        scope = urls.path("namespaces", self._namespace)
        return replace(request, path=f"{prefix}{scope}/{plural}")


async def open_client(config: Config, clock: Clock, *, user_agent: str, limit: TokenBucket | None = None) -> Client:
    """A client; no connection is made yet, and the caller closes it.

    Args:
        config: the server and the credentials.
        clock: for waits.
        user_agent: the User-Agent header.
        limit: the rate limit of requests; None for no limit.

    Raises:
        UsageError: for certificates that cannot be used.
    """
    return _client(config, await http_transport.connect(config, user_agent=user_agent), clock, limit)


async def open_reader(config: Config, clock: Clock, *, user_agent: str, limit: TokenBucket | None = None) -> Client:
    """As `open_client`; writes fail with NothingIsWritten and are not sent. Raises UsageError."""
    transport = ReadOnlyTransport(await http_transport.connect(config, user_agent=user_agent))
    return _client(config, transport, clock, limit)


def _client(config: Config, transport: Transport, clock: Clock, limit: TokenBucket | None) -> Client:
    """The client with the settings that both functions above have in common."""
    return Client(
        transport, clock, limit=limit, rng=random.Random(), streams_lists=True, credentials_text=config.credentials_text
    )
