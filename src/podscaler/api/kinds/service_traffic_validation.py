"""What is wrong with the traffic policies of a Service, and with the families and ports that it asks for.

Called by `service_validation`. This is a cluster of IPv4; only Services without address and selector may name IPv6.

Source: upstream's messages; the API reference of core/v1.
"""

from podscaler.api.field import FieldError, invalid, not_supported
from podscaler.api.kinds import service_update
from podscaler.api.resources import Object

NODE_PORTS = (30_000, 32_767)
_POLICIES = ("Cluster", "Local")
_FAMILIES = ("IPv4", "IPv6")
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
    for index, family in enumerate(spec.get("ipFamilies") or []):
        if family not in _FAMILIES:
            found.append(not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES))
    return found


def _is_reached_from_outside(spec: Object) -> bool:
    return spec.get("type") in _OUTSIDE or bool(spec.get("type") == "ClusterIP" and spec.get("externalIPs"))


def _health_check_faults(spec: Object) -> list[FieldError]:
    number = spec.get("healthCheckNodePort", 0)
    if not number or service_update.has_health_check(spec):
        return []
    text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    return [invalid("spec.healthCheckNodePort", number, text)]


def allocation_faults(spec: Object, old: Object | None) -> list[FieldError]:
    """Why a Service that is right in itself cannot have what it asks for."""
    if spec.get("type") == "ExternalName":
        return []
    found = _family_faults(spec, old)
    known = {port.get("nodePort") for port in (old or {}).get("ports") or []}
    first, last = NODE_PORTS
    for index, port in enumerate(spec.get("ports") or []):
        number = port.get("nodePort") or first
        if not first <= number <= last and number not in known:
            text = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
            found.append(invalid(f"spec.ports[{index}].nodePort", number, text))
    return found + _health_check_change(spec, old or {})


def _health_check_change(spec: Object, old: Object) -> list[FieldError]:
    number, stored = spec.get("healthCheckNodePort", 0), old.get("healthCheckNodePort", 0)
    if not (service_update.has_health_check(spec) and service_update.has_health_check(old)) or number == stored:
        return []
    return [invalid("spec.healthCheckNodePort", number, "field is immutable")]


def _family_faults(spec: Object, old: Object | None) -> list[FieldError]:
    families = spec.get("ipFamilies") or []
    if "IPv6" not in families or (spec.get("clusterIP") == "None" and not spec.get("selector")):
        return []
    address = (spec.get("clusterIPs") or [""])[0]
    if old is not None and families[0] == "IPv6" and address not in ("", "None"):
        text = "expected an IPv6 value as indicated by `ipFamilies[0]`"
        return [invalid("spec.clusterIPs[0]", address, text)]
    return [invalid(f"spec.ipFamilies[{families.index('IPv6')}]", "IPv6", "not configured on this cluster")]
