"""Resource definition of NetworkPolicy (networking.k8s.io/v1): defaults, validation, table; nothing is filtered here.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field needs regenerated type facts (CONTRIBUTING.md), its default
and its validation here.

Source: the API reference of networking.k8s.io/v1; kube-apiserver's validation messages.
"""

from functools import partial
from ipaddress import IPv4Network, IPv6Network

from podscaler.api.machinery import ip_addresses, ports
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks, label_selector, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_POLICY_TYPES = ("Ingress", "Egress")


def set_defaults(policy: Object) -> None:
    """API defaults, in place: all pods, policy types by the rules, TCP."""
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
    errors += checks.each(spec.get("ingress"), "spec.ingress", partial(_rule_errors, peers_field="from"))
    errors += checks.each(spec.get("egress"), "spec.egress", partial(_rule_errors, peers_field="to"))
    return errors + _type_errors(spec.get("policyTypes") or [], "spec.policyTypes")


def _type_errors(types: list[str], path: str) -> list[FieldError]:
    """Field errors of `policyTypes`: at most two, Ingress or Egress."""
    if len(types) > len(_POLICY_TYPES):
        return [invalid(path, types, "may not specify more than two policyTypes")]
    return checks.each(types, path, lambda policy_type, item_path: checks.one_of(policy_type, item_path, _POLICY_TYPES))


def _rule_errors(rule: Object, path: str, *, peers_field: str) -> list[FieldError]:
    """Field errors of an ingress or egress rule; `peers_field` is the field with its peers, `from` or `to`."""
    errors = checks.each(rule.get("ports"), f"{path}.ports", _port_errors)
    return errors + checks.each(rule.get(peers_field), f"{path}.{peers_field}", _peer_errors)


def _port_errors(port: Object, path: str) -> list[FieldError]:
    """Field errors of a port: its protocol, its number or name, and the end of its range."""
    protocol, number_or_name, end_port = port.get("protocol", ""), port.get("port"), port.get("endPort")
    errors = checks.one_of(protocol, f"{path}.protocol", _PROTOCOLS)
    if end_port is not None:
        errors += _end_port_errors(number_or_name, end_port, f"{path}.endPort")
    return errors + checks.optional(number_or_name, f"{path}.port", ports.target_errors)


def _end_port_errors(port: int | str | None, end_port: int, path: str) -> list[FieldError]:
    """Field errors of `endPort`, the end of a range of ports that begins with `port`, a number."""
    if port is None:
        return [invalid(path, end_port, "may not be specified when `port` is not specified")]
    if isinstance(port, str):
        return [invalid(path, end_port, "may not be specified when `port` is non-numeric")]
    errors = [invalid(path, end_port, "must be greater than or equal to `port`")] if end_port < port else []
    return errors + ports.number_errors(end_port, path)


def _peer_errors(peer: Object, path: str) -> list[FieldError]:
    """Errors of a peer: selectors of pods and namespaces, or a block of IP addresses."""
    errors = []
    for field in ("podSelector", "namespaceSelector"):
        errors += label_selector.validate(peer.get(field) or {}, f"{path}.{field}")
    set_fields = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    if not set_fields:
        errors.append(required(path, "must specify a peer"))
    elif "ipBlock" in set_fields and len(set_fields) > 1:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif "ipBlock" in set_fields:
        errors += _block_errors(peer["ipBlock"], f"{path}.ipBlock")
    return errors


def _block_errors(block: Object, path: str) -> list[FieldError]:
    """Errors of a block of IP addresses, and of the blocks in it that are excepted."""
    cidr = block.get("cidr", "")
    if not cidr:
        return [required(f"{path}.cidr")]
    errors = checks.well_formed(cidr, f"{path}.cidr", ip_addresses.network_errors)
    network = ip_addresses.find_network(cidr)
    if network is None:
        return errors
    return errors + checks.each(block.get("except"), f"{path}.except", partial(_exception_errors, network))


def _exception_errors(block_network: IPv4Network | IPv6Network, excepted_cidr: str, path: str) -> list[FieldError]:
    """Field errors of a CIDR that is excepted from a block, within which it must be."""
    errors = checks.well_formed(excepted_cidr, path, ip_addresses.network_errors)
    network = ip_addresses.find_network(excepted_cidr)
    is_within = network is None or ip_addresses.is_subnet(network, block_network)
    return errors + checks.holds(is_within, path, excepted_cidr, "must be a strict subset of `cidr`")


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
