"""Resource definition of EndpointSlice (discovery.k8s.io/v1).

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field needs regenerated type facts (CONTRIBUTING.md), its default
and its validation here; a new column, a cell in `_cells`.

Source: the API reference of discovery.k8s.io/v1. Differs: of an endpoint only the addresses are validated, of a port
only the name's uniqueness and the protocol.
"""

from functools import partial
from typing import Any

from podscaler.api.machinery import ip_addresses, names, ports, printing
from podscaler.api.machinery.field import FieldError, required, too_many
from podscaler.api.resource import checks, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_ENDPOINTS_MAX = 1000
_PORTS_MAX = 20_000
_ADDRESSES_MAX = 100
_VALUES_SHOWN = 3


def set_defaults(endpoint_slice: Object) -> None:
    """API defaults, in place: the name of a port is empty, its protocol TCP; missing lists are null."""
    for port in endpoint_slice.get("ports") or []:
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
    endpoint_slice.setdefault("endpoints", None)
    endpoint_slice.setdefault("ports", None)


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of an EndpointSlice to be stored."""
    address_type, endpoints = new.get("addressType", ""), new.get("endpoints") or []
    errors = checks.required_one_of(address_type, "addressType", _ADDRESS_TYPES)
    if len(endpoints) > _ENDPOINTS_MAX:
        return [*errors, too_many("endpoints", len(endpoints), _ENDPOINTS_MAX)]
    errors += checks.each(endpoints, "endpoints", partial(_endpoint_errors, address_type))
    errors += _port_errors(new.get("ports") or [])
    return errors if old is None else errors + checks.unchanged(address_type, old.get("addressType", ""), "addressType")


def _endpoint_errors(address_type: str, endpoint: Object, path: str) -> list[FieldError]:
    """Errors of an endpoint's addresses, which have the form that the slice's addressType says."""
    addresses, field_path = endpoint.get("addresses") or [], f"{path}.addresses"
    if not addresses:
        return [required(field_path, "must contain at least 1 address")]
    if len(addresses) > _ADDRESSES_MAX:
        return [too_many(field_path, len(addresses), _ADDRESSES_MAX)]
    rule = names.dns_subdomain_errors if address_type == "FQDN" else partial(_ip_messages, address_type)
    return checks.each_well_formed(addresses, field_path, rule)


def _ip_messages(address_type: str, address: str) -> list[str]:
    """The messages about an address that is invalid or not of the family `address_type`, if that names one."""
    parsed_address = ip_addresses.find_address(address)
    if parsed_address is None:
        return [ip_addresses.INVALID_MESSAGE]
    is_other_family = address_type in ("IPv4", "IPv6") and address_type != f"IPv{parsed_address.version}"
    return [f"must be an {address_type} address"] if is_other_family else []


def _port_errors(slice_ports: list[Object]) -> list[FieldError]:
    """Field errors of the ports: their number, repeated names (the empty one counts as a name), protocols."""
    if len(slice_ports) > _PORTS_MAX:
        return [too_many("ports", len(slice_ports), _PORTS_MAX)]
    earlier_names: set[str] = set()
    return checks.each(
        slice_ports,
        "ports",
        lambda port, item_path: [
            *checks.not_repeated(port.get("name", ""), f"{item_path}.name", earlier_names),
            *checks.one_of(port.get("protocol", ""), f"{item_path}.protocol", ports.PROTOCOLS),
        ],
    )


def _generation_content(endpoint_slice: Object) -> Any:
    """The part whose changes increase the generation: all fields, labels and annotations."""
    metadata = endpoint_slice["metadata"]
    return [
        *(endpoint_slice.get(field) for field in ("addressType", "endpoints", "ports")),
        *(metadata.get(field) for field in ("labels", "annotations")),
    ]


def _cells(endpoint_slice: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: address type, ports, addresses, the latter two cut short."""
    port_texts = [str(port.get("port") or port.get("name") or "*") for port in endpoint_slice.get("ports") or []]
    addresses = [
        address for endpoint in endpoint_slice.get("endpoints") or [] for address in endpoint.get("addresses") or []
    ]
    return [
        endpoint_slice.get("addressType", ""),
        printing.cut_short(port_texts, _VALUES_SHOWN),
        printing.cut_short(addresses, _VALUES_SHOWN),
    ]


RESOURCE = Resource(
    group="discovery.k8s.io",
    plural="endpointslices",
    kind="EndpointSlice",
    versions=(Version("v1", "discovery/v1.EndpointSlice", default=set_defaults),),
    strategy=Strategy(validate=validate, has_generation=True, spec_of=_generation_content),
    printer=tables.named(
        "slice",
        Column("AddressType", description="Whether its addresses are IPv4, IPv6 or names."),
        Column("Ports", description="Ports of its endpoints."),
        Column("Endpoints", description="Addresses of its endpoints."),
        cells=_cells,
    ),
)
