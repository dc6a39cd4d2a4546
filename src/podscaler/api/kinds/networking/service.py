"""The record of Service (core/v1): defaults, what a client may not set, table.

Addresses and node ports are given out by another part of the program, through the subresource `address`: nothing else
changes an address once it is there.

Source: golden captures; the API reference of core/v1.
Differs: PORT(S) shows in the place of a node port where a port is that may not be bound on this machine (`port_map`).
"""

from collections.abc import Mapping
from typing import Any

from podscaler.api import port_map
from podscaler.api.kinds.networking import (
    service_family_validation,
    service_status_validation,
    service_update,
    service_validation,
    service_warnings,
)
from podscaler.api.machinery import printing
from podscaler.api.resource import status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_DEFAULT_AFFINITY_S = 10_800


def fill(service: Object) -> None:
    """API defaults, in place."""
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
    _fill_traffic(spec)
    balancer = service.setdefault("status", {}).setdefault("loadBalancer", {})
    for each in balancer.get("ingress") or [] if spec["type"] == "LoadBalancer" else []:
        if each.get("ip") and each.get("ipMode") is None:
            each["ipMode"] = "VIP"


def _fill_traffic(spec: Object) -> None:
    if spec["type"] in service_update.OUTSIDE or spec.get("externalIPs"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _fill_families(spec: Object) -> None:
    """A name in DNS has no families, and no policy for traffic to it."""
    if spec["type"] == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
    else:
        service_family_validation.fill(spec)


def _prepare_create(new: Object) -> None:
    new["status"] = {"loadBalancer": {}}
    service_update.link_created(new["spec"])
    _fill_families(new["spec"])


def _prepare_update(new: Object, old: Object) -> None:
    """An update that does not name the address or the node ports keeps those that were given out."""
    status_subresource.keep_status(new, old)
    if old["spec"].get("type") == "LoadBalancer" != new["spec"].get("type"):
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}
    service_update.settle(new["spec"], old["spec"])
    _fill_families(new["spec"])


def _prepare_address(new: Object, old: Object) -> None:
    """Through `address` a service gets its clusterIP and node ports, also others than it had: nothing else can."""
    given_out = new["spec"]
    spec = {**old["spec"]}
    for name in ("clusterIP", "clusterIPs", "ports", "healthCheckNodePort"):
        if name in given_out:
            spec[name] = given_out[name]
    status_subresource.keep_status(new, old)
    new["spec"] = spec


def _external(spec: Object, status: Object) -> str:
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses = list(spec.get("externalIPs") or [])
    if spec.get("type") == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or []
        addresses = [each.get("ip") or each.get("hostname", "") for each in ingress] + addresses
        return ",".join(addresses) or "<pending>"
    return printing.or_none(addresses)


def _port_text(port: Object, moved: Mapping[int, int]) -> str:
    """Port, node port and protocol; without a node port, the port to which it is `moved` on this machine, if any."""
    inside = port.get("port", 0)
    outside = port.get("nodePort") or moved.get(inside)
    return f"{inside}:{outside}/{port['protocol']}" if outside else f"{inside}/{port['protocol']}"


def _row(service: Object, now_ns: int) -> list[Any]:
    spec, moved = service["spec"], port_map.of(service)
    return [
        service["metadata"].get("name", ""),
        spec.get("type", ""),
        spec.get("clusterIP") or printing.NONE,
        _external(spec, service.get("status") or {}),
        printing.or_none([_port_text(port, moved) for port in spec.get("ports") or []]),
        printing.created_age(service, now_ns),
        printing.labels(spec.get("selector")),
    ]


RESOURCE = Resource(
    group="",
    plural="services",
    singular="service",
    kind="Service",
    versions=(Version("v1", "core/v1.Service", default=fill),),
    storage_version="v1",
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
        warnings=service_warnings.warnings,
        prepare_status_update=status_subresource.keep_spec,
        validate=service_validation.faults,
        validate_status=service_status_validation.faults,
        prepare_subresource_update={"address": _prepare_address},
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the service, unique within its namespace."),
            Column("Type", description="From where the service can be reached."),
            Column("Cluster-IP", description="Address within the cluster, None for a service without one."),
            Column("External-IP", description="Addresses for the outside."),
            Column("Port(s)", description="Ports and protocols."),
            Column("Age", description="Time since the service was created."),
            Column("Selector", description="Which pods are behind the service.", priority=1),
        ),
        row=_row,
    ),
)
