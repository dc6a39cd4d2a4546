"""Validates a Service and its status: type, ports, session affinity, traffic policies, load balancer.

`api.kinds.networking.service` registers `validate` and `validate_status` as hooks;
`podscaler.controlplane.network.cluster_ips` calls `validate_allocation` before it allocates. `spec` and
`old_spec` arguments are the specs of the new and of the stored Service. `service_family_validation` validates cluster
IPs and IP families. A new check of the spec alone: a call in `validate`.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

from collections.abc import Collection

from podscaler.api.kinds.networking import service_family_validation, service_update
from podscaler.api.machinery import ip_addresses, names, ports
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, go_struct, metadata
from podscaler.api.resource.resources import Object

_NODE_PORT_MIN = 30_000
_NODE_PORT_MAX = 32_767
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_ONLY_LOAD_BALANCERS_MESSAGE = "may only be used when `type` is 'LoadBalancer'"
_AFFINITY_TIMEOUT_MAX_S = 86_400
"""The longest time for which a client may stay at one endpoint: a day."""


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Service to be stored."""
    spec, old_spec = new["spec"], old["spec"] if old else None
    errors = _missing_ports_errors(spec)
    has_node_ports = service_update.is_reached_through_nodes(spec)
    errors += _port_errors(spec.get("ports") or [], has_node_ports=has_node_ports)
    errors += metadata.label_errors(spec.get("selector") or {}, "spec.selector")
    errors += _affinity_errors(spec)
    errors += checks.one_of(spec.get("type", ""), "spec.type", _SERVICE_TYPES)
    errors += _cluster_ip_errors(spec)
    errors += _external_errors(spec)
    errors += traffic_errors(spec)
    errors += _load_balancer_errors(spec, old_spec or {})
    if old_spec is not None and not errors:
        errors += _change_errors(spec, old_spec)
    return errors or allocation_errors(spec, old_spec, allocates_ports=False)  # `validate_allocation` checks ports


