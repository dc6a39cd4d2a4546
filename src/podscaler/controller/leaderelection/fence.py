"""Sends writes only while this process holds the lease that allows them: a transport around another one.

With leader election, the controller's client has this transport; Leases themselves are written through another client.
Each write, a retry too, is checked right before it is sent, and its timeout is what its write lease has left. So no
write begins after the end of a write lease, whatever delayed it (a pause of the process, a full queue, a server that
asked to wait), and none is awaited after it. Which requests are writes is decided in `FencedTransport.request`.

A write lease is the time until which the holder of a lease may write. A sync writes by the write lease of its
autoscaler's shard (`enter`), and so do its events later. Writes about autoscalers of several shards (histories) are
allowed by the write lease of this process that ends first.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import replace

from podscaler.base.errors import PodscalerError
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.kube.transport.transport import Request, Response, ResponseStream, Transport

_current: ContextVar[WriteLease | None] = ContextVar("podscaler_write_lease", default=None)


class LeadershipLost(PodscalerError):
    """A write was not sent as its write lease has ended; no StatusError: neither retried nor reported in a status."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request.method} {request.path} is not sent: the lease that allows it is not held any more")


def enter(write_lease: WriteLease | None) -> None:
    """Use this write lease in the running task from now on; None for the process's write lease that ends first."""
    _current.set(write_lease)


def current_write_lease() -> WriteLease | None:
    """The write lease that the running task entered; None: it entered no lease."""
    return _current.get()


class FencedTransport:
    """Wraps a transport: a write of a task that has lost its lease raises LeadershipLost.

    Args:
        find_weakest: returns the process's write lease that ends first; None if it has no write lease.
    """

    def __init__(self, transport: Transport, find_weakest: Callable[[], WriteLease | None]) -> None:
        self._transport = transport
        self._find_weakest = find_weakest

    @property
    def server(self) -> str:
        return self._transport.server

    async def request(self, request: Request) -> Response:
        """As in Transport. Raises LeadershipLost, without sending anything."""
        if request.method == "GET":
            return await self._transport.request(request)
        write_lease = _current.get() or self._find_weakest()
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
        await self._transport.close()
