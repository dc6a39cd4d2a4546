"""Resolves the DNS names of the cluster: Services, endpoints of headless Services, and pods.

`dns_server` calls it for every query. Records are computed from the registry at that moment; only a reverse lookup
reads all Services. Each kind of name has a method `_find_...`:

    SERVICE.NAMESPACE.svc.ZONE            A: clusterIP; of a headless Service (clusterIP None) its endpoints' addresses
    HOSTNAME.SERVICE.NAMESPACE.svc.ZONE   A: one endpoint of a headless Service (127-5-1-2 without a hostname)
    _PORT._PROTOCOL.SERVICE...            SRV: host and port number
    127-5-1-2.NAMESPACE.pod.ZONE          A: 127.5.1.2
    2.1.5.127.in-addr.arpa                PTR: the names of the Services or endpoints with the address 127.5.1.2

Source: Kubernetes DNS-Based Service Discovery, 1.1. Differs: IPv4 only; SOA, NS and TXT records are not served.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from podscaler.api import port_map
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints import slices
from podscaler.controlplane.network import dns_messages
from podscaler.controlplane.network.dns_messages import ResourceRecord
from podscaler.controlplane.registry.registry import Registry

ZONE: Final = "cluster.local"
SERVICES: Final = "services"
SLICES: Final = "endpointslices.discovery.k8s.io"
_REVERSE_ZONE: Final = ".in-addr.arpa"


@dataclass(frozen=True, slots=True)
class NameAnswer:
    """The answer for an existing name.

    Attributes:
        records: of the requested type; may be empty if the name has records of other types.
        alias: the external name of a Service of type ExternalName, else empty.
    """

    records: tuple[ResourceRecord, ...] = ()
    alias: str = ""


class Zone:
    """The DNS names of one cluster.

    Args:
        registry: the Services, EndpointSlices and namespaces.
        cluster_cidr: the addresses of this cluster, for reverse lookups.
    """

    def __init__(self, registry: Registry, *, cluster_cidr: str) -> None:
        self._registry = registry
        self._network = ipaddress.ip_network(cluster_cidr)

    def contains(self, name: str) -> bool:
        """Whether the cluster's zone is authoritative for the name."""
        if name.endswith(_REVERSE_ZONE):
            address = _parse_reverse_name(name)
            return address is not None and ipaddress.ip_address(address) in self._network
        return name == ZONE or name.endswith(f".{ZONE}")

    def find(self, name: str, kind: int) -> NameAnswer | None:
        """The answer for a name of the zone (`contains`), None if the name does not exist; `kind` is a record type."""
        if name.endswith(_REVERSE_ZONE):
            return self._find_reverse(_parse_reverse_name(name) or "", kind)
        labels = name.removesuffix(ZONE).strip(".").split(".") if name != ZONE else []
        match labels[::-1]:
            case [] | ["svc"] | ["pod"]:
                return NameAnswer()
            case ["svc", namespace]:
                return NameAnswer() if self._registry.find("namespaces", "", namespace) else None
            case ["svc", namespace, service, *rest]:
                stored_service = self._registry.find(SERVICES, namespace, service)
                return None if stored_service is None else self._find_service(stored_service, rest, kind)
            case ["pod", namespace, dashed]:
                return self._find_pod(namespace, dashed, kind)
        return None

    def _find_service(self, service: Object, rest: list[str], kind: int) -> NameAnswer | None:
        """The answer for a Service (no `rest`), an endpoint or a port; `rest` are the labels before the Service."""
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            return NameAnswer(alias=spec.get("externalName", "")) if not rest else None
        if not rest:
            return _addresses([address for address, _ in self._hosts(service)], kind)
        if len(rest) == 1 and not rest[0].startswith("_"):
            if spec.get("clusterIP") != "None":
                return None
            named = [address for address, host in self._hosts(service) if host == rest[0]]
            return _addresses(named, kind) if named else None
        if len(rest) == 2:
            return self._find_port(service, rest[0].removeprefix("_"), rest[1].removeprefix("_"), kind)
        return NameAnswer() if rest in (["_tcp"], ["_udp"]) else None

    def _hosts(self, service: Object) -> Iterator[tuple[str, str]]:
        """The addresses of a Service, each with its hostname below the Service's name (empty for a clusterIP)."""
        cluster_ip = service["spec"].get("clusterIP", "")
        if cluster_ip != "None":
            if cluster_ip:
                yield cluster_ip, ""
            return
        for slice_ in self._slices(service):
            for endpoint in slice_.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready", True):
                    address = endpoint["addresses"][0]
                    yield address, endpoint.get("hostname") or address.replace(".", "-")

    def _slices(self, service: Object) -> list[Object]:
        meta = service["metadata"]
        labels = {slices.SERVICE_NAME: meta["name"]}
        stored_slices = self._registry.list(SLICES, meta["namespace"], labels=labels)
        return [stored_slice for stored_slice in stored_slices if stored_slice.get("addressType") == "IPv4"]

    def _find_port(self, service: Object, protocol: str, port_name: str, kind: int) -> NameAnswer | None:
        """The SRV records of a port by its name; empty for other types, None for an unknown port."""
        ports = [
            port
            for port in service["spec"].get("ports") or []
            if (port.get("name") or "") == port_name and port.get("protocol", "TCP").lower() == protocol
        ]
        if not ports:
            return None
        if kind not in (dns_messages.SRV, dns_messages.ANY):
            return NameAnswer()
        meta, moved = service["metadata"], port_map.of(service)
        base = f"{meta['name']}.{meta['namespace']}.svc.{ZONE}"
        hosts = [f"{host}.{base}" if host else base for _, host in self._hosts(service)]
        number = moved.get(ports[0]["port"], ports[0]["port"])
        return NameAnswer(tuple(dns_messages.srv_record(host, number) for host in hosts))

    def _find_pod(self, namespace: str, dashed: str, kind: int) -> NameAnswer | None:
        address = dashed.replace("-", ".")
        if self._registry.find("namespaces", "", namespace) is None or not _is_address(address):
            return None
        return _addresses([address], kind)

    def _find_reverse(self, address: str, kind: int) -> NameAnswer | None:
        names = list(self._names_of(address))
        if not names:
            return None
        wanted = kind in (dns_messages.PTR, dns_messages.ANY)
        return NameAnswer(tuple(map(dns_messages.ptr_record, names)) if wanted else ())

    def _names_of(self, address: str) -> Iterator[str]:
        """The names that an address has: of a Service, or of endpoints of headless ones."""
        for service in self._registry.list(SERVICES):
            meta = service["metadata"]
            base = f"{meta['name']}.{meta['namespace']}.svc.{ZONE}"
            if service["spec"].get("clusterIP") == address:
                yield base
            elif service["spec"].get("clusterIP") == "None":
                yield from (f"{host}.{base}" for known, host in self._hosts(service) if known == address)


def _addresses(addresses: list[str], kind: int) -> NameAnswer:
    if kind not in (dns_messages.A, dns_messages.ANY):
        return NameAnswer()
    return NameAnswer(tuple(map(dns_messages.a_record, filter(_is_address, addresses))))


def _is_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 4
    except ValueError:
        return False


def _parse_reverse_name(name: str) -> str | None:
    """The address in a name of the reverse zone, None if it has none: 2.1.5.127.in-addr.arpa has 127.5.1.2."""
    address = ".".join(reversed(name.removesuffix(_REVERSE_ZONE).split(".")))
    return address if _is_address(address) else None