def validate_allocation(new: Object, old: Object | None, *, is_dry: bool = False) -> list[FieldError]:
    """The field errors of values that cannot be allocated; where there are some, no others are reported.

    Args:
        old: the stored Service; None for a new one.
        is_dry: whether this is a dry run, which allocates no ports and checks none.
    """
    spec, old_spec = new["spec"], old["spec"] if old else None
    if spec.get("type") == "ExternalName":
        return []
    return _cluster_ip_errors(spec) or allocation_errors(spec, old_spec, allocates_ports=not is_dry)


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a Service: those of its load balancer's addresses."""
    path = "status.loadBalancer.ingress"
    ingress = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    if ingress and new["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    return checks.each(ingress, path, _status_ingress_errors)


def _status_ingress_errors(ingress_item: Object, path: str) -> list[FieldError]:
    """Field errors of one of `status.loadBalancer.ingress`: its IP address with the mode, and its host name."""
    address, host, mode = ingress_item.get("ip", ""), ingress_item.get("hostname", ""), ingress_item.get("ipMode")
    errors = checks.holds(
        not address or ip_addresses.find_address(address), f"{path}.ip", address, ip_addresses.INVALID_MESSAGE
    )
    if mode is not None and not address:
        errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    else:
        errors += checks.optional_one_of(mode, f"{path}.ipMode", _IP_MODES)
    errors += checks.well_formed_if_set(host, f"{path}.hostname", names.dns_subdomain_errors)
    is_no_address = ip_addresses.find_address(host) is None
    return errors + checks.holds(is_no_address, f"{path}.hostname", host, "must be a DNS name, not an IP address")


def _missing_ports_errors(spec: Object) -> list[FieldError]:
    """The error of missing ports; headless Services and those of type ExternalName need none."""
    if spec.get("ports") or spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        return []
    return [required("spec.ports")]


def _port_errors(service_ports: list[Object], *, has_node_ports: bool) -> list[FieldError]:
    """Field errors of the ports; `has_node_ports`: whether the type of the Service has node ports."""
    errors = []
    earlier_names: set[str] = set()
    for index, port in enumerate(service_ports):
        path, name = f"spec.ports[{index}]", port.get("name", "")
        if name or len(service_ports) > 1:
            errors += checks.required_form(name, f"{path}.name", names.dns_label_errors)
        if name:
            errors += checks.not_repeated(name, f"{path}.name", earlier_names)
        errors += ports.number_errors(port.get("port", 0), f"{path}.port")
        errors += ports.protocol_errors(port.get("protocol", ""), f"{path}.protocol")
        errors += ports.target_errors(port.get("targetPort", 0), f"{path}.targetPort")
        if port.get("nodePort") and not has_node_ports:
            errors.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
    return errors + _repeated_errors(service_ports, "nodePort") + _repeated_errors(service_ports, "port")


def _repeated_errors(service_ports: list[Object], field: str) -> list[FieldError]:
    """Field errors of ports that repeat protocol and number of an earlier one; `field`: `port` or `nodePort`."""
    protocols_and_numbers = [(port.get("protocol", ""), port.get(field, 0)) for port in service_ports]
    errors = []
    for index, (protocol, number) in enumerate(protocols_and_numbers):
        if (protocol, number) not in protocols_and_numbers[:index]:
            continue
        if field == "port":
            # upstream compares ports by a ServicePort with only protocol and port, and shows that one
            shown_port = {"protocol": protocol, "port": number, "targetPort": 0}
            errors.append(duplicate(f"spec.ports[{index}]", go_struct.printed(shown_port, "core/v1.ServicePort")))
        elif number:  # 0: no node port is named
            errors.append(duplicate(f"spec.ports[{index}].nodePort", number))
    return errors


def _affinity_errors(spec: Object) -> list[FieldError]:
    """Field errors of the session affinity and of its timeout, which is at most a day."""
    affinity = spec.get("sessionAffinity", "")
    if affinity not in _AFFINITIES:
        return [not_supported("spec.sessionAffinity", affinity, _AFFINITIES)]
    timeout_s = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    if timeout_s is not None and not 0 < timeout_s <= _AFFINITY_TIMEOUT_MAX_S:
        return [invalid(path, timeout_s, f"must be greater than 0 and less than {_AFFINITY_TIMEOUT_MAX_S}")]
    return []


def _cluster_ip_errors(spec: Object) -> list[FieldError]:
    """Field errors of cluster IPs and IP families, which some types must not have."""
    cluster_ips = spec.get("clusterIPs") or []
    if cluster_ips[:1] == ["None"] and service_update.is_reached_through_nodes(spec):
        return [invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")]
    if spec.get("type") == "ExternalName":
        set_fields = [field for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(field)]
        return [forbidden(f"spec.{field}", "may not be set for ExternalName services") for field in set_fields]
    return service_family_validation.spec_errors(spec)


def _external_errors(spec: Object) -> list[FieldError]:
    """Field errors of `externalIPs`, and of `externalName`, which the type ExternalName requires."""
    errors = checks.each_well_formed(spec.get("externalIPs") or (), "spec.externalIPs", ip_addresses.endpoint_errors)
    if spec.get("type") != "ExternalName":
        return errors
    name = spec.get("externalName", "").removesuffix(".")
    return errors + checks.required_form(name, "spec.externalName", names.dns_subdomain_errors)


def _change_errors(spec: Object, old_spec: Object) -> list[FieldError]:
    """The error of a changed cluster IP."""
    if "ExternalName" in (spec.get("type"), old_spec.get("type")) or not old_spec.get("clusterIPs"):
        return []
    if (spec.get("clusterIPs") or [])[:1] == old_spec["clusterIPs"][:1]:
        return []
    return [invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")]


def traffic_errors(spec: Object) -> list[FieldError]:
    """The errors of the traffic policies, and of the port for health checks."""
    external_policy, path = spec.get("externalTrafficPolicy"), "spec.externalTrafficPolicy"
    errors = checks.optional_one_of(spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy", _TRAFFIC_POLICIES)
    if external_policy and not service_update.is_reached_from_outside(spec):
        errors.append(invalid(path, external_policy, "may only be set for externally-accessible services"))
    elif external_policy:
        errors += checks.one_of(external_policy, path, _TRAFFIC_POLICIES)
    health_check_port = spec.get("healthCheckNodePort", 0)
    message = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    is_allowed = not health_check_port or service_update.has_health_check(spec)
    return errors + checks.holds(is_allowed, "spec.healthCheckNodePort", health_check_port, message)


def _load_balancer_errors(spec: Object, old_spec: Object) -> list[FieldError]:
    """The errors of the fields for load balancers, and of trafficDistribution."""
    # the path is kube-apiserver's
    source_ranges, path = spec.get("loadBalancerSourceRanges") or [], "spec.LoadBalancerSourceRanges"
    errors = [forbidden(path, _ONLY_LOAD_BALANCERS_MESSAGE)] if source_ranges and not _is_load_balancer(spec) else []
    errors += checks.each_well_formed((source_range.strip() for source_range in source_ranges), path, _range_messages)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not _is_load_balancer(spec):
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCERS_MESSAGE))
    errors += _class_errors(spec, old_spec)
    return errors + checks.optional_one_of(spec.get("trafficDistribution"), "spec.trafficDistribution", _DISTRIBUTIONS)


def _range_messages(source_range: str) -> list[str]:
    """The messages about an invalid source range, which is a CIDR; leading zeros are no error here."""
    return [] if ip_addresses.find_network(source_range) else ip_addresses.network_errors(source_range)


def _class_errors(spec: Object, old_spec: Object) -> list[FieldError]:
    """Errors of the load balancer's class, which only load balancers have, and which never changes."""
    path, class_name = "spec.loadBalancerClass", spec.get("loadBalancerClass")
    if _is_load_balancer(old_spec) and _is_load_balancer(spec) and class_name != old_spec.get("loadBalancerClass"):
        return [invalid(path, class_name, "may not change once set")]
    if class_name is not None and not _is_load_balancer(spec):
        return [forbidden(path, _ONLY_LOAD_BALANCERS_MESSAGE)]
    return checks.well_formed(class_name, path, names.label_key_errors)


def _is_load_balancer(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer"


def allocation_errors(spec: Object, old_spec: Object | None, *, allocates_ports: bool = True) -> list[FieldError]:
    """The reasons why a valid Service cannot have the addresses and ports that it names.

    Args:
        spec: the spec to be stored.
        old_spec: the stored spec; None for a new Service.
        allocates_ports: whether node ports are allocated, and so checked, too.
    """
    if spec.get("type") == "ExternalName":
        return []
    errors = service_family_validation.cluster_support_errors(spec)
    if allocates_ports:
        old_node_ports = {port.get("nodePort") for port in (old_spec or {}).get("ports") or []}
        errors += checks.each(
            spec.get("ports"), "spec.ports", lambda port, item_path: _node_port_errors(port, item_path, old_node_ports)
        )
    health_check_port = spec.get("healthCheckNodePort", 0)
    old_health_check_port = (old_spec or {}).get("healthCheckNodePort", 0)
    has_both = service_update.has_health_check(spec) and service_update.has_health_check(old_spec or {})
    if has_both and health_check_port != old_health_check_port:
        errors.append(forbidden("spec.healthCheckNodePort", checks.IMMUTABLE))
    return errors


def _node_port_errors(port: Object, path: str, old_node_ports: Collection[int | None]) -> list[FieldError]:
    """The error of a node port out of range; a stored port (`old_node_ports`) may stay."""
    node_port, valid_range = port.get("nodePort"), f"{_NODE_PORT_MIN}-{_NODE_PORT_MAX}"
    if not node_port or _NODE_PORT_MIN <= node_port <= _NODE_PORT_MAX or node_port in old_node_ports:
        return []
    message = f"provided port is not in the valid range. The range of valid ports is {valid_range}"
    return [invalid(f"{path}.nodePort", node_port, message)]
