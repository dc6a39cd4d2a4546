"""Validates a Service and its status: type, ports, session affinity, traffic policies, load balancer.

Called by the record of Service; `validate_allocation` also before addresses and node ports are allocated.
`service_family_validation` validates cluster IPs and IP families.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

from collections.abc import Collection

from podscaler.api.kinds.networking import service_family_validation, service_update
from podscaler.api.machinery import ip_addresses, names, ports
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, go_struct, metadata
from podscaler.api.resource.resources import Object

NODE_PORTS = (30_000, 32_767)
"""The first and the last node port."""
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_DAY_S = 86_400


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Service to be stored."""
    spec, old_spec = new["spec"], old["spec"] if old else None
    errors = _missing_ports_errors(spec)
    errors += _port_errors(
        spec.get("ports") or [], has_node_ports=spec.get("type") in service_update.TYPES_WITH_NODE_PORTS
    )
    errors += metadata.label_errors(spec.get("selector") or {}, "spec.selector")
    errors += _affinity_errors(spec)
    errors += checks.one_of(spec.get("type", ""), "spec.type", _TYPES)
    errors += _cluster_ip_errors(spec)
    errors += _external_errors(spec)
    errors += traffic_errors(spec)
    errors += _balancer_errors(spec, old_spec or {})
    if old_spec is not None and not errors:
        errors += _change_errors(spec, old_spec)
    return errors or allocation_errors(spec, old_spec, allocates_ports=False)


