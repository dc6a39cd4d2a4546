"""Resolves the DNS names of the cluster: Services, endpoints of headless Services, and pods.

`server` calls it for every query. Records are computed from the registry at that moment; only a reverse lookup reads
all Services.


    SERVICE.NAMESPACE.svc.ZONE            clusterIP; of a headless Service the addresses of its endpoints
    HOSTNAME.SERVICE.NAMESPACE.svc.ZONE   one endpoint (a-b-c-d for one without a hostname)
    _PORT._PROTOCOL.SERVICE...            SRV
    a-b-c-d.NAMESPACE.pod.ZONE            that address

Source: Kubernetes DNS-Based Service Discovery, 1.1. Differs: IPv4 only, no SOA, NS and TXT.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from podscaler.api import port_map
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints import slices
from podscaler.controlplane.network import messages
from podscaler.controlplane.network.messages import ResourceRecord
from podscaler.controlplane.registry.registry import Registry

ZONE: Final = "cluster.local"
SERVICES: Final = "services"
SLICES: Final = "endpointslices.discovery.k8s.io"
_ADDRESSES: Final = ".in-addr.arpa"


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
    """See the module.

    Args:
        registry: the Services, slices and namespaces.
        cluster_cidr: the addresses of this cluster, for reverse lookups.
    """

    def __init__(self, registry: Registry, *, cluster_cidr: str) -> None:
        self._registry = registry
        self._network = ipaddress.ip_network(cluster_cidr)

    def is_mine(self, name: str) -> bool:
        """Whether the cluster's zone is authoritative for the name."""
        if name.endswith(_ADDRESSES):
            address = _reversed(name)
            return address is not None and ipaddress.ip_address(address) in self._network
        return name == ZONE or name.endswith(f".{ZONE}")

    def find(self, name: str, kind: int) -> NameAnswer | None:
        """The answer for a name of the zone (`is_mine`) and a record type, None if the name does not exist."""
        if name.endswith(_ADDRESSES):
            return self._of_address(_reversed(name) or "", kind)
        labels = name.removesuffix(ZONE).strip(".").split(".") if name != ZONE else []
        match labels[::-1]:
            case [] | ["svc"] | ["pod"]:
                return NameAnswer()
            case ["svc", namespace]:
                return NameAnswer() if self._registry.find("namespaces", "", namespace) else None
            case ["svc", namespace, service, *rest]:
                found = self._registry.find(SERVICES, namespace, service)
                return None if found is None else self._of_service(found, rest, kind)
            case ["pod", namespace, dashed]:
                return self._of_pod(namespace, dashed, kind)
        return None

    def _of_service(self, service: Object, rest: list[str], kind: int) -> NameAnswer | None:
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
            return self._of_port(service, rest[0].removeprefix("_"), rest[1].removeprefix("_"), kind)
        return NameAnswer() if rest in (["_tcp"], ["_udp"]) else None

    def _hosts(self, service: Object) -> Iterator[tuple[str, str]]:
        """The addresses of a Service, each with its hostname below the Service's name (empty for a clusterIP)."""
        cluster_ip = service["spec"].get("clusterIP", "")
        if cluster_ip != "None":
            if cluster_ip:
                yield cluster_ip, ""
            return
        for one in self._slices(service):
            for endpoint in one.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready", True):
                    address = endpoint["addresses"][0]
                    yield address, endpoint.get("hostname") or address.replace(".", "-")

    def _slices(self, service: Object) -> list[Object]:
        meta = service["metadata"]
        labels = {slices.SERVICE_NAME: meta["name"]}
        return [one for one in self._registry.list(SLICES, meta["namespace"], labels=labels) if _is_ipv4(one)]

    def _of_port(self, service: Object, protocol: str, port_name: str, kind: int) -> NameAnswer | None:
        ports = [
            port
            for port in service["spec"].get("ports") or []
            if (port.get("name") or "") == port_name and port.get("protocol", "TCP").lower() == protocol
        ]
        if not ports:
            return None
        if kind not in (messages.SRV, messages.ANY):
            return NameAnswer()
        meta, moved = service["metadata"], port_map.of(service)
        base = f"{meta['name']}.{meta['namespace']}.svc.{ZONE}"
        hosts = [f"{host}.{base}" if host else base for _, host in self._hosts(service)]
        number = moved.get(ports[0]["port"], ports[0]["port"])
        return NameAnswer(tuple(messages.service(host, number) for host in hosts))

    def _of_pod(self, namespace: str, dashed: str, kind: int) -> NameAnswer | None:
        address = dashed.replace("-", ".")
        if self._registry.find("namespaces", "", namespace) is None or not _is_address(address):
            return None
        return _addresses([address], kind)

    def _of_address(self, address: str, kind: int) -> NameAnswer | None:
        names = list(self._names_of(address))
        if not names:
            return None
        wanted = kind in (messages.PTR, messages.ANY)
        return NameAnswer(tuple(map(messages.pointer, names)) if wanted else ())

    def _names_of(self, address: str) -> Iterator[str]:
        for service in self._registry.list(SERVICES):
            meta = service["metadata"]
            base = f"{meta['name']}.{meta['namespace']}.svc.{ZONE}"
            if service["spec"].get("clusterIP") == address:
                yield base
            elif service["spec"].get("clusterIP") == "None":
                yield from (f"{host}.{base}" for known, host in self._hosts(service) if known == address)


def _addresses(found: list[str], kind: int) -> NameAnswer:
    if kind not in (messages.A, messages.ANY):
        return NameAnswer()
    return NameAnswer(tuple(map(messages.address, filter(_is_address, found))))


def _is_ipv4(one: Object) -> bool:
    return bool(one.get("addressType") == "IPv4")


def _is_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 4
    except ValueError:
        return False


def _reversed(name: str) -> str | None:
    """The address of a name in the reverse zone, None if it is not one."""
    address = ".".join(reversed(name.removesuffix(_ADDRESSES).split(".")))
    return address if _is_address(address) else None
