"""Resolves the DNS names of the cluster: Services, endpoints of headless Services, and pods.

`dns_server` calls it for every query. Records are computed from the registry at that moment; only a reverse lookup
reads all Services. Each kind of name has a method `_find_...`, which `Zone.find` calls (a new one is a case there; a
new record type needs its encoding in `dns_messages`):

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
"""The domain of the cluster, as `ZONE` of `podscaler.controlplane.kubelet.volumes.host_names`."""
SERVICES: Final = "services"
SLICES: Final = "endpointslices.discovery.k8s.io"
_REVERSE_ZONE: Final = ".in-addr.arpa"
_UDP_OR_TCP: Final = (["_tcp"], ["_udp"])
"""The labels before a Service's name that exist without records of their own: ports are below them."""


@dataclass(frozen=True, slots=True)
class NameAnswer:
    """The answer for a name of the zone.

    Attributes:
        records: of the requested type; may be empty if the name has records of other types.
        alias: the external name of a Service of type ExternalName, else empty.
        exists: False where `dns_server` responds that there is no such name (NXDOMAIN).
    """

    records: tuple[ResourceRecord, ...] = ()
    alias: str = ""
    exists: bool = True


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

    def find(self, name: str, record_type: int) -> NameAnswer | None:
        """The answer for a name of the zone (`contains`), None if the name does not exist.

        Args:
            name: in lower case, without a trailing dot.
            record_type: the type of the requested records (`dns_messages.A`, ...).
        """
        if name.endswith(_REVERSE_ZONE):
            return self._find_reverse(_parse_reverse_name(name) or "", record_type)
        labels = name.removesuffix(ZONE).strip(".").split(".") if name != ZONE else []
        match labels[::-1]:  # the label before the zone is the first one
            case [] | ["svc"] | ["pod"]:
                return NameAnswer()
            case ["svc", namespace]:
                return NameAnswer() if self._registry.find("namespaces", "", namespace) else None
            case ["svc", namespace, service_name, *labels_before]:
                service = self._registry.find(SERVICES, namespace, service_name)
                return None if service is None else self._find_service(service, labels_before, record_type)
            case ["pod", namespace, dashed_address]:
                return self._find_pod(namespace, dashed_address, record_type)
        return None

    def _find_service(self, service: Object, labels_before: list[str], record_type: int) -> NameAnswer | None:
        """The answer for a Service, an endpoint or a port; None if there is no such name.

        Args:
            labels_before: the labels before the name of the Service, the last one first: none for the Service itself,
                [HOSTNAME] for an endpoint, [_PROTOCOL, _PORT] for a port.
        """
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            return NameAnswer(alias=spec.get("externalName", "")) if not labels_before else None
        if labels_before in _UDP_OR_TCP:
            return NameAnswer()
        match labels_before:
            case []:
                return _address_answer([address for address, _ in self._addresses_and_hosts(service)], record_type)
            case [hostname] if not hostname.startswith("_"):
                if spec.get("clusterIP") != "None":
                    return None
                addresses = [address for address, host in self._addresses_and_hosts(service) if host == hostname]
                return _address_answer(addresses, record_type) if addresses else None
            case [protocol, port_name]:
                return self._find_port(service, protocol.removeprefix("_"), port_name.removeprefix("_"), record_type)
        return None

    def _addresses_and_hosts(self, service: Object) -> Iterator[tuple[str, str]]:
        """The addresses of a Service, each with its hostname below the Service's name (empty for a clusterIP)."""
        cluster_ip = service["spec"].get("clusterIP", "")
        is_headless = cluster_ip == "None"
        if not is_headless:
            if cluster_ip:
                yield cluster_ip, ""
            return
        for endpoint_slice in self._slices_of(service):
            for endpoint in endpoint_slice.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready", True):
                    address = endpoint["addresses"][0]
                    yield address, endpoint.get("hostname") or address.replace(".", "-")

    def _slices_of(self, service: Object) -> list[Object]:
        """The EndpointSlices of a Service with IPv4 addresses."""
        meta = service["metadata"]
        labels = {slices.SERVICE_NAME: meta["name"]}
        stored_slices = self._registry.list(SLICES, meta["namespace"], labels=labels)
        return [stored_slice for stored_slice in stored_slices if stored_slice.get("addressType") == "IPv4"]

    def _find_port(self, service: Object, protocol: str, port_name: str, record_type: int) -> NameAnswer | None:
        """The SRV records of a port by its name; empty for other types, None for an unknown port.

        Args:
            protocol: `tcp` or `udp`.
        """
        port_numbers = [
            port["port"]
            for port in service["spec"].get("ports") or []
            if (port.get("name") or "") == port_name and port.get("protocol", "TCP").lower() == protocol
        ]
        if not port_numbers:
            return None
        if record_type not in (dns_messages.SRV, dns_messages.ANY):
            return NameAnswer()
        service_name = _service_name(service)
        hosts = [f"{host}.{service_name}" if host else service_name for _, host in self._addresses_and_hosts(service)]
        port_number = port_numbers[0]
        bound_port = port_map.of(service).get(port_number, port_number)
        return NameAnswer(tuple(dns_messages.srv_record(host, bound_port) for host in hosts))

    def _find_pod(self, namespace: str, dashed_address: str, record_type: int) -> NameAnswer | None:
        """The answer for the name of a pod, which is its address (127-5-1-2), whether or not a pod has that address.

        None if the namespace does not exist, or the name is no address.
        """
        address = dashed_address.replace("-", ".")
        if self._registry.find("namespaces", "", namespace) is None or not _is_ipv4(address):
            return None
        return _address_answer([address], record_type)

    def _find_reverse(self, address: str, record_type: int) -> NameAnswer | None:
        """The PTR records of an address; empty for other types, None if nothing has the address."""
        names = list(self._names_of(address))
        if not names:
            return None
        if record_type not in (dns_messages.PTR, dns_messages.ANY):
            return NameAnswer()
        return NameAnswer(tuple(map(dns_messages.ptr_record, names)))

    def _names_of(self, address: str) -> Iterator[str]:
        """The names that an address has: of a Service, or of endpoints of headless ones."""
        for service in self._registry.list(SERVICES):
            service_name = _service_name(service)
            if service["spec"].get("clusterIP") == address:
                yield service_name
            elif service["spec"].get("clusterIP") == "None":
                for endpoint_address, host in self._addresses_and_hosts(service):
                    if endpoint_address == address:
                        yield f"{host}.{service_name}"


def _service_name(service: Object) -> str:
    """The name of a Service in the zone."""
    meta = service["metadata"]
    return f"{meta['name']}.{meta['namespace']}.svc.{ZONE}"


def _address_answer(addresses: list[str], record_type: int) -> NameAnswer:
    """The answer for a name with these addresses: A records, empty for other types."""
    if record_type not in (dns_messages.A, dns_messages.ANY):
        return NameAnswer()
    return NameAnswer(tuple(map(dns_messages.a_record, filter(_is_ipv4, addresses))))


def _is_ipv4(address: str) -> bool:
    """Whether a text is an IPv4 address."""
    try:
        return ipaddress.ip_address(address).version == 4
    except ValueError:
        return False


def _parse_reverse_name(name: str) -> str | None:
    """The address in a name of the reverse zone, None if it has none: 2.1.5.127.in-addr.arpa has 127.5.1.2."""
    address = ".".join(reversed(name.removesuffix(_REVERSE_ZONE).split(".")))
    return address if _is_ipv4(address) else None
