"""Finds the address of a node's kubelet in its Node object.

`scraping` calls `find_target` for each node of the cluster. The address is the first one of the preferred types;
addresses, ports and paths of Nodes are checked, as users may write them.

Source: metrics-server's flags `--kubelet-preferred-address-types`, `--kubelet-port`, `--kubelet-use-node-status-port`
and its annotation of the path.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

import msgspec

from podscaler.api.machinery import names

ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""The types in metrics-server's default order."""
PORT: Final = 10250
PATH: Final = "/metrics/resource"
PATH_ANNOTATION: Final = "metrics.k8s.io/resource-metrics-path"
_PATH = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~-]+)+")


class NodeMetadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata of a Node that scraping and `kube.informers.cache` need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class NodeAddress(msgspec.Struct, gc=False):
    """One of a Node's addresses."""

    type: str = ""
    address: str = ""


class _KubeletEndpoint(msgspec.Struct, gc=False):
    """The port of the kubelet in a node's status; 0 if it is not stated."""

    port: int = msgspec.field(default=0, name="Port")


class _DaemonEndpoints(msgspec.Struct, rename="camel", gc=False):
    """The field daemonEndpoints of a node's status."""

    kubelet_endpoint: _KubeletEndpoint = msgspec.field(default_factory=_KubeletEndpoint)


class NodeStatus(msgspec.Struct, rename="camel", gc=False):
    """The addresses and the port of a Node."""

    addresses: list[NodeAddress] | None = None
    daemon_endpoints: _DaemonEndpoints = msgspec.field(default_factory=_DaemonEndpoints)


class ScrapedNode(msgspec.Struct, gc=False):
    """A Node, with the fields that scraping needs."""

    metadata: NodeMetadata = msgspec.field(default_factory=NodeMetadata)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


@dataclass(frozen=True, slots=True)
class KubeletAddressing:
    """How kubelets are reached.

    Attributes:
        address_types: the preferred types of addresses, in order.
        port: the port of kubelets.
        uses_status_port: whether the port in the Node's status is used, where it has one.
        scheme: `https`, or `http` for tests.
    """

    address_types: tuple[str, ...] = ADDRESS_TYPES
    port: int = PORT
    uses_status_port: bool = False
    scheme: str = "https"


class NodeTargetError(ValueError):
    """A Node whose kubelet cannot be reached; str() says why."""


@dataclass(frozen=True, slots=True)
class KubeletTarget:
    """The URL at which a kubelet is scraped: `https://HOST:PORT`, and the path."""

    server: str
    path: str


def parse_address_types(types_text: str) -> tuple[str, ...]:
    """The types in a text like `InternalIP,Hostname`. Raises ValueError."""
    types = tuple(type_name.strip() for type_name in types_text.split(",") if type_name.strip())
    for type_name in types:
        if type_name not in ADDRESS_TYPES:
            raise ValueError(f'"{type_name}" is none of {", ".join(ADDRESS_TYPES)}')
    if not types:
        raise ValueError("must have at least one type of addresses")
    return types


def find_target(node: ScrapedNode, addressing: KubeletAddressing) -> KubeletTarget:
    """Where a node's kubelet is scraped. Raises NodeTargetError."""
    status_port = node.status.daemon_endpoints.kubelet_endpoint.port
    port = status_port if addressing.uses_status_port and status_port else addressing.port
    if not 0 < port < 65536:
        raise NodeTargetError(f"{port} is no port")
    path = (node.metadata.annotations or {}).get(PATH_ANNOTATION) or PATH
    if not _PATH.fullmatch(path):
        raise NodeTargetError(f"annotation {PATH_ANNOTATION}: {path[:100]!r} is no path")
    return KubeletTarget(f"{addressing.scheme}://{_host(node, addressing.address_types)}:{port}", path)


def _host(node: ScrapedNode, types: tuple[str, ...]) -> str:
    """The address of the first preferred type, IPv6 in brackets. Raises NodeTargetError."""
    addresses = node.status.addresses or []
    for address_type in types:
        for address in addresses:
            if address.type == address_type:
                return _checked_host(address.address)
    raise NodeTargetError(f"no address of the types {', '.join(types)}")


def _checked_host(address: str) -> str:
    """The host of a URL: a DNS name, or an IP address. Raises NodeTargetError."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        if names.dns_subdomain_errors(address):
            raise NodeTargetError(f"{address[:100]!r} is no address") from None
        return address
    return f"[{parsed}]" if parsed.version == 6 else str(parsed)