def validate_allocation(new: Object, old: Object | None, *, is_dry: bool = False) -> list[FieldError]:
    """The field errors of values that cannot be allocated; where there are some, no others are reported.

    A dry run (`is_dry`) allocates no ports, and checks none.
    """
    spec, old_spec = new["spec"], old["spec"] if old else None
    if spec.get("type") == "ExternalName":
        return []
    return _cluster_ip_errors(spec) or allocation_errors(spec, old_spec, allocates_ports=not is_dry)


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a Service: those of its load balancer's addresses."""
    path = "status.loadBalancer.ingress"
    entries = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    if entries and new["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    return checks.each(entries, path, _load_balancer_errors)


def _load_balancer_errors(entry: Object, path: str) -> list[FieldError]:
    """Errors of an entry of the status: an IP address with its mode, a host name."""
    address, host, mode = entry.get("ip", ""), entry.get("hostname", ""), entry.get("ipMode")
    errors = checks.holds(
        not address or ip_addresses.find(address), f"{path}.ip", address, ip_addresses.INVALID_MESSAGE
    )
    if mode is not None and not address:
        errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    else:
        errors += checks.optional_one_of(mode, f"{path}.ipMode", _IP_MODES)
    errors += checks.well_formed_if_set(host, f"{path}.hostname", names.dns_subdomain_errors)
    is_name = ip_addresses.find(host) is None
    return errors + checks.holds(is_name, f"{path}.hostname", host, "must be a DNS name, not an IP address")


def _missing_ports_errors(spec: Object) -> list[FieldError]:
    if spec.get("ports") or spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        return []
    return [required("spec.ports")]


def _port_errors(service_ports: list[Object], *, has_node_ports: bool) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, port in enumerate(service_ports):
        path, name = f"spec.ports[{index}]", port.get("name", "")
        if name or len(service_ports) > 1:
            errors += checks.required_form(name, f"{path}.name", names.dns_label_errors)
        if name:
            errors += checks.not_repeated(name, f"{path}.name", seen)
        errors += ports.number_errors(port.get("port", 0), f"{path}.port")
        errors += ports.protocol_errors(port.get("protocol", ""), f"{path}.protocol")
        errors += ports.target_errors(port.get("targetPort", 0), f"{path}.targetPort")
        if port.get("nodePort") and not has_node_ports:
            errors.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
    return errors + _repeated_errors(service_ports, "nodePort") + _repeated_errors(service_ports, "port")


def _repeated_errors(service_ports: list[Object], field: str) -> list[FieldError]:
    """The errors of ports whose protocol and number, which is in `field`, are those of an earlier port."""
    numbers = [(port.get("protocol", ""), port.get(field, 0)) for port in service_ports]
    repeated = [
        (index, *numbers_of_port) for index, numbers_of_port in enumerate(numbers) if numbers_of_port in numbers[:index]
    ]
    if field == "nodePort":
        return [duplicate(f"spec.ports[{index}].nodePort", number) for index, _, number in repeated if number]
    return [
        duplicate(
            f"spec.ports[{index}]",
            go_struct.printed({"protocol": protocol, "port": number, "targetPort": 0}, "core/v1.ServicePort"),
        )
        for index, protocol, number in repeated
    ]


def _affinity_errors(spec: Object) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    if affinity not in _AFFINITIES:
        return [not_supported("spec.sessionAffinity", affinity, _AFFINITIES)]
    timeout_s = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    if timeout_s is not None and not 0 < timeout_s <= _DAY_S:
        return [invalid(path, timeout_s, f"must be greater than 0 and less than {_DAY_S}")]
    return []


def _cluster_ip_errors(spec: Object) -> list[FieldError]:
    cluster_ips = spec.get("clusterIPs") or []
    if cluster_ips[:1] == ["None"] and spec.get("type") in service_update.TYPES_WITH_NODE_PORTS:
        return [invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")]
    if spec.get("type") == "ExternalName":
        given_names = [name for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(name)]
        return [forbidden(f"spec.{name}", "may not be set for ExternalName services") for name in given_names]
    return service_family_validation.related_errors(spec)


def _external_errors(spec: Object) -> list[FieldError]:
    errors = checks.each_well_formed(spec.get("externalIPs") or (), "spec.externalIPs", ip_addresses.endpoint_errors)
    if spec.get("type") != "ExternalName":
        return errors
    name = spec.get("externalName", "").removesuffix(".")
    return errors + checks.required_form(name, "spec.externalName", names.dns_subdomain_errors)


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    """The error of a changed cluster IP."""
    if "ExternalName" in (new.get("type"), old.get("type")) or not old.get("clusterIPs"):
        return []
    if (new.get("clusterIPs") or [])[:1] == old["clusterIPs"][:1]:
        return []
    return [invalid("spec.clusterIPs[0]", new.get("clusterIPs"), "may not change once set")]


def traffic_errors(spec: Object) -> list[FieldError]:
    """The errors of the traffic policies, and of the port for health checks."""
    outside, path = spec.get("externalTrafficPolicy"), "spec.externalTrafficPolicy"
    errors = checks.optional_one_of(spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy", _TRAFFIC_POLICIES)
    if outside and not service_update.is_reached_from_outside(spec):
        errors.append(invalid(path, outside, "may only be set for externally-accessible services"))
    elif outside:
        errors += checks.one_of(outside, path, _TRAFFIC_POLICIES)
    number = spec.get("healthCheckNodePort", 0)
    message = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    is_allowed = not number or service_update.has_health_check(spec)
    return errors + checks.holds(is_allowed, "spec.healthCheckNodePort", number, message)


def _balancer_errors(spec: Object, old: Object) -> list[FieldError]:
    """The errors of the fields for load balancers, and of trafficDistribution."""
    ranges, path = spec.get("loadBalancerSourceRanges") or [], "spec.LoadBalancerSourceRanges"
    errors = [forbidden(path, _ONLY_BALANCERS)] if ranges and not _is_balancer(spec) else []
    errors += checks.each_well_formed((source_range.strip() for source_range in ranges), path, _range_messages)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not _is_balancer(spec):
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCERS))
    errors += _class_errors(spec, old)
    return errors + checks.optional_one_of(spec.get("trafficDistribution"), "spec.trafficDistribution", _DISTRIBUTIONS)


def _range_messages(source_range: str) -> list[str]:
    return [] if ip_addresses.find_network(source_range) else ip_addresses.network_errors(source_range)


def _class_errors(spec: Object, old: Object) -> list[FieldError]:
    """Errors of the load balancer's class, which only load balancers have, and which never changes."""
    path, name = "spec.loadBalancerClass", spec.get("loadBalancerClass")
    if _is_balancer(old) and _is_balancer(spec) and name != old.get("loadBalancerClass"):
        return [invalid(path, name, "may not change once set")]
    if name is not None and not _is_balancer(spec):
        return [forbidden(path, _ONLY_BALANCERS)]
    return checks.well_formed(name, path, names.label_key_errors)


def _is_balancer(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer"


def allocation_errors(spec: Object, old: Object | None, *, allocates_ports: bool = True) -> list[FieldError]:
    """The reasons why a valid Service cannot have the addresses and ports that it names.

    Args:
        spec: the spec to be stored.
        old: the stored spec; None for a new Service.
        allocates_ports: whether node ports are checked, too.
    """
    if spec.get("type") == "ExternalName":
        return []
    errors = service_family_validation.cluster_errors(spec)
    if allocates_ports:
        old_node_ports = {port.get("nodePort") for port in (old or {}).get("ports") or []}
        errors += checks.each(
            spec.get("ports"), "spec.ports", lambda port, item_path: _node_port_errors(port, item_path, old_node_ports)
        )
    number, old_number = spec.get("healthCheckNodePort", 0), (old or {}).get("healthCheckNodePort", 0)
    has_both = service_update.has_health_check(spec) and service_update.has_health_check(old or {})
    if has_both and number != old_number:
        errors.append(forbidden("spec.healthCheckNodePort", checks.IMMUTABLE))
    return errors


def _node_port_errors(port: Object, path: str, old_node_ports: Collection[int | None]) -> list[FieldError]:
    """The error of a node port that is out of range, unless it is one of the stored (`old_node_ports`) ones."""
    first, last = NODE_PORTS
    number = port.get("nodePort") or first
    message = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
    return checks.holds(first <= number <= last or number in old_node_ports, f"{path}.nodePort", number, message)
