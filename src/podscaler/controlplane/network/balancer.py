"""Chooses the endpoint of a new connection: least connections, round robin among equals.

The proxy has one `Balancer` for each port of each Service; it does no I/O. Rules:

1. Candidates are the ready endpoints; if there is none, the terminating endpoints that still serve.
2. The candidate with the fewest connections is chosen among at most `CONSIDERED`, starting at the next in turn, so that
   the cost does not depend on the number of endpoints.
3. With session affinity, a client that reconnects in time gets the same endpoint, as long as it is a candidate.


Source: documentation of Service ("Virtual IPs"), sessionAffinity.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from podscaler.base.clock import Clock

Address = tuple[str, int]
"""IP address and port number."""

CONSIDERED = 32
REMEMBERED_CLIENTS = 10_000


@dataclass(frozen=True, slots=True)
class Backends:
    """The endpoints of one port: ready ones, and terminating ones that are used only if none is ready."""

    ready: tuple[Address, ...] = ()
    draining: tuple[Address, ...] = ()


class Balancer:
    """See the module; `clock` is for the session affinity."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backends = Backends()
        self._affinity_s: int | None = None
        self._connections: dict[Address, int] = {}
        self._clients: OrderedDict[str, tuple[Address, float]] = OrderedDict()
        self._turn = 0
        self._changed = asyncio.Event()

    @property
    def candidates(self) -> Sequence[Address]:
        """The endpoints for new connections."""
        return self._backends.ready or self._backends.draining

    @property
    def connections(self) -> dict[Address, int]:
        """The number of connections by endpoint, including endpoints that are no longer candidates."""
        return dict(self._connections)

    def replace(self, backends: Backends, affinity_s: int | None = None) -> None:
        """Replace the endpoints and the affinity timeout (None: no affinity); existing connections stay."""
        self._affinity_s = affinity_s
        if backends == self._backends:
            return
        self._backends = backends
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Return at the next `replace` with other endpoints."""
        await self._changed.wait()

    def acquire(self, client: str, tried: Collection[Address] = ()) -> Address | None:
        """The endpoint for a new connection of `client` (its IP address), None if all candidates were `tried`.

        The connection is counted until `release`.
        """
        address = self._remembered(client, tried) or self._least_loaded(tried)
        if address is not None:
            self._connections[address] = self._connections.get(address, 0) + 1
            self._remember(client, address)
        return address

    def release(self, address: Address) -> None:
        """Count a connection to `address` no longer: it ended, or could not be opened."""
        left = self._connections[address] - 1
        if left:
            self._connections[address] = left
        else:
            del self._connections[address]

    def _least_loaded(self, tried: Collection[Address]) -> Address | None:
        candidates = self.candidates
        if not candidates:
            return None
        self._turn = (self._turn + 1) % len(candidates)
        best, fewest = None, -1
        considered = 0
        for offset in range(len(candidates)):
            address = candidates[(self._turn + offset) % len(candidates)]
            if address in tried:
                continue
            load = self._connections.get(address, 0)
            if best is None or load < fewest:
                best, fewest = address, load
            considered += 1
            if considered == CONSIDERED or fewest == 0:
                break
        return best

    def _remembered(self, client: str, tried: Collection[Address]) -> Address | None:
        if self._affinity_s is None or client not in self._clients:
            return None
        address, until_s = self._clients[client]
        usable = self._clock.monotonic_s() < until_s and address in self.candidates and address not in tried
        return address if usable else None

    def _remember(self, client: str, address: Address) -> None:
        if self._affinity_s is None:
            return
        self._clients[client] = address, self._clock.monotonic_s() + self._affinity_s
        self._clients.move_to_end(client)
        while len(self._clients) > REMEMBERED_CLIENTS:
            self._clients.popitem(last=False)
