"""Resolves the Service of an APIService to addresses of ready endpoints.

Called for every proxied request and every check. Endpoints are connected to directly, not through the Service's
clusterIP, as upstream does with `--enable-aggregator-routing`: this also works without a proxy for Services.

Source: upstream's service resolvers. Differs: Services of type ExternalName are resolved too; an external name that is
a Service of this cluster resolves to the endpoints of that Service.
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


def addresses(registry: Registry, namespace: str, name: str, port: int) -> Sequence[Address]:
    """The addresses of a port of a Service, at least one.

    Raises:
        Unreachable: there is none.
    """
    service = registry.find(SERVICES, namespace, name)
    if service is None:
        raise Unreachable(f'service "{name}" not found')
    if service["spec"].get("type") != "ExternalName":
        return _endpoints(registry, service, port)
    external: str = service["spec"].get("externalName", "").rstrip(".")
    inside = _service_named(external)
    if inside is None:
        return [(external, port)]
    behind = registry.find(SERVICES, *inside)
    if behind is None or behind["spec"].get("type") == "ExternalName":
        raise Unreachable(f'service "{inside[1]}" not found')
    return _endpoints(registry, behind, port)


def slices_of(registry: Registry, service: Object) -> Sequence[Object]:
    """The EndpointSlices of a Service."""
    metadata = service["metadata"]
    return registry.list(SLICES, metadata["namespace"], labels={SERVICE_NAME: metadata["name"]})


def find_port(service: Object, number: int) -> Object | None:
    """The port of a Service with that number, None without one."""
    ports: Sequence[Object] = service["spec"].get("ports") or []
    return next((port for port in ports if port.get("port") == number), None)


def ready(slices: Sequence[Object], port_name: str) -> Iterator[Address]:
    """The addresses of endpoints that are ready, on the port of that name."""
    for endpoint_slice in slices:
        number = next(
            (each.get("port") for each in endpoint_slice.get("ports") or [] if each.get("name", "") == port_name), None
        )
        if number is None or endpoint_slice.get("addressType") == "FQDN":
            continue
        for endpoint in endpoint_slice.get("endpoints") or []:
            if (endpoint.get("conditions") or {}).get("ready", True) is not False and endpoint.get("addresses"):
                yield endpoint["addresses"][0], number


def _endpoints(registry: Registry, service: Object, number: int) -> Sequence[Address]:
    name, port = service["metadata"]["name"], find_port(service, number)
    if port is None:
        raise Unreachable(f'no service port {number} found for service "{name}"')
    found = list(ready(slices_of(registry, service), port.get("name", "")))
    if not found:
        raise Unreachable(f'no endpoints available for service "{name}"')
    return found


def _service_named(host: str) -> tuple[str, str] | None:
    """Namespace and name of the Service of this cluster that a host name stands for, None for other hosts."""
    for suffix in _CLUSTER_SUFFIXES:
        name, _, namespace = host.removesuffix(suffix).partition(".")
        if host.endswith(suffix) and namespace and "." not in namespace:
            return namespace, name
    return None
