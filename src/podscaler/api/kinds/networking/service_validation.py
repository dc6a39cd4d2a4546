"""What is wrong with a Service.

Called by its record.

Source: upstream's messages; the API reference of core/v1.
"""

from podscaler.api.kinds.networking import (
    service_balancer_validation,
    service_family_validation,
    service_traffic_validation,
    service_update,
)
from podscaler.api.machinery import addresses, names, ports
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_supported, required
from podscaler.api.resource import go_struct, metadata
from podscaler.api.resource.resources import Object

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_DAY_S = 86_400


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Service to be stored."""
    spec = new["spec"]
    found = _ports_presence(spec)
    found += _port_faults(
        spec.get("ports") or [], is_node_port_allowed=spec.get("type") in ("NodePort", "LoadBalancer")
    )
    if spec.get("selector"):
        found += metadata.label_faults(spec["selector"], "spec.selector")
    found += _affinity_faults(spec)
    if spec.get("type") not in _TYPES:
        found.append(not_supported("spec.type", spec.get("type", ""), _TYPES))
    found += _cluster_ip_faults(spec)
    found += _external_faults(spec)
    found += service_traffic_validation.faults(spec)
    found += service_balancer_validation.faults(spec, old["spec"] if old else None)
    if old is not None and not found:
        found += _change_faults(spec, old["spec"])
    stored = old["spec"] if old else None
    return found or service_traffic_validation.allocation_faults(spec, stored, gives_ports=False)


def early_faults(new: Object, old: Object | None, *, is_dry: bool = False) -> list[FieldError]:
    """What is found while addresses and ports are given out: it is told alone, before everything else.

    A dry run (`is_dry`) gives out no ports, and so finds nothing wrong with them.
    """
    spec, stored = new["spec"], old["spec"] if old else None
    if spec.get("type") == "ExternalName":
        return []
    return _cluster_ip_faults(spec) or service_traffic_validation.allocation_faults(
        spec, stored, gives_ports=not is_dry
    )


def _ports_presence(spec: Object) -> list[FieldError]:
    if spec.get("ports") or spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        return []
    return [required("spec.ports")]


def _port_faults(listed: list[Object], *, is_node_port_allowed: bool) -> list[FieldError]:
    found = []
    seen_names: set[str] = set()
    for index, port in enumerate(listed):
        path = f"spec.ports[{index}]"
        found += _name_faults(port.get("name", ""), seen_names, path, is_required=len(listed) > 1)
        found += ports.number_faults(port.get("port", 0), f"{path}.port")
        found += ports.protocol_faults(port.get("protocol", ""), f"{path}.protocol")
        found += ports.target_faults(port.get("targetPort", 0), f"{path}.targetPort")
        if port.get("nodePort") and not is_node_port_allowed:
            found.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
    return found + _node_port_faults(listed) + _repeated_faults(listed)


def _repeated_faults(listed: list[Object]) -> list[FieldError]:
    numbers = [(port.get("protocol", ""), port.get("port", 0)) for port in listed]
    again = [index for index, each in enumerate(numbers) if each in numbers[:index]]
    shown = [{"protocol": numbers[index][0], "port": numbers[index][1], "targetPort": 0} for index in again]
    return [
        duplicate(f"spec.ports[{index}]", go_struct.shown(same, "core/v1.ServicePort"))
        for index, same in zip(again, shown, strict=True)
    ]


def _node_port_faults(listed: list[Object]) -> list[FieldError]:
    numbers = [(port.get("protocol", ""), port.get("nodePort", 0)) for port in listed]
    again = [index for index, each in enumerate(numbers) if each[1] and each in numbers[:index]]
    return [duplicate(f"spec.ports[{index}].nodePort", numbers[index][1]) for index in again]


def _name_faults(name: str, seen: set[str], path: str, *, is_required: bool) -> list[FieldError]:
    if not name:
        return [required(f"{path}.name")] if is_required else []
    found = [invalid(f"{path}.name", name, text) for text in names.dns_label_faults(name)]
    if name in seen:
        found.append(duplicate(f"{path}.name", name))
    seen.add(name)
    return found


def _affinity_faults(spec: Object) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    if affinity not in _AFFINITIES:
        return [not_supported("spec.sessionAffinity", affinity, _AFFINITIES)]
    timeout_s = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    if timeout_s is not None and not 0 < timeout_s <= _DAY_S:
        return [invalid(path, timeout_s, f"must be greater than 0 and less than {_DAY_S}")]
    return []


def _cluster_ip_faults(spec: Object) -> list[FieldError]:
    given = spec.get("clusterIPs") or []
    if given[:1] == ["None"] and spec.get("type") in service_update.OUTSIDE:
        return [invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")]
    if spec.get("type") == "ExternalName":
        given_names = [name for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(name)]
        return [forbidden(f"spec.{name}", "may not be set for ExternalName services") for name in given_names]
    return service_family_validation.related_faults(spec)


def _external_faults(spec: Object) -> list[FieldError]:
    listed = enumerate(spec.get("externalIPs") or [])
    found = [invalid(f"spec.externalIPs[{i}]", each, text) for i, each in listed for text in addresses.faults(each)]
    if spec.get("type") != "ExternalName":
        return found
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        return [*found, required("spec.externalName")]
    return found + [invalid("spec.externalName", name, text) for text in names.dns_subdomain_faults(name)]


def _change_faults(new: Object, old: Object) -> list[FieldError]:
    """An address stays what it is while the service has one."""
    if "ExternalName" in (new.get("type"), old.get("type")) or not old.get("clusterIPs"):
        return []
    if (new.get("clusterIPs") or [])[:1] == old["clusterIPs"][:1]:
        return []
    return [invalid("spec.clusterIPs[0]", new.get("clusterIPs"), "may not change once set")]
