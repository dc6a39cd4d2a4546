"""What is wrong with the status of a Service: addresses of its load balancer that are none, or that it cannot have.

Called by the record of Service. Source: upstream's validation of LoadBalancerStatus.
"""

from podscaler.api.machinery import addresses, names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported
from podscaler.api.resource.resources import Object

_MODES = ("Proxy", "VIP")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of a Service."""
    del old
    path = "status.loadBalancer.ingress"
    listed = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if listed and new["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    found = []
    for index, each in enumerate(listed):
        found += _address_faults(each, f"{path}[{index}]")
    return found


def _address_faults(each: Object, path: str) -> list[FieldError]:
    address, host, mode = each.get("ip", ""), each.get("hostname", ""), each.get("ipMode")
    found = []
    if address and addresses.find(address) is None:
        found.append(invalid(f"{path}.ip", address, addresses.FAULT))
    if mode is not None and not address:
        found.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif mode is not None and mode not in _MODES:
        found.append(not_supported(f"{path}.ipMode", mode, _MODES))
    if host:
        found += [invalid(f"{path}.hostname", host, text) for text in names.dns_subdomain_faults(host)]
        if addresses.find(host) is not None:
            found.append(invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))
    return found
