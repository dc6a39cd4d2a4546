"""Resource definition of NetworkPolicy (networking.k8s.io/v1): defaults, validation, table; nothing is filtered here.

RESOURCE, at the end, registers the functions above it; `api.kinds.catalog` lists it for the API server.

Source: the API reference of networking.k8s.io/v1; kube-apiserver's validation messages.
"""

from functools import partial
from ipaddress import IPv4Network, IPv6Network

from podscaler.api.machinery import ip_addresses, ports
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks, label_selector, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


def set_defaults(policy: Object) -> None:
    """API defaults, in place."""
    spec = policy.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or []), *(spec.get("egress") or [])]:
        for port in rule.get("ports") or []:
            port.setdefault("protocol", "TCP")


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a NetworkPolicy to be stored."""
    spec = new["spec"]
    errors = label_selector.validate(spec.get("podSelector") or {}, "spec.podSelector")
    errors += checks.each(spec.get("ingress"), "spec.ingress", partial(_rule_errors, peers="from"))
    errors += checks.each(spec.get("egress"), "spec.egress", partial(_rule_errors, peers="to"))
    return errors + _type_errors(spec.get("policyTypes") or [], "spec.policyTypes")


def _type_errors(types: list[str], path: str) -> list[FieldError]:
    if len(types) > len(_TYPES):
        return [invalid(path, types, "may not specify more than two policyTypes")]
    return checks.each(types, path, lambda policy_type, item_path: checks.one_of(policy_type, item_path, _TYPES))


def _rule_errors(rule: Object, path: str, *, peers: str) -> list[FieldError]:
    errors = checks.each(rule.get("ports"), f"{path}.ports", _port_errors)
    return errors + checks.each(rule.get(peers), f"{path}.{peers}", _peer_errors)


def _port_errors(port: Object, path: str) -> list[FieldError]:
    protocol, number, last = port.get("protocol", ""), port.get("port"), port.get("endPort")
    errors = checks.one_of(protocol, f"{path}.protocol", _PROTOCOLS)
    if last is not None:
        errors += _last_port_errors(number, last, f"{path}.endPort")
    return errors + checks.optional(number, f"{path}.port", ports.target_errors)


def _last_port_errors(first: int | str | None, last: int, path: str) -> list[FieldError]:
    """Errors of `endPort`, the last port of a range that begins with the number `port`."""
    if first is None:
        return [invalid(path, last, "may not be specified when `port` is not specified")]
    if isinstance(first, str):
        return [invalid(path, last, "may not be specified when `port` is non-numeric")]
    errors = [invalid(path, last, "must be greater than or equal to `port`")] if last < first else []
    return errors + ports.number_errors(last, path)


def _peer_errors(peer: Object, path: str) -> list[FieldError]:
    """Errors of a peer: selectors of pods and namespaces, or a block of IP addresses."""
    errors = []
    for name in ("podSelector", "namespaceSelector"):
        errors += label_selector.validate(peer.get(name) or {}, f"{path}.{name}")
    set_names = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    if not set_names:
        errors.append(required(path, "must specify a peer"))
    elif "ipBlock" in set_names and len(set_names) > 1:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif "ipBlock" in set_names:
        errors += _block_errors(peer["ipBlock"], f"{path}.ipBlock")
    return errors


def _block_errors(block: Object, path: str) -> list[FieldError]:
    """Errors of a block of IP addresses, and of the blocks in it that are excepted."""
    cidr = block.get("cidr", "")
    if not cidr:
        return [required(f"{path}.cidr")]
    errors = checks.well_formed(cidr, f"{path}.cidr", ip_addresses.network_errors)
    whole = ip_addresses.find_network(cidr)
    return errors + (checks.each(block.get("except"), f"{path}.except", partial(_part_errors, whole)) if whole else [])


def _part_errors(whole: IPv4Network | IPv6Network, part: str, path: str) -> list[FieldError]:
    errors, network = checks.well_formed(part, path, ip_addresses.network_errors), ip_addresses.find_network(part)
    is_part = network is None or ip_addresses.is_part(network, whole)
    return errors + checks.holds(is_part, path, part, "must be a strict subset of `cidr`")


RESOURCE = Resource(
    group="networking.k8s.io",
    plural="networkpolicies",
    kind="NetworkPolicy",
    versions=(Version("v1", "networking/v1.NetworkPolicy", default=set_defaults),),
    short_names=("netpol",),
    strategy=Strategy(validate=validate, has_generation=True),
    printer=tables.named(
        "policy",
        Column("Pod-Selector", description="The pods that it is for."),
        cells=lambda policy, _now_ns: [label_selector.text((policy.get("spec") or {}).get("podSelector"))],
    ),
)
