"""What is wrong with the traffic policies of a Service, and with the ports that it asks for.

Called by `service_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

from podscaler.api.kinds.networking import service_family_validation, service_update
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported
from podscaler.api.resource.resources import Object

NODE_PORTS = (30_000, 32_767)
_POLICIES = ("Cluster", "Local")
_OUTSIDE = ("NodePort", "LoadBalancer")


def faults(spec: Object) -> list[FieldError]:
    """What is wrong with the policies and the names of the families."""
    inside, outside = spec.get("internalTrafficPolicy"), spec.get("externalTrafficPolicy")
    found = []
    if inside not in (None, *_POLICIES):
        found.append(not_supported("spec.internalTrafficPolicy", inside, _POLICIES))
    if outside and not _is_reached_from_outside(spec):
        text = "may only be set for externally-accessible services"
        found.append(invalid("spec.externalTrafficPolicy", outside, text))
    elif outside and outside not in _POLICIES:
        found.append(not_supported("spec.externalTrafficPolicy", outside, _POLICIES))
    found += _health_check_faults(spec)
    return found


def _is_reached_from_outside(spec: Object) -> bool:
    return spec.get("type") in _OUTSIDE or bool(spec.get("type") == "ClusterIP" and spec.get("externalIPs"))


def _health_check_faults(spec: Object) -> list[FieldError]:
    number = spec.get("healthCheckNodePort", 0)
    if not number or service_update.has_health_check(spec):
        return []
    text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    return [invalid("spec.healthCheckNodePort", number, text)]


def allocation_faults(spec: Object, old: Object | None, *, gives_ports: bool = True) -> list[FieldError]:
    """Why a Service that is right in itself cannot have what it asks for, node ports only where they are given out."""
    if spec.get("type") == "ExternalName":
        return []
    found = service_family_validation.cluster_faults(spec)
    if gives_ports:
        found += _node_port_faults(spec, old)
    return found + _health_check_change(spec, old or {})


def _node_port_faults(spec: Object, old: Object | None) -> list[FieldError]:
    found = []
    known = {port.get("nodePort") for port in (old or {}).get("ports") or []}
    first, last = NODE_PORTS
    for index, port in enumerate(spec.get("ports") or []):
        number = port.get("nodePort") or first
        if not first <= number <= last and number not in known:
            text = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
            found.append(invalid(f"spec.ports[{index}].nodePort", number, text))
    return found


def _health_check_change(spec: Object, old: Object) -> list[FieldError]:
    number, stored = spec.get("healthCheckNodePort", 0), old.get("healthCheckNodePort", 0)
    if not (service_update.has_health_check(spec) and service_update.has_health_check(old)) or number == stored:
        return []
    return [forbidden("spec.healthCheckNodePort", "field is immutable")]
