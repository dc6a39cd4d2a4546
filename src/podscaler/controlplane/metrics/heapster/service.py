"""Maintains the Service kube-system/heapster and its EndpointSlice, by which clients find Heapster's API.

`podscaler.cli.up.machine` calls `ensure` with `--serve-heapster`, `podscaler.cli.up.control_plane` calls `remove`
without. A Service of that name that somebody else created is left alone.

Source: Heapster's Service in clusters (name, namespace, labels, port 80).
"""

import logging
from typing import Final

from podscaler.controlplane.registry.registry import Object, Registry

SERVICES: Final = "services"
SLICES: Final = "endpointslices.discovery.k8s.io"
NAMESPACE: Final = "kube-system"
NAME: Final = "heapster"
PORT: Final = 80
OWN_LABEL: Final = "podscaler.dev/embedded"
"""Marks the objects that `ensure` created."""

_log = logging.getLogger(__name__)


async def ensure(registry: Registry, address: str, port: int) -> None:
    """Create the Service, and create or update its EndpointSlice with the address and port. Raises StatusError.

    A Service of somebody else is only logged.
    """
    service = registry.find(SERVICES, NAMESPACE, NAME)
    if service is not None and not _is_own(service):
        _log.warning("the Service %s/%s is not that of --serve-heapster, and stays as it is", NAMESPACE, NAME)
        return
    if service is None:
        await registry.create(SERVICES, _service())
    endpoint_slice = _slice(address, port)
    stored = registry.find(SLICES, NAMESPACE, NAME)
    if stored is None:
        await registry.create(SLICES, endpoint_slice)
    else:
        endpoints = {"endpoints": endpoint_slice["endpoints"], "ports": endpoint_slice["ports"]}
        await registry.update(SLICES, {**stored, **endpoints})


async def remove(registry: Registry) -> None:
    """Delete the Service and EndpointSlice that `ensure` created in an earlier run. Raises StatusError."""
    for resource in (SERVICES, SLICES):
        stored = registry.find(resource, NAMESPACE, NAME)
        if stored is not None and _is_own(stored):
            await registry.delete(resource, NAMESPACE, NAME)


def _is_own(obj: Object) -> bool:
    return OWN_LABEL in (obj["metadata"].get("labels") or {})


def _service() -> Object:
    """The Service, which has no selector."""
    labels = {"kubernetes.io/name": "Heapster", "k8s-app": NAME, OWN_LABEL: NAME}
    metadata = {"namespace": NAMESPACE, "name": NAME, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": "ClusterIP", "ports": [{"protocol": "TCP", "port": PORT}]},
    }


def _slice(address: str, port: int) -> Object:
    """The only EndpointSlice of the Service."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": NAMESPACE,
            "name": NAME,
            "labels": {"kubernetes.io/service-name": NAME, OWN_LABEL: NAME},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "", "protocol": "TCP", "port": port}],
    }
