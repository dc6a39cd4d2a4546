"""Brings the subsets of an Endpoints object into the canonical form in which kube-controller-manager writes them.

`endpoint_object` calls `canonical`, so that equal endpoints are equal objects: two subsets {addresses: [10.0.0.1],
ports: [80]} and {addresses: [10.0.0.1], ports: [443]} become one with both ports. Rules:

1. Ports that the same addresses serve, with the same readiness of each, share a subset; an address may be in several.
2. An address that is both ready and not ready on a port is not ready there.
3. Subsets and ports are sorted by hash; addresses by IP, then by the target's uid.

Source: core/v1 Endpoints; RepackSubsets of kube-controller-manager's endpoints package. It sorts by the MD5 hash of a
value as DeepHashObject prints it (the verb %#v of go-spew), which the functions `..._text` reproduce:
`(v1.EndpointPort){Name:(string)http Port:(int32)80 Protocol:(v1.Protocol)TCP AppProtocol:(*string)<nil>}`. So a new
field of a port concerns `_Port`, `_port_key`, `_port_object` and `_port_text`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from podscaler.api.resource.resources import Object

_Address = tuple[str, str]
"""IP and uid of the target, which identify an address."""
_Port = tuple[str, int, str, str | None]
"""Name, number, protocol and application protocol."""
_States = dict[_Address, bool]
"""Whether each address of one port is ready."""

_READINESS_BY_FIELD = {"addresses": True, "notReadyAddresses": False}
"""Whether the addresses in a field of a subset are ready."""
_REFERENCE_FIELDS = {
    "Kind": "kind",
    "Namespace": "namespace",
    "Name": "name",
    "UID": "uid",
    "APIVersion": "apiVersion",
    "ResourceVersion": "resourceVersion",
    "FieldPath": "fieldPath",
}
"""The fields of an ObjectReference in the order of its Go type: name in Go, name in JSON."""


def canonical(subsets: Iterable[Object]) -> list[Object]:
    """The subsets (valid, defaults filled in) in the canonical form; the argument stays as it is."""
    addresses: dict[_Address, Object] = {}
    states_by_port: dict[_Port | None, _States] = {}  # None: the addresses of subsets without ports
    for subset in subsets:
        ports: list[_Port | None] = [_port_key(port) for port in subset.get("ports") or []]
        for port in ports or [None]:
            _collect_addresses(subset, states_by_port.setdefault(port, {}), addresses)
    ports_by_states: dict[frozenset[tuple[_Address, bool]], list[_Port]] = {}
    for port, states in states_by_port.items():
        ports_of_states = ports_by_states.setdefault(frozenset(states.items()), [])
        if port is not None:
            ports_of_states.append(port)
    repacked = [_build_subset(dict(states), ports, addresses) for states, ports in ports_by_states.items()]
    if len(repacked) < 2:  # the usual case, which needs no hash
        return repacked
    return sorted(repacked, key=lambda subset: _md5(_subset_text(subset)))


def _collect_addresses(subset: Object, states: _States, addresses: dict[_Address, Object]) -> None:
    """Add the addresses of a subset to `addresses`, and their readiness on one of its ports to `states` (rule 2)."""
    for field, is_ready in _READINESS_BY_FIELD.items():
        for address in subset.get(field) or []:
            key = (address.get("ip", ""), (address.get("targetRef") or {}).get("uid", ""))
            addresses.setdefault(key, address)
            states[key] = states.get(key, True) and is_ready


def _build_subset(states: _States, ports: Sequence[_Port], addresses: Mapping[_Address, Object]) -> Object:
    """A subset with its addresses and ports in upstream's order."""
    sorted_keys = sorted(states)
    subset: Object = {}
    for field, is_ready in _READINESS_BY_FIELD.items():
        field_addresses = [addresses[key] for key in sorted_keys if states[key] is is_ready]
        if field_addresses:
            subset[field] = field_addresses
    sorted_ports = sorted(ports, key=lambda port: _md5(f"(v1.EndpointPort){_port_text(port)}"))
    if sorted_ports:
        subset["ports"] = [_port_object(port) for port in sorted_ports]
    return subset


def _port_key(endpoint_port: Object) -> _Port:
    """The fields of an EndpointPort; an application protocol that is not set is None."""
    name, protocol = endpoint_port.get("name", ""), endpoint_port.get("protocol", "")
    return name, endpoint_port["port"], protocol, endpoint_port.get("appProtocol")


def _port_object(port: _Port) -> Object:
    """The EndpointPort with these fields; the inverse of `_port_key`."""
    name, number, protocol, app_protocol = port
    endpoint_port: Object = {"name": name} if name else {}
    endpoint_port |= {"port": number, "protocol": protocol}
    if app_protocol is not None:
        endpoint_port["appProtocol"] = app_protocol
    return endpoint_port


def _md5(text: str) -> bytes:
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def _subset_text(subset: Object) -> str:
    """The text of a subset as Go's debugging output, of which only the hash is used."""
    addresses = _slice_text(map(_address_text, subset.get("addresses") or []))
    not_ready_addresses = _slice_text(map(_address_text, subset.get("notReadyAddresses") or []))
    ports = _slice_text(_port_text(_port_key(port)) for port in subset.get("ports") or [])
    return (
        f"(v1.EndpointSubset){{Addresses:([]v1.EndpointAddress){addresses}"
        f" NotReadyAddresses:([]v1.EndpointAddress){not_ready_addresses} Ports:([]v1.EndpointPort){ports}}}"
    )


def _slice_text(element_texts: Iterable[str]) -> str:
    """The text of a Go slice, from its elements' texts."""
    joined_texts = " ".join(element_texts)
    return f"[{joined_texts}]" if joined_texts else "<nil>"


def _pointer_text(type_name: str, target_text: str | None) -> str:
    """The text of a Go pointer to a value with that text, None for a nil pointer."""
    return f"(*{type_name}){target_text}" if target_text is not None else f"(*{type_name})<nil>"


def _port_text(port: _Port) -> str:
    """The text of an EndpointPort, without its type."""
    name, number, protocol, app_protocol = port
    return (
        f"{{Name:(string){name} Port:(int32){number} Protocol:(v1.Protocol){protocol}"
        f" AppProtocol:{_pointer_text('string', app_protocol)}}}"
    )


def _address_text(address: Object) -> str:
    """The text of an EndpointAddress, without its type."""
    reference = address.get("targetRef")
    target_text = None if reference is None else f"{{{' '.join(_reference_field_texts(reference))}}}"
    node_name = _pointer_text("string", address.get("nodeName"))
    target = _pointer_text("v1.ObjectReference", target_text)
    return (
        f"{{IP:(string){address.get('ip', '')} Hostname:(string){address.get('hostname', '')}"
        f" NodeName:{node_name} TargetRef:{target}}}"
    )


def _reference_field_texts(reference: Object) -> Iterator[str]:
    """The texts of the fields of an ObjectReference."""
    for go_name, field in _REFERENCE_FIELDS.items():
        go_type = "types.UID" if go_name == "UID" else "string"
        yield f"{go_name}:({go_type}){reference.get(field, '')}"
