"""The cluster DNS as a part of `up`; it is missing where port 53 cannot be bound.

`cli.up.machine` creates it before the node, which writes its address into pods' resolv.conf. Without a name server
(port 53 needs privileges on most machines) the node writes the names of Services into pods' hosts files.
"""

import asyncio
import logging

from podscaler.controlplane.network import resolvers, server
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.server import NameServer, Sockets
from podscaler.controlplane.network.zone import Zone
from podscaler.controlplane.registry.registry import Registry

_log = logging.getLogger(__name__)


class ClusterNames:
    """See the module.

    Args:
        registry: the Services and slices.
        addresses: the name server listens on the node's address.

    Attributes:
        address: the IP address of the name server, empty without one.
    """

    def __init__(self, registry: Registry, addresses: AddressBlock) -> None:
        self._zone = Zone(registry, cluster_cidr=addresses.cidr)
        self._sockets = _open(addresses)
        self.address = addresses.node_address if self._sockets is not None else ""

    async def run(self) -> None:
        """Serve until cancelled; without a name server only wait."""
        if self._sockets is None:
            await asyncio.Event().wait()
        else:
            forward_to = await asyncio.to_thread(resolvers.machine_resolvers)
            await NameServer(self._zone, self._sockets, forward_to=forward_to).run()

    def close(self) -> None:
        """Close the sockets."""
        if self._sockets is not None:
            self._sockets.close()


def _open(addresses: AddressBlock) -> Sockets | None:
    if addresses.is_shared:
        return None
    try:
        return server.open_sockets(addresses.node_address)
    except OSError as error:
        _log.info("there is no cluster DNS, as port 53 cannot be bound: %s", error.strerror)
        return None
