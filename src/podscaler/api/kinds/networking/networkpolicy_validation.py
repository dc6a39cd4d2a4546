"""What is wrong with a NetworkPolicy.

Called by its record.

Source: upstream's messages; the API reference of networking.k8s.io/v1.
"""

from podscaler.api.machinery import addresses, ports
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import label_selector
from podscaler.api.resource.resources import Object

PEERS = {"ingress": "from", "egress": "to"}
"""Where the peers of a rule stand, by direction."""
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a NetworkPolicy to be stored."""
    del old
    spec = new["spec"]
    found = label_selector.faults(spec.get("podSelector") or {}, "spec.podSelector")
    for direction in PEERS:
        for index, rule in enumerate(spec.get(direction) or []):
            found += _rule_faults(rule, direction, f"spec.{direction}[{index}]")
    return found + _type_faults(spec.get("policyTypes") or [], "spec.policyTypes")


def _type_faults(types: list[str], path: str) -> list[FieldError]:
    if len(types) > len(_TYPES):
        return [invalid(path, types, "may not specify more than two policyTypes")]
    return [not_supported(f"{path}[{n}]", each, _TYPES) for n, each in enumerate(types) if each not in _TYPES]


def _rule_faults(rule: Object, direction: str, path: str) -> list[FieldError]:
    found = []
    for index, port in enumerate(rule.get("ports") or []):
        found += _port_faults(port, f"{path}.ports[{index}]")
    side = PEERS[direction]
    for index, peer in enumerate(rule.get(side) or []):
        found += _peer_faults(peer, f"{path}.{side}[{index}]")
    return found


def _port_faults(port: Object, path: str) -> list[FieldError]:
    protocol, number, last = port.get("protocol", ""), port.get("port"), port.get("endPort")
    found = [] if protocol in _PROTOCOLS else [not_supported(f"{path}.protocol", protocol, _PROTOCOLS)]
    if last is not None:
        found += _last_port_faults(number, last, f"{path}.endPort")
    return found + (ports.target_faults(number, f"{path}.port") if number is not None else [])


def _last_port_faults(first: int | str | None, last: int, path: str) -> list[FieldError]:
    if first is None:
        return [invalid(path, last, "may not be specified when `port` is not specified")]
    if isinstance(first, str):
        return [invalid(path, last, "may not be specified when `port` is non-numeric")]
    found = [invalid(path, last, "must be greater than or equal to `port`")] if last < first else []
    return found + ports.number_faults(last, path)


def _peer_faults(peer: Object, path: str) -> list[FieldError]:
    found = []
    for name in ("podSelector", "namespaceSelector"):
        found += label_selector.faults(peer.get(name) or {}, f"{path}.{name}")
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    if not given:
        found.append(required(path, "must specify a peer"))
    elif "ipBlock" in given and len(given) > 1:
        found.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif "ipBlock" in given:
        found += _block_faults(peer["ipBlock"], f"{path}.ipBlock")
    return found


def _block_faults(block: Object, path: str) -> list[FieldError]:
    cidr = block.get("cidr", "")
    if not cidr:
        return [required(f"{path}.cidr")]
    found = [invalid(f"{path}.cidr", cidr, text) for text in addresses.network_faults(cidr)]
    whole = addresses.find_network(cidr)
    for index, each in enumerate((block.get("except") or []) if whole else []):
        place, part = f"{path}.except[{index}]", addresses.find_network(each)
        found += [invalid(place, each, text) for text in addresses.network_faults(each)]
        if part is not None and whole is not None and not addresses.is_part(part, whole):
            found.append(invalid(place, each, "must be a strict subset of `cidr`"))
    return found
