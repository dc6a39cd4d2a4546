"""The Service `kubernetes` in the namespace `default`: the API server's address for what runs in the cluster.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; there is one key. The Service has no selector:
its slice names the address and port on which the API server listens in this run, and the Service proxy does the rest.

Source: documentation ("Accessing the API from within a Pod"); upstream's API server makes both objects likewise.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints import slices
from podscaler.controlplane.controllers.framework import selection
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.network.balancer import Address
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

SERVICES = "services"
SLICES = "endpointslices.discovery.k8s.io"
ENDPOINTS = "endpoints"
KEY = ("default", "kubernetes")
PORT_NAME = "https"
PORT = 443
_USUAL_PORT = 6443


async def make_service(registry: Registry) -> str:
    """The Service's address, which the API server's certificate must name; it is created where it is missing.

    On which port the API server listens is not known before it does: the controller says so later.
    """
    service = registry.find(SERVICES, *KEY) or await registry.create(SERVICES, _service(_USUAL_PORT))
    return str(service["spec"]["clusterIP"])


class KubernetesService:
    """See the module.

    Args:
        server: IP address and port on which the API server listens.
    """

    name = "kubernetes-service-controller"

    def __init__(self, registry: Registry, server: Address) -> None:
        self._registry = registry
        self._server = server

    def watches(self) -> Sequence[Watched[selection.Key]]:
        """The Service, its slice and its Endpoints, in case somebody deletes or changes them."""
        return [Watched(SERVICES, _own), Watched(SLICES, _own), Watched(ENDPOINTS, _own)]

    def prime(self) -> Iterable[selection.Key]:
        """The one key."""
        return [KEY]

    async def sync(self, key: selection.Key) -> float | None:
        """Create or mend the objects."""
        host, port = self._server
        service = self._registry.find(SERVICES, *key)
        if service is None:
            await self._registry.create(SERVICES, _service(port))
        elif service["spec"].get("ports") != (wanted := _service(port)["spec"]["ports"]):
            await self._registry.update(SERVICES, {**service, "spec": {**service["spec"], "ports": wanted}})
        one = self._registry.find(SLICES, *key)
        if one is None:
            await self._registry.create(SLICES, _slice(host, port))
        elif (one.get("endpoints"), one.get("ports")) != ((new := _slice(host, port))["endpoints"], new["ports"]):
            await self._registry.update(SLICES, {**one, "endpoints": new["endpoints"], "ports": new["ports"]})
        await self._sync_endpoints(_endpoints(host, port))
        return None

    async def _sync_endpoints(self, wanted: Object) -> None:
        found = self._registry.find(ENDPOINTS, *KEY)
        if found is None:
            await self._registry.create(ENDPOINTS, wanted)
        elif found.get("subsets") != wanted["subsets"]:
            await self._registry.update(ENDPOINTS, {**found, "subsets": wanted["subsets"]})

    def report(self, key: selection.Key, error: Exception) -> None:
        """Nothing more than the log."""


def _own(change: ObjectEvent) -> Iterable[selection.Key]:
    return [KEY] if selection.key_of(change.object) == KEY else []


def _service(port: int) -> Object:
    metadata = {
        "namespace": KEY[0],
        "name": KEY[1],
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    }
    ports = [{"name": PORT_NAME, "protocol": "TCP", "port": PORT, "targetPort": port}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"type": "ClusterIP", "ports": ports}}


def _slice(host: str, port: int) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"namespace": KEY[0], "name": KEY[1], "labels": {slices.SERVICE_NAME: KEY[1]}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": PORT_NAME, "protocol": "TCP", "port": port}],
    }


def _endpoints(host: str, port: int) -> Object:
    metadata = {"namespace": KEY[0], "name": KEY[1], "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}
    ports = [{"name": PORT_NAME, "port": port, "protocol": "TCP"}]
    subsets = [{"addresses": [{"ip": host}], "ports": ports}]
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}
