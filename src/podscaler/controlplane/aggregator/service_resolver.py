"""Resolves a Service and a port to the addresses of its ready endpoints.

`aggregation_layer` calls it for every proxied request, `availability` and `remote_documents` for requests of their own,
the API server's `webhook_client` and `proxy_targets` for webhooks and Services: the Service metrics-server in
kube-system with port 443 becomes [("127.5.1.2", 10250)]. Requests go to endpoints, not to the Service's clusterIP, as
with kube-apiserver's flag `--enable-aggregator-routing`: this works without a Service proxy.

Source: kube-aggregator's service resolvers. Differs: Services of type ExternalName are resolved too; an external name
that is a Service of this cluster resolves to the endpoints of that Service.
"""

from collections.abc import Iterator, Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.errors import PodscalerError
from podscaler.controlplane.controllers.endpoints.slices import SERVICE_NAME
from podscaler.controlplane.controllers.endpoints.stored_slices import SLICES
from podscaler.controlplane.registry.registry import Registry

SERVICES = "services"
_CLUSTER_SUFFIXES = (".svc.cluster.local", ".svc")

Address = tuple[str, int]
"""Host (an IP address, or the name of an ExternalName) and port number."""


class Unreachable(PodscalerError):
    """The Service has no address; the text says why."""


def resolve(registry: Registry, namespace: str, name: str, port: int) -> Sequence[Address]:
    """The addresses for the port `port` of a Service (not that of its pods), at least one.

    Raises Unreachable if the Service, the port or a ready endpoint is missing.
    """
    service = registry.find(SERVICES, namespace, name)
    if service is None:
        raise Unreachable(f'service "{name}" not found')
    if service["spec"].get("type") != "ExternalName":
        return _resolve_endpoints(registry, service, port)
    external: str = service["spec"].get("externalName", "").rstrip(".")
    namespace_and_name = _parse_service_host(external)
    if namespace_and_name is None:
        return [(external, port)]
    target_namespace, target_name = namespace_and_name
    target = registry.find(SERVICES, target_namespace, target_name)
    if target is None or target["spec"].get("type") == "ExternalName":  # only one step, so that there is no circle
        raise Unreachable(f'service "{target_name}" not found')
    return _resolve_endpoints(registry, target, port)


def slices_of(registry: Registry, service: Object) -> Sequence[Object]:
    """The EndpointSlices of a Service."""
    metadata = service["metadata"]
    return registry.list(SLICES, metadata["namespace"], labels={SERVICE_NAME: metadata["name"]})


def find_port(service: Object, port: int) -> Object | None:
    """The element of spec.ports with the number `port`, None if there is none."""
    service_ports: Sequence[Object] = service["spec"].get("ports") or []
    return next((service_port for service_port in service_ports if service_port.get("port") == port), None)


def ready_addresses(slices: Sequence[Object], port_name: str) -> Iterator[Address]:
    """The addresses of endpoints that are ready, each with the target port that its slice has for that name."""
    for endpoint, endpoint_port in ready_endpoints(slices, port_name):
        yield endpoint["addresses"][0], endpoint_port


def ready_endpoints(slices: Sequence[Object], port_name: str) -> Iterator[tuple[Object, int]]:
    """The endpoints that are ready and have an address, each with the target port that its slice has for that name."""
    for endpoint_slice in slices:
        ports = endpoint_slice.get("ports") or []
        endpoint_port = next((port.get("port") for port in ports if port.get("name", "") == port_name), None)
        if endpoint_port is None or endpoint_slice.get("addressType") == "FQDN":
            continue
        for endpoint in endpoint_slice.get("endpoints") or []:
            is_ready = (endpoint.get("conditions") or {}).get("ready") is not False  # null counts as ready
            if is_ready and endpoint.get("addresses"):
                yield endpoint, endpoint_port


def _resolve_endpoints(registry: Registry, service: Object, port: int) -> Sequence[Address]:
    """The ready addresses of a Service's port. Raises Unreachable."""
    name, service_port = service["metadata"]["name"], find_port(service, port)
    if service_port is None:
        raise Unreachable(f'no service port {port} found for service "{name}"')
    addresses = list(ready_addresses(slices_of(registry, service), service_port.get("name", "")))
    if not addresses:
        raise Unreachable(f'no endpoints available for service "{name}"')
    return addresses


def _parse_service_host(host: str) -> tuple[str, str] | None:
    """Namespace and name of the Service that a host name like `web.default.svc` stands for, None for other hosts."""
    for suffix in _CLUSTER_SUFFIXES:
        name, _, namespace = host.removesuffix(suffix).partition(".")
        if host.endswith(suffix) and namespace and "." not in namespace:
            return namespace, name
    return None
