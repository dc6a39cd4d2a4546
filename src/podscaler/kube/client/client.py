"""Sends requests to one API server, returns the response's bytes and raises error responses as StatusErrors.

All clients of API servers in podscaler use a Client, for a real cluster as for the embedded one. It handles URLs and
Status, but no kinds: callers decode. `subject` names the requested resource and object in error texts
(`pods.metrics.k8s.io`, `deployments web`).

Retries: after a 429 or 5xx with an integer Retry-After the request is sent again after that many seconds, and a GET
whose connection broke after one second; at most ten times, the last ones at least five seconds apart, with a tenth of
jitter. Other errors are raised at once. If there is a rate limit, it applies to retries too.

Source: docs/spec/controller.md 10 (REST requests); docs/spec/decision.md 7.6 (How an HTTP failure becomes text).
Differs: upstream retries without a minimal delay, obeys any Retry-After (here two minutes at most: then the caller's
back-off applies), and has a default limit of 20 requests a second.
"""

import logging
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.kube.client import api_errors, urls
from podscaler.kube.transport.rate_limit import TokenBucket
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport, TransportError

log = logging.getLogger(__name__)

BROKEN_CONNECTION_DELAY_S = 1.0
RETRY_AFTER_MAX_S = 120.0
"""A response that requests a longer delay is not retried."""
JITTER_RATIO = 0.1
"""By how much a delay is lengthened at most."""
BACKOFF_S = (0.0, 0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0)
"""The minimal delay before each of the RETRIES, for servers that always respond with `Retry-After: 0`."""
RETRIES = len(BACKOFF_S)
REQUEST_TIMEOUT_S = 60.0
"""The limit of API servers for a request; without it a server that hangs would block a worker for ever."""
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

Query = Sequence[tuple[str, str]]
"""Parameters by name, not encoded, in any order; those with an empty value are not sent."""


