"""The controller of the Service `kubernetes` in the namespace `default`: the API server's address for pods.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; there is one key. The Service has no selector:
its EndpointSlice and Endpoints contain the address and port on which the API server listens in this run, for example
clusterIP 127.5.224.1:443 -> 127.0.0.1:6443. Another object: a function with its content, a call in `sync`, and an entry
of `watches`.

Source: documentation ("Accessing the API from within a Pod"); kube-apiserver creates the same objects.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints import slices
from podscaler.controlplane.controllers.framework import selection
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.network.balancer import Address
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

SERVICES = "services"
SLICES = "endpointslices.discovery.k8s.io"
ENDPOINTS = "endpoints"
NAMESPACE, NAME = "default", "kubernetes"
KEY = (NAMESPACE, NAME)
"""Of the Service, its EndpointSlice and its Endpoints."""
PORT_NAME = "https"
PORT = 443
_INITIAL_TARGET_PORT = 6443
"""That of a Service that `ensure_service_ip` creates, until the first `sync`."""


async def ensure_service_ip(registry: Registry) -> str:
    """The clusterIP of the Service, which is created if it is missing; the API server's certificate must contain it.

    `podscaler.cli.up.control_plane` calls it before the API server listens; the controller sets the target port later.
    Raises StatusError.
    """
    service = registry.find(SERVICES, *KEY) or await registry.create(SERVICES, _service(_INITIAL_TARGET_PORT))
    return str(service["spec"]["clusterIP"])


class KubernetesService(Reconciler[selection.Key]):
    """The controller that creates and repairs the Service `kubernetes`, its EndpointSlice and its Endpoints.

    Args:
        registry: the objects.
        server: IP address and port on which the API server listens.
    """

    name = "kubernetes-service-controller"

    def __init__(self, registry: Registry, server: Address) -> None:
        self._registry = registry
        self._server = server

    def watches(self) -> Sequence[Watched[selection.Key]]:
        """The Service, its slice and its Endpoints, which clients may delete or change."""
        return [Watched(SERVICES, _keys_of_event), Watched(SLICES, _keys_of_event), Watched(ENDPOINTS, _keys_of_event)]

    def prime(self) -> Iterable[selection.Key]:
        """The one key."""
        return [KEY]

    async def sync(self, key: selection.Key) -> float | None:
        """Create or update the objects. Returns None: there is no time of a next sync. Raises StatusError."""
        host, port = self._server
        service, desired_service = self._registry.find(SERVICES, *key), _service(port)
        desired_ports = desired_service["spec"]["ports"]
        if service is None:
            await self._registry.create(SERVICES, desired_service)
        elif service["spec"].get("ports") != desired_ports:
            spec = {**service["spec"], "ports": desired_ports}
            await self._registry.update(SERVICES, {**service, "spec": spec})
        await self._ensure_object(SLICES, _slice(host, port), ("endpoints", "ports"))
        await self._ensure_object(ENDPOINTS, _endpoints(host, port), ("subsets",))
        return None

    async def _ensure_object(self, resource: str, desired: Object, fields: Sequence[str]) -> None:
        """Create an object, or update those fields of the stored one that differ."""
        existing = self._registry.find(resource, *KEY)
        if existing is None:
            await self._registry.create(resource, desired)
        elif any(existing.get(field_name) != desired[field_name] for field_name in fields):
            await self._registry.update(
                resource, {**existing, **{field_name: desired[field_name] for field_name in fields}}
            )


def _keys_of_event(event: ObjectEvent) -> Iterable[selection.Key]:
    """The one key, if the changed object has it."""
    return [KEY] if selection.key_of(event.object) == KEY else []


def _service(port: int) -> Object:
    """The Service `kubernetes`, which leads to the port of the API server."""
    metadata = {
        "namespace": NAMESPACE,
        "name": NAME,
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    }
    ports = [{"name": PORT_NAME, "protocol": "TCP", "port": PORT, "targetPort": port}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"type": "ClusterIP", "ports": ports}}


def _slice(host: str, port: int) -> Object:
    """The only EndpointSlice of the Service, with the address and port of the API server."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"namespace": NAMESPACE, "name": NAME, "labels": {slices.SERVICE_NAME: NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": PORT_NAME, "protocol": "TCP", "port": port}],
    }


def _endpoints(host: str, port: int) -> Object:
    """The Endpoints of the Service; the label says that no slice is made of it."""
    metadata = {"namespace": NAMESPACE, "name": NAME, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}
    ports = [{"name": PORT_NAME, "port": port, "protocol": "TCP"}]
    subsets = [{"addresses": [{"ip": host}], "ports": ports}]
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}
