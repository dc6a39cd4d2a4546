"""Resource definition of Endpoints (core/v1), which Kubernetes has deprecated in favour of EndpointSlice.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field needs regenerated type facts (CONTRIBUTING.md), and a check
in `_subset_errors` or below.

Source: the API reference of core/v1; recorded responses of kube-apiserver (tests/conformance/recorded).
Differs: Endpoints of the control plane may have loopback addresses, since pods and API server have no others here.
"""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from podscaler.api.machinery import ip_addresses, names, ports, printing
from podscaler.api.machinery.field import FieldError, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
"""Label of Endpoints that a controller writes, and its value for podscaler.controlplane.controllers.endpoints."""
_API_SERVER_ENDPOINTS = ("default", "kubernetes")  # (namespace, name)
_ADDRESS_FIELDS = ("addresses", "notReadyAddresses")
_ADDRESSES_SHOWN = 3
_DEPRECATION = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


def set_defaults(endpoints: Object) -> None:
    """API defaults, in place: the protocol of a port is TCP."""
    for subset in endpoints.get("subsets") or []:
        for port in subset.get("ports") or []:
            port["protocol"] = port.get("protocol") or "TCP"


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of Endpoints to be stored; an update that leaves `subsets` as they are has none."""
    subsets = new.get("subsets") or []
    if old is not None and subsets == (old.get("subsets") or []):
        return []
    errors = [error for index, subset in enumerate(subsets) for error in _subset_errors(subset, f"subsets[{index}]")]
    if _is_written_by_control_plane(new):  # the errors of its loopback addresses are left out
        return [error for error in errors if ip_addresses.LOOPBACK_MESSAGE not in error.text]
    return errors


def _is_written_by_control_plane(endpoints: Object) -> bool:
    """Whether the control plane writes these Endpoints: those of the API server or of the endpoints controller."""
    metadata = endpoints["metadata"]
    is_kubernetes_service = (metadata.get("namespace", ""), metadata.get("name", "")) == _API_SERVER_ENDPOINTS
    return is_kubernetes_service or (metadata.get("labels") or {}).get(MANAGED_BY) == MANAGER


def warnings(new: Object, _old: Object | None) -> list[str]:
    """The warnings about IPv6 addresses that are not in canonical form."""
    messages = []
    for subset_index, subset in enumerate(new.get("subsets") or []):
        for field in _ADDRESS_FIELDS:
            for address_index, address in enumerate(subset.get(field) or []):
                messages += _notation_warnings(
                    address.get("ip", ""), f"subsets[{subset_index}].{field}[{address_index}].ip"
                )
    return messages


def _notation_warnings(ip: str, path: str) -> list[str]:
    """The warning about an IPv6 address whose text is not the canonical one."""
    address = ip_addresses.find_address(ip)
    if address is None or address.version == 4 or str(address) == ip:
        return []
    return [f'{path}: IPv6 address "{ip}" should be in RFC 5952 canonical format ("{address}")']


def _subset_errors(subset: Object, path: str) -> list[FieldError]:
    """Errors of a subset; its ports need names if there are several."""
    errors = []
    if not any(subset.get(field) for field in _ADDRESS_FIELDS):
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for field in _ADDRESS_FIELDS:
        errors += checks.each(subset.get(field), f"{path}.{field}", _address_errors)
    subset_ports = subset.get("ports") or []
    return errors + checks.each(
        subset_ports,
        f"{path}.ports",
        lambda port, item_path: _port_errors(port, item_path, is_alone=len(subset_ports) == 1),
    )


def _address_errors(address: Object, path: str) -> list[FieldError]:
    """Field errors of an address: its IP, host name and node name; an IP that is no address has two, as upstream."""
    ip, node = address.get("ip", ""), address.get("nodeName")
    errors = checks.well_formed(ip, f"{path}.ip", _notation_messages)
    errors += checks.well_formed_if_set(address.get("hostname"), f"{path}.hostname", names.dns_label_errors)
    errors += checks.well_formed(node, f"{path}.nodeName", names.dns_subdomain_errors)
    return errors + checks.well_formed(ip, f"{path}.ip", _range_messages)


@lru_cache(maxsize=8192)
def _notation_messages(ip: str) -> tuple[str, ...]:
    """The messages about the notation of an address. Cached: large Endpoints are written often, with few changes."""
    normalized_ip = ip_addresses.without_leading_zeros(ip)
    address = _find_address(normalized_ip)
    if address is None:
        return (ip_addresses.INVALID_MESSAGE,)
    if normalized_ip != ip:
        return ("must not have leading 0s",)
    is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    return ("must not be an IPv4-mapped IPv6 address",) if is_mapped else ()


@lru_cache(maxsize=8192)
def _range_messages(ip: str) -> tuple[str, ...]:
    """The messages about an address in a range that no endpoint may have."""
    address = _find_address(ip_addresses.without_leading_zeros(ip))
    if address is None:
        return ("must be a valid IP address",)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return tuple(ip_addresses.endpoint_errors(str(mapped or address)))


def _find_address(ip: str) -> IPv4Address | IPv6Address | None:
    """The address; None if it is invalid. One with a zone (`fe80::1%eth0`), which Python allows, is invalid."""
    return None if "%" in ip else ip_addresses.find_address(ip)


def _port_errors(port: Object, path: str, *, is_alone: bool) -> list[FieldError]:
    """Errors of a port, whose name may be empty if it is the only one."""
    name, app_protocol = port.get("name", ""), port.get("appProtocol")
    check_name = checks.well_formed_if_set if is_alone else checks.required_form
    errors = check_name(name, f"{path}.name", names.dns_label_errors)
    errors += ports.number_errors(port.get("port", 0), f"{path}.port")
    errors += ports.protocol_errors(port.get("protocol", ""), f"{path}.protocol")
    return errors + checks.well_formed(app_protocol, f"{path}.appProtocol", names.label_key_errors)


def _row(endpoints: Object, now_ns: int) -> list[Any]:
    """The cells of a table row: name, addresses, age."""
    addresses_text = _addresses_text(endpoints)
    return [endpoints["metadata"].get("name", ""), addresses_text, printing.created_age(endpoints, now_ns)]


def _addresses_text(endpoints: Object) -> str:
    """At most three ready addresses; empty if no address is ready, `<none>` if there are no subsets."""
    subsets = endpoints.get("subsets") or []
    addresses = [address for subset in subsets for address in _ready_addresses(subset)]
    if addresses:
        return printing.cut_short(addresses, _ADDRESSES_SHOWN)
    return "" if subsets else printing.NONE


def _ready_addresses(subset: Object) -> Iterator[str]:
    """Yields every ready address on every port: `IP:PORT`, or the bare IP if there is no port."""
    ips = [address.get("ip", "") for address in subset.get("addresses") or []]
    subset_ports = subset.get("ports") or []
    if not subset_ports:
        yield from ips
    for port in subset_ports:
        for ip in ips:
            yield f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}"


RESOURCE = Resource(
    group="",
    plural="endpoints",
    kind="Endpoints",
    versions=(Version("v1", "core/v1.Endpoints", default=set_defaults, deprecation=_DEPRECATION),),
    short_names=("ep",),
    strategy=Strategy(validate=validate, warnings=warnings, allows_create_on_update=True),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the endpoints: that of their Service."),
            Column("Endpoints", description="Ready addresses and their ports."),
            Column("Age", description="Time since the endpoints were created."),
        ),
        row=_row,
    ),
)
