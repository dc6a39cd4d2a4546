"""The record of NetworkPolicy (networking.k8s.io/v1): kept for clients; no traffic is kept off by it.

Source: the API reference of networking.k8s.io/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api import printing
from podscaler.api.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.kinds import label_selector
from podscaler.api.resources import Column, Object, Printer, Resource, Strategy, Version

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = ("Ingress", "Egress")
_PEERS = {"ingress": "from", "egress": "to"}
_LAST_PORT = 65_535


def fill(policy: Object) -> None:
    """API defaults, in place."""
    spec = policy.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in _PEERS:
        for rule in spec.get(direction) or []:
            for port in rule.get("ports") or []:
                port.setdefault("protocol", "TCP")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a NetworkPolicy to be stored."""
    del old
    spec = new["spec"]
    found = label_selector.faults(spec.get("podSelector") or {}, "spec.podSelector")
    for direction in _PEERS:
        for index, rule in enumerate(spec.get(direction) or []):
            found += _rule_faults(rule, direction, f"spec.{direction}[{index}]")
    types = spec.get("policyTypes") or []
    found += [
        not_supported(f"spec.policyTypes[{n}]", t, sorted(_TYPES)) for n, t in enumerate(types) if t not in _TYPES
    ]
    return found


def _rule_faults(rule: Object, direction: str, path: str) -> list[FieldError]:
    found = []
    for index, port in enumerate(rule.get("ports") or []):
        found += _port_faults(port, f"{path}.ports[{index}]")
    side = _PEERS[direction]
    for index, peer in enumerate(rule.get(side) or []):
        found += _peer_faults(peer, f"{path}.{side}[{index}]")
    return found


def _port_faults(port: Object, path: str) -> list[FieldError]:
    found = []
    protocol, number = port.get("protocol", ""), port.get("port")
    if protocol not in _PROTOCOLS:
        found.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if isinstance(number, int) and not 1 <= number <= _LAST_PORT:
        found.append(invalid(f"{path}.port", number, f"must be between 1 and {_LAST_PORT}, inclusive"))
    return found


def _peer_faults(peer: Object, path: str) -> list[FieldError]:
    found = []
    for name in ("podSelector", "namespaceSelector"):
        found += label_selector.faults(peer.get(name) or {}, f"{path}.{name}")
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    if not given:
        found.append(required(path, "must specify a peer"))
    elif "ipBlock" in given and len(given) > 1:
        found.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return found


def _row(policy: Object, now_ns: int) -> list[Any]:
    selector = label_selector.text((policy.get("spec") or {}).get("podSelector"))
    return [policy["metadata"].get("name", ""), selector, printing.created_age(policy, now_ns)]


RESOURCE = Resource(
    group="networking.k8s.io",
    plural="networkpolicies",
    singular="networkpolicy",
    kind="NetworkPolicy",
    versions=(Version("v1", "networking/v1.NetworkPolicy", default=fill),),
    storage_version="v1",
    short_names=("netpol",),
    strategy=Strategy(validate=faults, has_generation=True),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the policy, unique within its namespace."),
            Column("Pod-Selector", description="The pods that it is for."),
            Column("Age", description="Time since the policy was created."),
        ),
        row=_row,
    ),
)
