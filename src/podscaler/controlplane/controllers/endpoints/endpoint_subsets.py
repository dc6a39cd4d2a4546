"""Brings the subsets of an Endpoints object into the canonical form in which kube-controller-manager writes them.

`endpoint_object` calls `canonical`, so that equal endpoints are equal objects: two subsets {addresses: [10.0.0.1],
ports: [80]} and {addresses: [10.0.0.1], ports: [443]} become one with both ports. Rules:

1. Ports that the same addresses serve, with the same readiness of each, share a subset; an address may be in several.
2. An address that is both ready and not ready on a port is not ready there.
3. Subsets and ports are sorted by hash; addresses by IP, then by the target's uid.

Source: core/v1 Endpoints; RepackSubsets of kube-controller-manager's endpoints package. It sorts by the MD5 hash of
Go's debugging output of a value, which the functions `..._text` reproduce.
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
    states_by_port: dict[_Port | None, _States] = {}
    for subset in subsets:
        ports: list[_Port | None] = [_port_of(port) for port in subset.get("ports") or []]
        for port in ports or [None]:
            _add_readiness(subset, states_by_port.setdefault(port, {}), addresses)
    ports_by_states: dict[frozenset[tuple[_Address, bool]], list[_Port]] = {}
    for port, states in states_by_port.items():
        ports_by_states.setdefault(frozenset(states.items()), []).extend([] if port is None else [port])
    built = [_build_subset(dict(states), ports, addresses) for states, ports in ports_by_states.items()]
    return built if len(built) < 2 else sorted(built, key=lambda subset: _md5(_subset_text(subset)))


def _add_readiness(subset: Object, states: _States, addresses: dict[_Address, Object]) -> None:
    """Add the addresses of a subset to `addresses`, and their readiness on one of its ports to `states` (rule 2)."""
    for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(field) or []:
            key = (address.get("ip", ""), (address.get("targetRef") or {}).get("uid", ""))
            addresses.setdefault(key, address)
            states[key] = states.get(key, True) and is_ready


def _build_subset(states: _States, ports: Sequence[_Port], addresses: Mapping[_Address, Object]) -> Object:
    """A subset with its addresses and ports in upstream's order."""
    ordered = sorted(states)
    result: Object = {}
    for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
        listed = [addresses[key] for key in ordered if states[key] is is_ready]
        result |= {field: listed} if listed else {}
    ordered_ports = sorted(ports, key=lambda port: _md5(f"(v1.EndpointPort){_port_text(port)}"))
    return result | ({"ports": [_port_json(port) for port in ordered_ports]} if ports else {})


def _port_of(port: Object) -> _Port:
    return port.get("name", ""), port["port"], port.get("protocol", ""), port.get("appProtocol")


def _port_json(port: _Port) -> Object:
    name, number, protocol, application = port
    result: Object = {"name": name} if name else {}
    result |= {"port": number, "protocol": protocol}
    return result | ({} if application is None else {"appProtocol": application})


def _md5(text: str) -> bytes:
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def _subset_text(subset: Object) -> str:
    """The text of a subset as Go's debugging output, of which only the hash is used."""
    ports = [_port_text(_port_of(port)) for port in subset.get("ports") or []]
    parts = [
        f"Addresses:([]v1.EndpointAddress){_slice(map(_address_text, subset.get('addresses') or []))}",
        f"NotReadyAddresses:([]v1.EndpointAddress){_slice(map(_address_text, subset.get('notReadyAddresses') or []))}",
        f"Ports:([]v1.EndpointPort){_slice(ports)}",
    ]
    return f"(v1.EndpointSubset){{{' '.join(parts)}}}"


def _slice(texts: Iterable[str]) -> str:
    """The text of a Go slice, of its elements' texts."""
    listed = list(texts)
    return f"[{' '.join(listed)}]" if listed else "<nil>"


def _pointer(kind: str, text: str | None) -> str:
    """The text of a Go pointer to a value with that text, None for a nil pointer."""
    return f"(*{kind}){text}" if text is not None else f"(*{kind})<nil>"


def _port_text(port: _Port) -> str:
    name, number, protocol, application = port
    return (
        f"{{Name:(string){name} Port:(int32){number} Protocol:(v1.Protocol){protocol}"
        f" AppProtocol:{_pointer('string', application)}}}"
    )


def _address_text(address: Object) -> str:
    reference = address.get("targetRef")
    target = None if reference is None else f"{{{' '.join(_reference_parts(reference))}}}"
    return (
        f"{{IP:(string){address.get('ip', '')} Hostname:(string){address.get('hostname', '')}"
        f" NodeName:{_pointer('string', address.get('nodeName'))} TargetRef:{_pointer('v1.ObjectReference', target)}}}"
    )


def _reference_parts(reference: Object) -> Iterator[str]:
    for name, field in _REFERENCE_FIELDS.items():
        yield f"{name}:({'types.UID' if name == 'UID' else 'string'}){reference.get(field, '')}"