class Client:
    """Sends requests to one API server through a transport.

    Args:
        transport: sends the requests; the client closes it.
        clock: for the delays of retries.
        limit: the rate limit of requests; None for no limit.
        rng: for the jitter of retries; None for no jitter.
        streams_lists: whether reflectors request lists as watch events (WatchList), if the server supports that.
        credentials_text: the origin and kind of the credentials, for messages.

    Requests raise StatusError for a response outside 200-206 (with the reason and details of its Status), and for none:
    that is a TransportError, with code 0.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        limit: TokenBucket | None = None,
        rng: random.Random | None = None,
        streams_lists: bool = False,
        credentials_text: str = "the given configuration",
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._limit = limit
        self._rng = rng
        self.streams_lists = streams_lists
        self.credentials_text = credentials_text

    @property
    def server(self) -> str:
        """The server's URL, for messages."""
        return self._transport.server

    def wrap_transport(self, wrap: Callable[[Transport], Transport]) -> None:
        """Replace the transport by what `wrap` returns for it; call it before the first request."""
        self._transport = wrap(self._transport)

    async def get(self, path: str, *, subject: str, query: Query = (), timeout_s: float = REQUEST_TIMEOUT_S) -> bytes:
        """The body of the response. Raises StatusError."""
        return (await self.fetch(path, subject=subject, query=query, timeout_s=timeout_s)).body

    async def fetch(
        self, path: str, *, subject: str, query: Query = (), timeout_s: float = REQUEST_TIMEOUT_S
    ) -> Response:
        """As `get`, with status (200-206) and headers. Raises StatusError."""
        request = Request("GET", path, urls.query(query), headers={"Accept": JSON}, timeout_s=timeout_s)
        return await self._send_with_retries(request, subject)

    async def put(self, path: str, body: bytes, *, subject: str) -> bytes:
        """Replace the object at `path`; returns the new one. Raises StatusError."""
        return (await self._send_with_retries(self._write_request("PUT", path, body, JSON), subject)).body

    async def post(self, path: str, body: bytes, *, subject: str) -> bytes:
        """Create in the collection at `path`; returns the new object. Raises StatusError."""
        return (await self._send_with_retries(self._write_request("POST", path, body, JSON), subject)).body

    async def patch(self, path: str, body: bytes, *, subject: str, content_type: str = MERGE_PATCH) -> bytes:
        """Patch the object at `path`; returns the new one. Raises StatusError."""
        return (await self._send_with_retries(self._write_request("PATCH", path, body, content_type), subject)).body

    async def delete(self, path: str, *, subject: str, body: bytes | None = None) -> bytes:
        """Delete the object at `path`, `body` being DeleteOptions; returns the response's body. Raises StatusError."""
        return (await self._send_with_retries(self._write_request("DELETE", path, body, JSON), subject)).body

    @asynccontextmanager
    async def watch(
        self, path: str, *, subject: str, query: Query = (), timeout_s: float | None = None
    ) -> AsyncIterator[ResponseStream]:
        """The response of a watch, whose lines are events; not retried. Entering and reading raise StatusError.

        `timeout_s` ends a watch that the server should have ended by then; None for no limit.
        """
        parameters = urls.query([*query, ("watch", "true")])
        request = Request("GET", path, parameters, headers={"Accept": JSON}, timeout_s=timeout_s)
        if self._limit is not None:
            await self._limit.take()
        async with self._transport.stream(request) as stream:
            if not 200 <= stream.status <= 206:
                response = Response(stream.status, stream.headers, await stream.read())
                raise api_errors.of_response(response, method="WATCH", subject=subject)
            yield stream

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    def _write_request(self, method: str, path: str, body: bytes | None, content_type: str) -> Request:
        """A request that writes; without a body it has no Content-Type."""
        headers = {"Accept": JSON}
        if body is not None:
            headers["Content-Type"] = content_type
        return Request(method, path, body=body, headers=headers, timeout_s=REQUEST_TIMEOUT_S)

    async def _send_with_retries(self, request: Request, subject: str) -> Response:
        """The response (200-206), after retries by the module's rules. Raises StatusError."""
        for retry in range(RETRIES):
            try:
                return await self._attempt(request, subject)
            except StatusError as failure:
                requested_s = retry_delay_s(failure, request.method)
                if requested_s is None:
                    raise
                delay_s = self._with_jitter(max(requested_s, BACKOFF_S[retry]))
                level = logging.DEBUG if isinstance(failure, TransportError) else logging.INFO
                log.log(level, "%s %s: %s; again in %g s", request.method, request.path, failure, delay_s)
            await self._clock.sleep(delay_s)
        return await self._attempt(request, subject)

    def _with_jitter(self, delay_s: float) -> float:
        """The delay, lengthened at random by JITTER_RATIO at most."""
        return delay_s if self._rng is None else delay_s * (1 + self._rng.random() * JITTER_RATIO)

    async def _attempt(self, request: Request, subject: str) -> Response:
        """Send once, when the rate limit allows it; the response (200-206). Raises StatusError."""
        if self._limit is not None:
            await self._limit.take()
        response = await self._transport.request(request)
        if 200 <= response.status <= 206:
            return response
        raise api_errors.of_response(response, method=request.method, subject=subject)


def retry_delay_s(failure: StatusError, method: str) -> float | None:
    """The delay before the same request is sent again, in seconds; None for no retry.

    `method` is that of HTTP; `informers.reflector` passes WATCH, as it resumes broken watches by its own back-off.
    """
    if isinstance(failure, TransportError):
        return BROKEN_CONNECTION_DELAY_S if failure.broken and method == "GET" else None
    seconds = failure.headers.get("Retry-After", "")
    if (failure.code == 429 or failure.code >= 500) and seconds.isascii() and seconds.isdigit():
        return float(seconds) if float(seconds) <= RETRY_AFTER_MAX_S else None
    return None


def is_conflict(error: StatusError) -> bool:
    """Whether a write failed because the object is newer: 409 with reason Conflict (not AlreadyExists)."""
    return error.code == 409 and error.reason == "Conflict"


def is_not_found(error: StatusError) -> bool:
    """Whether the object does not exist, or the resource is not served."""
    return error.reason == "NotFound"


def is_not_served(error: StatusError) -> bool:
    """Whether the server does not serve the resource: a 404 whose details name no object."""
    return error.code == 404 and not error.details.get("name")
