"""Resource definition of Service (core/v1): defaults, hooks of writes, warnings, table.

The control plane allocates addresses and node ports, and writes them through the subresource `address`; no other write
changes an address that is set.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field that only some types of Services have: its default in
`_set_traffic_defaults`, `service_update` and `service_validation`; a new column, a cell in `_cells`.

Source: recorded responses (tests/conformance/golden); the API reference of core/v1; kube-apiserver's warnings.
Differs: where a port below 1024 is moved (`port_map`), the column PORT(S) has the real port in place of a node port.
There is no warning about addresses in unusual notation.
"""

from collections.abc import Mapping
from typing import Any

from podscaler.api import port_map
from podscaler.api.kinds.networking import service_family_validation, service_update, service_validation
from podscaler.api.machinery import printing
from podscaler.api.resource import status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_DEFAULT_AFFINITY_S = 10_800
"""How long a client stays at one endpoint with session affinity: three hours."""
_DEPRECATED_ANNOTATION = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_ANNOTATION = "service.kubernetes.io/topology-mode"


def set_defaults(service: Object) -> None:
    """API defaults, in place: type, session affinity, protocols, target ports, traffic policies, IP mode."""
    spec = service.setdefault("spec", {})
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    spec["type"] = spec.get("type") or "ClusterIP"
    if spec["sessionAffinity"] == "ClientIP":
        affinity = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        affinity.setdefault("timeoutSeconds", _DEFAULT_AFFINITY_S)
    elif spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or []:
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    _set_traffic_defaults(spec)
    load_balancer = service.setdefault("status", {}).setdefault("loadBalancer", {})
    if spec["type"] == "LoadBalancer":
        for ingress in load_balancer.get("ingress") or []:
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def _set_traffic_defaults(spec: Object) -> None:
    """Sets the defaults of the fields that only certain types of Services have, in place."""
    if service_update.is_reached_through_nodes(spec) or spec.get("externalIPs"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _set_family_defaults(spec: Object) -> None:
    """Sets the default IP families and policy, in place; an ExternalName has neither, nor an internalTrafficPolicy."""
    if spec["type"] == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
    else:
        service_family_validation.set_defaults(spec)


def _prepare_create(new: Object) -> None:
    """Sets the empty status, `clusterIPs` by `clusterIP`, and the IP families, in place."""
    new["status"] = {"loadBalancer": {}}
    service_update.copy_cluster_ip(new["spec"])
    _set_family_defaults(new["spec"])


def _prepare_update(new: Object, old: Object) -> None:
    """Keeps the status, and allocated addresses and node ports that the update leaves out; in place."""
    status_subresource.keep_status(new, old)
    old_type, new_type = old["spec"].get("type"), new["spec"].get("type")
    if old_type == "LoadBalancer" and new_type != "LoadBalancer":  # its external addresses are gone
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}
    service_update.reconcile(new["spec"], old["spec"])
    _set_family_defaults(new["spec"])


def _prepare_address(new: Object, old: Object) -> None:
    """Makes `new` the stored Service with the addresses and node ports of `new`; in place.

    Only the subresource `address` may change a cluster IP or node port that is set.
    """
    new_spec = new["spec"]
    spec = {**old["spec"]}
    for field in ("clusterIP", "clusterIPs", "ports", "healthCheckNodePort"):
        if field in new_spec:
            spec[field] = new_spec[field]
    status_subresource.keep_status(new, old)
    new["spec"] = spec


def warnings(new: Object, _old: Object | None) -> list[str]:
    """kube-apiserver's warnings about `new`, in its order."""
    spec = new["spec"]
    is_headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    messages = []
    if _DEPRECATED_ANNOTATION in (new["metadata"].get("annotations") or {}):
        messages.append(f"annotation {_DEPRECATED_ANNOTATION} is deprecated, please use {_TOPOLOGY_ANNOTATION} instead")
    if is_headless:
        messages += _headless_warnings(spec)
    elif spec.get("externalIPs") and spec.get("type") != "ExternalName":
        messages.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    return messages + _type_warnings(spec)


def _headless_warnings(spec: Object) -> list[str]:
    """Warnings about fields that a Service without cluster IP ignores."""
    ignored_fields = [
        ("spec.loadBalancerIP", spec.get("loadBalancerIP")),
        ("spec.externalIPs", spec.get("externalIPs")),
        ("spec.SessionAffinity", spec.get("sessionAffinity") != "None"),
    ]
    return [f"{path} is ignored for headless services" for path, is_set in ignored_fields if is_set]


def _type_warnings(spec: Object) -> list[str]:
    """Warnings about fields that the type of the Service ignores, and about deprecated values."""
    messages = []
    is_external_name = spec.get("type") == "ExternalName"
    if is_external_name and spec.get("externalIPs"):
        messages.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not is_external_name and spec.get("externalName"):
        messages.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        messages.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return messages


def _external_addresses_text(spec: Object, status: Object) -> str:
    """The column EXTERNAL-IP: the name, the addresses, or `<pending>` for a load balancer without any."""
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses = list(spec.get("externalIPs") or [])
    if spec.get("type") == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or []
        addresses = [ingress_item.get("ip") or ingress_item.get("hostname", "") for ingress_item in ingress] + addresses
        return ",".join(addresses) or "<pending>"
    return printing.or_none(addresses)


def _port_text(port: Object, moved_ports: Mapping[int, int]) -> str:
    """`PORT:NODE_PORT/PROTOCOL`, or `PORT/PROTOCOL` without a node port.

    Args:
        port: an item of `spec.ports`.
        moved_ports: port of the Service -> the port at which this machine really listens (`port_map`), which replaces a
            missing node port.
    """
    service_port = port.get("port", 0)
    outside_port = port.get("nodePort") or moved_ports.get(service_port)
    port_text = f"{service_port}:{outside_port}" if outside_port else str(service_port)
    return f"{port_text}/{port['protocol']}"


def _cells(service: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: type, cluster IP, external addresses, ports, selector."""
    spec, moved_ports = service["spec"], port_map.of(service)
    return [
        spec.get("type", ""),
        spec.get("clusterIP") or printing.NONE,
        _external_addresses_text(spec, service.get("status") or {}),
        printing.or_none([_port_text(port, moved_ports) for port in spec.get("ports") or []]),
        printing.labels(spec.get("selector")),
    ]


RESOURCE = Resource(
    group="",
    plural="services",
    kind="Service",
    returns_deleted_object=True,
    versions=(Version("v1", "core/v1.Service", default=set_defaults),),
    short_names=("svc",),
    categories=("all",),
    has_status=True,
    fields=lambda service: {
        "spec.clusterIP": service["spec"].get("clusterIP", ""),
        "spec.type": service["spec"].get("type", ""),
    },
    strategy=Strategy(
        allows_create_on_update=True,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        warnings=warnings,
        prepare_status_update=status_subresource.keep_spec,
        validate=service_validation.validate,
        validate_status=service_validation.validate_status,
        prepare_subresource_update={"address": _prepare_address},
    ),
    printer=tables.named(
        "service",
        Column("Type", description="From where the service can be reached."),
        Column("Cluster-IP", description="Address within the cluster, None for a service without one."),
        Column("External-IP", description="Addresses for the outside."),
        Column("Port(s)", description="Ports and protocols."),
        tables.AGE,
        Column("Selector", description="Which pods are behind the service.", priority=1),
        cells=_cells,
    ),
)
