"""Brings the subsets of Endpoints into upstream's canonical form; the endpoint controller calls it. Pure.

The API server stores subsets as they are sent. Rules:

1. Ports that the same addresses serve, with the same readiness of each, share a subset; an address may be in several.
2. An address that is both ready and not ready on a port is not ready there.
3. Subsets and ports are sorted by hash, as upstream does; addresses by their text.

Source: core/v1 Endpoints; RepackSubsets of upstream's endpoints package, which sorts by a hash of Go's debugging output
of a value.
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

_REFERENCE = {
    "Kind": "kind",
    "Namespace": "namespace",
    "Name": "name",
    "UID": "uid",
    "APIVersion": "apiVersion",
    "ResourceVersion": "resourceVersion",
    "FieldPath": "fieldPath",
}


def canonical(subsets: Iterable[Object]) -> list[Object]:
    """The subsets (valid, defaults filled in) in the canonical form; the argument stays as it is."""
    known: dict[_Address, Object] = {}
    offered: dict[_Port | None, _States] = {}
    for subset in subsets:
        ports: list[_Port | None] = [_port_of(port) for port in subset.get("ports") or []]
        for port in ports or [None]:
            _note(subset, offered.setdefault(port, {}), known)
    shared: dict[frozenset[tuple[_Address, bool]], list[_Port]] = {}
    for each, states in offered.items():
        shared.setdefault(frozenset(states.items()), []).extend([] if each is None else [each])
    made = [_subset(dict(states), ports, known) for states, ports in shared.items()]
    return made if len(made) < 2 else sorted(made, key=lambda subset: _digest(_subset_text(subset)))


def _note(subset: Object, states: _States, known: dict[_Address, Object]) -> None:
    for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(field) or []:
            key = (address.get("ip", ""), (address.get("targetRef") or {}).get("uid", ""))
            known.setdefault(key, address)
            states[key] = states.get(key, True) and is_ready


def _subset(states: _States, ports: Sequence[_Port], known: Mapping[_Address, Object]) -> Object:
    ordered = sorted(states)
    result: Object = {}
    for field, wanted in (("addresses", True), ("notReadyAddresses", False)):
        listed = [known[key] for key in ordered if states[key] is wanted]
        result |= {field: listed} if listed else {}
    ordered_ports = sorted(ports, key=lambda port: _digest(f"(v1.EndpointPort){_port_text(port)}"))
    return result | ({"ports": [_port_json(port) for port in ordered_ports]} if ports else {})


def _port_of(port: Object) -> _Port:
    return port.get("name", ""), port["port"], port.get("protocol", ""), port.get("appProtocol")


def _port_json(port: _Port) -> Object:
    name, number, protocol, application = port
    result: Object = {"name": name} if name else {}
    result |= {"port": number, "protocol": protocol}
    return result | ({} if application is None else {"appProtocol": application})


def _digest(text: str) -> bytes:
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def _subset_text(subset: Object) -> str:
    ports = [_port_text(_port_of(port)) for port in subset.get("ports") or []]
    parts = [
        f"Addresses:([]v1.EndpointAddress){_listed(map(_address_text, subset.get('addresses') or []))}",
        f"NotReadyAddresses:([]v1.EndpointAddress){_listed(map(_address_text, subset.get('notReadyAddresses') or []))}",
        f"Ports:([]v1.EndpointPort){_listed(ports)}",
    ]
    return f"(v1.EndpointSubset){{{' '.join(parts)}}}"


def _listed(texts: Iterable[str]) -> str:
    listed = list(texts)
    return f"[{' '.join(listed)}]" if listed else "<nil>"


def _pointer(kind: str, text: str | None) -> str:
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
    for name, field in _REFERENCE.items():
        yield f"{name}:({'types.UID' if name == 'UID' else 'string'}){reference.get(field, '')}"
