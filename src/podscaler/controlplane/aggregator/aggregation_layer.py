"""Wires the aggregation layer: the index, connections and control loops for API groups that other servers serve.

`podscaler.cli.up.control_plane` creates and runs one `Aggregation`; `apiserver.handlers.remote_proxy` sends requests by
it, and `apiserver.discovery` reads its documents. A further controller: a control loop in `Aggregation.run`.
"""

import asyncio
from pathlib import Path

from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.controlplane.aggregator import remote_versions, service_resolver
from podscaler.controlplane.aggregator.availability import Availability
from podscaler.controlplane.aggregator.remote_documents import RemoteDocuments
from podscaler.controlplane.aggregator.remote_versions import Remote
from podscaler.controlplane.aggregator.server_connections import APIServerConnections
from podscaler.controlplane.aggregator.service_resolver import Address
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry

WORKERS = 4
"""How many APIServices each control loop syncs at once."""


class Aggregation:
    """The aggregation layer of one API server.

    Args:
        objects: the stored APIServices, Services and EndpointSlices.
        clock: gives the times of conditions, and waits between checks.
        identity: a PEM file with the key and the client certificate of this server as a front proxy.

    Attributes:
        remotes: the groups and versions that other servers serve.
        connections: connection pools to those servers.
        documents: their discovery documents.
    """

    def __init__(self, objects: Objects, clock: Clock, identity: Path) -> None:
        self._registry = Registry(objects, "kube-apiserver")
        self._clock = clock
        self.remotes = remote_versions.watch_remote_versions(objects)
        self.connections = APIServerConnections(identity)
        self.documents = RemoteDocuments(self._registry, self.remotes, self.connections)
        self._proxied_requests = 0
        """Counts the calls of `address_of`, which takes the endpoints in turn."""

    @property
    def generation(self) -> tuple[int, int]:
        """A value that changes whenever the discovery documents of other servers change; a cache key."""
        return self.remotes.generation, self.documents.generation

    def address_of(self, remote: Remote) -> Address:
        """The address for the next request to a server: one of its endpoints, round robin.

        Raises Unreachable if the server has no address.
        """
        addresses = service_resolver.resolve(self._registry, remote.namespace, remote.service, remote.port)
        self._proxied_requests += 1
        return addresses[self._proxied_requests % len(addresses)]

    async def run(self) -> None:
        """Check availability and read discovery documents until cancelled; a control loop that fails is restarted."""
        availability = Availability(self._registry, self.remotes, self.connections, self._clock)
        async with asyncio.TaskGroup() as group:
            for reconciler in (availability, self.documents):
                loop = ControlLoop(reconciler, self._registry, self._clock, workers=WORKERS)
                group.create_task(supervision.keep_running(reconciler.name, loop.run, self._clock))

    async def close(self) -> None:
        """Close all connections."""
        await self.connections.close()
