"""A transport that cannot change anything, whatever its user tries.

`podscaler controller --dry-run` puts its client on one, so that nothing of the process can write. Requests that ask
without changing anything pass: GET, watches, and reviews of who somebody is and what he may do (which are created,
and not stored).
"""

from contextlib import AbstractAsyncContextManager

from podscaler.base.errors import StatusError
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport

REVIEWS = ("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/v1/tokenreviews")


class NothingIsWritten(StatusError):
    """Somebody tried to write."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request.method} {request.path} is refused: nothing is written by a dry run", code=0)


class ReadOnlyTransport:
    """See the module.

    Args:
        transport: where requests go; closed with this one.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def server(self) -> str:
        """As in Transport."""
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises NothingIsWritten, without sending anything."""
        is_review = request.method == "POST" and request.path.startswith(REVIEWS)
        if request.method != "GET" and not is_review:
            raise NothingIsWritten(request)
        return await self._transport.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """As in Transport; streams only read. Raises NothingIsWritten."""
        if request.method != "GET":
            raise NothingIsWritten(request)
        return self._transport.stream(request)

    async def close(self) -> None:
        """As in Transport."""
        await self._transport.close()
