"""Nothing is written but by the holder of a lease: a transport that refuses the writes of everybody else.

The controller's client is on one wherever controllers are elected; leases themselves are written past it. Each write,
repeated ones too, is looked at right before it is sent, and gets no more time than its write lease has left. So no
write begins after a write lease's end, whatever delayed it (a pause of the process, a full queue, a server that asked
to wait), and none is waited for after it.

A sync writes by the write lease of the part that its autoscaler belongs to (`enter`), and so do its events later; what
is written about autoscalers of several parts (histories) goes by the weakest write lease that the process holds.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import replace

from podscaler.base.errors import PodscalerError
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport

_entered: ContextVar[WriteLease | None] = ContextVar("podscaler_tenure", default=None)


class LeadershipLost(PodscalerError):
    """A write was refused because its write lease is over; no StatusError, as nothing is to be reported or tried again."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request.method} {request.path} is not sent: the lease that allows it is not held any more")


def enter(write_lease: WriteLease | None) -> None:
    """Write by this write lease until the running task ends or enters another; None: by the weakest."""
    _entered.set(write_lease)


def entered() -> WriteLease | None:
    """The write lease that the running task entered; None where it entered none."""
    return _entered.get()


class FencedTransport:
    """See the module.

    Args:
        transport: where requests go.
        weakest: the write lease of the process that ends first; None: it holds none.
    """

    def __init__(self, transport: Transport, weakest: Callable[[], WriteLease | None]) -> None:
        self._transport = transport
        self._weakest = weakest

    @property
    def server(self) -> str:
        """As in Transport."""
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises LeadershipLost, without sending anything."""
        if request.method == "GET":
            return await self._transport.request(request)
        write_lease = _entered.get() or self._weakest()
        remaining_s = 0.0 if write_lease is None else write_lease.remaining_s()
        if remaining_s <= 0:
            raise LeadershipLost(request)
        if request.timeout_s is None or request.timeout_s > remaining_s:
            request = replace(request, timeout_s=remaining_s)
        return await self._transport.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """As in Transport: streams only read."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """As in Transport."""
        await self._transport.close()
