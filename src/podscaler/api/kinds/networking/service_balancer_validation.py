"""What is wrong with the fields of a Service that are for load balancers, and with its preference of endpoints.

Called by `service_validation`.

Source: upstream's messages.
"""

from podscaler.api.machinery import addresses, names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported
from podscaler.api.resource.resources import Object

_ONLY_HERE = "may only be used when `type` is 'LoadBalancer'"
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")


def faults(spec: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with them; `old` is the stored spec."""
    found = _range_faults(spec)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not _is_balancer(spec):
        found.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_HERE))
    found += _class_faults(spec, old or {})
    wanted = spec.get("trafficDistribution")
    if wanted not in (None, *_DISTRIBUTIONS):
        found.append(not_supported("spec.trafficDistribution", wanted, _DISTRIBUTIONS))
    return found


def _is_balancer(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer"


def _range_faults(spec: Object) -> list[FieldError]:
    path, listed = "spec.LoadBalancerSourceRanges", spec.get("loadBalancerSourceRanges") or []
    found = [forbidden(path, _ONLY_HERE)] if listed and not _is_balancer(spec) else []
    for index, text in enumerate(each.strip() for each in listed):
        if addresses.find_network(text) is None:
            found += [invalid(f"{path}[{index}]", text, fault) for fault in addresses.network_faults(text)]
    return found


def _class_faults(spec: Object, old: Object) -> list[FieldError]:
    path, name = "spec.loadBalancerClass", spec.get("loadBalancerClass")
    if _is_balancer(old) and _is_balancer(spec) and name != old.get("loadBalancerClass"):
        return [invalid(path, name, "may not change once set")]
    if name is None:
        return []
    if not _is_balancer(spec):
        return [forbidden(path, _ONLY_HERE)]
    return [invalid(path, name, text) for text in names.label_key_faults(name)]
