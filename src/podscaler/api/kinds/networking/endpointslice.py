"""The record of EndpointSlice (discovery.k8s.io/v1).

Source: the API reference of discovery.k8s.io/v1.
"""

from typing import Any

from podscaler.api.machinery import addresses, names, printing
from podscaler.api.machinery.field import FieldError, duplicate, invalid, not_supported, required, too_many
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ENDPOINTS = 1000
_MOST_PORTS = 20_000
_MOST_ADDRESSES = 100
_SHOWN = 3


def fill(slice_: Object) -> None:
    """API defaults, in place: a port without a name is called "", and speaks TCP."""
    for port in slice_.get("ports") or []:
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
    slice_.setdefault("endpoints", None)
    slice_.setdefault("ports", None)


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with an EndpointSlice to be stored."""
    kind = new.get("addressType", "")
    if not kind:
        found = [required("addressType")]
    elif kind not in _ADDRESS_TYPES:
        found = [not_supported("addressType", kind, _ADDRESS_TYPES)]
    else:
        found = []
    endpoints, ports = new.get("endpoints") or [], new.get("ports") or []
    if len(endpoints) > _MOST_ENDPOINTS:
        return [*found, too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)]
    for index, endpoint in enumerate(endpoints):
        found += _endpoint_faults(endpoint, kind, f"endpoints[{index}]")
    found += _port_faults(ports)
    if old is not None and kind != old.get("addressType", ""):
        found.append(invalid("addressType", kind, "field is immutable"))
    return found


def _endpoint_faults(endpoint: Object, kind: str, path: str) -> list[FieldError]:
    listed = endpoint.get("addresses") or []
    if not listed:
        return [required(f"{path}.addresses", "must contain at least 1 address")]
    if len(listed) > _MOST_ADDRESSES:
        return [too_many(f"{path}.addresses", len(listed), _MOST_ADDRESSES)]
    found = []
    for index, address in enumerate(listed):
        texts = names.dns_subdomain_faults(address) if kind == "FQDN" else _ip_faults(address, kind)
        found += [invalid(f"{path}.addresses[{index}]", address, text) for text in texts]
    return found


def _ip_faults(address: str, kind: str) -> list[str]:
    found = addresses.find(address)
    if found is None:
        return [addresses.FAULT]
    return [f"must be an {kind} address"] if kind in ("IPv4", "IPv6") and kind != f"IPv{found.version}" else []


def _port_faults(ports: list[Object]) -> list[FieldError]:
    if len(ports) > _MOST_PORTS:
        return [too_many("ports", len(ports), _MOST_PORTS)]
    found = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name, protocol = port.get("name", ""), port.get("protocol", "")
        if name in seen:
            found.append(duplicate(f"ports[{index}].name", name))
        seen.add(name)
        if protocol not in _PROTOCOLS:
            found.append(not_supported(f"ports[{index}].protocol", protocol, _PROTOCOLS))
    return found


def _row(slice_: Object, now_ns: int) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in slice_.get("ports") or []]
    listed = [address for each in slice_.get("endpoints") or [] for address in each.get("addresses") or []]
    return [
        slice_["metadata"].get("name", ""),
        slice_.get("addressType", ""),
        printing.cut_short(ports, _SHOWN),
        printing.cut_short(listed, _SHOWN),
        printing.created_age(slice_, now_ns),
    ]


RESOURCE = Resource(
    group="discovery.k8s.io",
    plural="endpointslices",
    singular="endpointslice",
    kind="EndpointSlice",
    versions=(Version("v1", "discovery/v1.EndpointSlice", default=fill),),
    storage_version="v1",
    strategy=Strategy(
        validate=faults,
        has_generation=True,
        spec_of=lambda slice_: [
            *(slice_.get(part) for part in ("addressType", "endpoints", "ports")),
            *(slice_["metadata"].get(part) for part in ("labels", "annotations")),
        ],
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the slice, unique within its namespace."),
            Column("AddressType", description="Whether its addresses are IPv4, IPv6 or names."),
            Column("Ports", description="Ports of its endpoints."),
            Column("Endpoints", description="Addresses of its endpoints."),
            Column("Age", description="Time since the slice was created."),
        ),
        row=_row,
    ),
)
