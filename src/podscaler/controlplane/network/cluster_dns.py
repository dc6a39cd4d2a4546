"""Opens and runs the cluster DNS server of `podscaler up`, where port 53 of the node's address can be bound.

`podscaler.cli.up.machine` creates `ClusterDNS` before the node agent, which writes its address into pods' resolv.conf.
Without a DNS server (port 53 needs privileges on most machines) the agent writes the names of Services into pods' hosts
files.
"""

import asyncio
import logging

from podscaler.controlplane.network import dns_forwarding, dns_server
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.dns_server import NameServer, Sockets
from podscaler.controlplane.network.dns_zone import Zone
from podscaler.controlplane.registry.registry import Registry

_log = logging.getLogger(__name__)


class ClusterDNS:
    """The DNS server of one cluster; without an `address` there is none, and `run` only waits.

    Args:
        registry: the Services and EndpointSlices.
        addresses: the DNS server listens on the node's address of this block.

    Attributes:
        address: the IP address of the DNS server, empty if port 53 could not be bound.
    """

    def __init__(self, registry: Registry, addresses: AddressBlock) -> None:
        self._zone = Zone(registry, cluster_cidr=addresses.cidr)
        self._sockets = _open_sockets(addresses)
        self.address = addresses.node_address if self._sockets is not None else ""

    async def run(self) -> None:
        """Serve until cancelled; without sockets only wait."""
        if self._sockets is None:
            await asyncio.Event().wait()
        else:
            forward_to = await asyncio.to_thread(dns_forwarding.machine_resolvers)
            await NameServer(self._zone, self._sockets, forward_to=forward_to).run()

    def close(self) -> None:
        """Close the sockets."""
        if self._sockets is not None:
            self._sockets.close()


def _open_sockets(addresses: AddressBlock) -> Sockets | None:
    """The sockets of the DNS server; None if the node has no address of its own, or port 53 cannot be bound."""
    if addresses.is_shared:
        return None
    try:
        return dns_server.open_sockets(addresses.node_address)
    except OSError as error:
        _log.info("there is no cluster DNS, as port 53 cannot be bound: %s", error.strerror)
        return None
