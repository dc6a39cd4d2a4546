"""Chooses the endpoint of a new connection: least connections, round robin among equals.

`port_listener` and `datagram_listener` make one `Balancer` for each port of each Service, `service_proxy` replaces its
endpoints, and `proxied_connection` calls `acquire` and `release`. It does no I/O. Rules:

1. Candidates are the ready endpoints; if there is none, the terminating endpoints that still serve.
2. The candidate with the fewest connections is chosen among at most `MAX_COMPARED_ENDPOINTS`, starting at the next in
   turn, so that the cost does not depend on the number of endpoints.
3. With session affinity (sessionAffinity: ClientIP), a client that reconnects before the timeout gets the same
   endpoint, as long as it is a candidate.

Source: documentation of Service ("Virtual IPs"), sessionAffinity.
"""

import asyncio
import itertools
import math
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from podscaler.base.clock import Clock

Address = tuple[str, int]
"""IP address and port number."""

MAX_COMPARED_ENDPOINTS = 32
MAX_AFFINITY_CLIENTS = 10_000
"""The most clients of one port whose endpoint is kept; those with the oldest connections are removed first."""


@dataclass(frozen=True, slots=True)
class Backends:
    """The endpoints of one port: ready ones, and terminating ones that are used only if none is ready."""

    ready: tuple[Address, ...] = ()
    draining: tuple[Address, ...] = ()


class Balancer:
    """The endpoints of one port of a Service, with the number of connections to each.

    Args:
        clock: measures the timeout of the session affinity.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backends = Backends()
        self._affinity_s: int | None = None
        self._connections: dict[Address, int] = {}
        # IP address of the client -> its endpoint, and the instant until which it stays (monotonic seconds)
        self._affinity: OrderedDict[str, tuple[Address, float]] = OrderedDict()
        self._next_index = 0
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
        self._changed = asyncio.Event()  # for calls of `wait_for_change` from now on

    async def wait_for_change(self) -> None:
        """Return at the next `replace` with other endpoints."""
        await self._changed.wait()

    def acquire(self, client_ip: str, tried: Collection[Address] = ()) -> Address | None:
        """Choose the endpoint for a new connection, which is counted until `release`.

        None if there is no candidate that is not in `tried`.

        Args:
            client_ip: the client's IP address.
            tried: the endpoints that have refused this connection.
        """
        address = self._affine_endpoint(client_ip, tried) or self._choose_least_loaded(tried)
        if address is not None:
            self._connections[address] = self._connections.get(address, 0) + 1
            self._keep_endpoint(client_ip, address)
        return address

    def release(self, address: Address) -> None:
        """Count a connection to `address` no longer: it ended, or could not be opened."""
        remaining_connections = self._connections[address] - 1
        if remaining_connections:
            self._connections[address] = remaining_connections
        else:
            del self._connections[address]

    def _choose_least_loaded(self, tried: Collection[Address]) -> Address | None:
        """The candidate by rule 2, None if every candidate is in `tried`; the next call starts one further."""
        candidates = self.candidates
        if not candidates:
            return None
        self._next_index = (self._next_index + 1) % len(candidates)
        in_turn = (candidates[(self._next_index + offset) % len(candidates)] for offset in range(len(candidates)))
        untried = (address for address in in_turn if address not in tried)
        least_loaded, fewest_connections = None, math.inf
        for address in itertools.islice(untried, MAX_COMPARED_ENDPOINTS):
            connections = self._connections.get(address, 0)
            if connections == 0:
                return address
            if connections < fewest_connections:
                least_loaded, fewest_connections = address, connections
        return least_loaded

    def _affine_endpoint(self, client_ip: str, tried: Collection[Address]) -> Address | None:
        """The candidate by rule 3, None if rule 2 decides."""
        if self._affinity_s is None or client_ip not in self._affinity:
            return None
        address, until_s = self._affinity[client_ip]
        is_usable = self._clock.monotonic_s() < until_s and address in self.candidates and address not in tried
        return address if is_usable else None

    def _keep_endpoint(self, client_ip: str, address: Address) -> None:
        """Let the next connections of the client go to this endpoint (rule 3), if there is session affinity."""
        if self._affinity_s is None:
            return
        self._affinity[client_ip] = address, self._clock.monotonic_s() + self._affinity_s
        self._affinity.move_to_end(client_ip)
        while len(self._affinity) > MAX_AFFINITY_CLIENTS:
            self._affinity.popitem(last=False)
