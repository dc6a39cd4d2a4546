"""Carries the allocated addresses and ports of a Service over to its update, and drops those that it cannot have.

Called by `api.kinds.networking.service`, before validation; `podscaler.controlplane.network.cluster_ips` and
`node_ports` use the functions that say what a Service needs. `new` and `old` are the specs of the update and of the
stored Service, and `new` is changed in place. Allocated values that the client leaves out are copied from the stored
spec; a change of `clusterIP` alone changes `clusterIPs`, too; a change of the type removes fields that the new type
does not have. A new allocated value goes into `reconcile`, a field of single types into `_drop_fields_of_types`.

Source: kube-apiserver's storage and strategy of Services (allocated values, linked fields, fields of single types).
"""

from podscaler.api.resource.resources import Object


def is_reached_through_nodes(spec: Object) -> bool:
    """Whether the ports of a Service may be ports of nodes, too: it is of a type that has node ports."""
    return spec.get("type") in ("NodePort", "LoadBalancer")


def needs_node_ports(spec: Object) -> bool:
    """Whether a node port is allocated for each port that names none; a LoadBalancer may do without."""
    if spec.get("type") == "LoadBalancer":
        return bool(spec.get("allocateLoadBalancerNodePorts", True))
    return spec.get("type") == "NodePort"


def has_health_check(spec: Object) -> bool:
    """Whether nodes have a port for health checks of the load balancer (`healthCheckNodePort`)."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def copy_cluster_ip(spec: Object) -> None:
    """Copies the `clusterIP` of a new Service to empty `clusterIPs`, in place; `clusterIPs` alone are a field error."""
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def reconcile(new: Object, old: Object) -> None:
    """Carries allocated values over from the old to the new spec, and drops those without use, in place."""
    if _has_address(new) and _has_address(old):
        for field in ("clusterIP", "clusterIPs"):
            if not new.get(field) and old.get(field):
                new[field] = old[field]
    if is_reached_through_nodes(new) and is_reached_through_nodes(old):
        _keep_node_ports(new, old)
    if has_health_check(new) and has_health_check(old) and old.get("healthCheckNodePort"):
        new["healthCheckNodePort"] = new.get("healthCheckNodePort") or old["healthCheckNodePort"]
    _link_addresses(new, old)
    _drop_address(new, old)
    _drop_fields_of_types(new, old)


def _has_address(spec: Object) -> bool:
    return spec.get("type") != "ExternalName"


def _keep_node_ports(new: Object, old: Object) -> None:
    """Copies node ports by port name, except for those that the update gives to a port itself."""
    reused_ports = set(_node_ports(new)) & set(_node_ports(old))
    old_node_ports = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports") or []}
    for port in new.get("ports") or []:
        node_port = old_node_ports.get(port.get("name", ""), 0)
        if not port.get("nodePort") and node_port and node_port not in reused_ports:
            port["nodePort"] = node_port


def _link_addresses(new: Object, old: Object) -> None:
    """Makes `clusterIPs` follow a change of `clusterIP`, unless the client changed `clusterIPs` as well."""
    if new.get("clusterIP", "") == old.get("clusterIP", "") or not _same_addresses(new, old):
        return
    if new.get("clusterIP"):
        new["clusterIPs"] = [new["clusterIP"]]
    else:
        new.pop("clusterIPs", None)


def _drop_address(new: Object, old: Object) -> None:
    """Removes addresses and families that the update only repeats, if its type has none any more."""
    if _has_address(new) or not _has_address(old):
        return
    if _same_addresses(new, old):
        new.pop("clusterIP", None)
        new.pop("clusterIPs", None)
    _drop_unchanged(new, old, "ipFamilies", "ipFamilyPolicy")


def _drop_fields_of_types(new: Object, old: Object) -> None:
    """Removes node ports and load balancer fields that the update only repeats, if its type has none any more."""
    if is_reached_through_nodes(old) and not is_reached_through_nodes(new) and _node_ports(new) == _node_ports(old):
        for port in new.get("ports") or []:
            port.pop("nodePort", None)
    if has_health_check(old) and not has_health_check(new):
        _drop_unchanged(new, old, "healthCheckNodePort")
    if old.get("type") == "LoadBalancer" and new.get("type") != "LoadBalancer":
        _drop_unchanged(new, old, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_reached_from_outside(old) and not is_reached_from_outside(new):
        _drop_unchanged(new, old, "externalTrafficPolicy")


def _drop_unchanged(new: Object, old: Object, *fields: str) -> None:
    """Removes those of the named fields from `new` that have the value of `old`, in place."""
    for field in fields:
        if new.get(field) == old.get(field):
            new.pop(field, None)


def is_reached_from_outside(spec: Object) -> bool:
    """Whether clients outside the cluster reach such a Service."""
    return is_reached_through_nodes(spec) or bool(spec.get("type") == "ClusterIP" and spec.get("externalIPs"))


def _same_addresses(new: Object, old: Object) -> bool:
    return (new.get("clusterIPs") or []) == (old.get("clusterIPs") or [])


def _node_ports(spec: Object) -> list[int]:
    """The node ports that are set, in the order of the ports."""
    return [port["nodePort"] for port in spec.get("ports") or [] if port.get("nodePort")]
