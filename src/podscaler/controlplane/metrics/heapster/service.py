"""The Service kube-system/heapster and its EndpointSlice, by which pods and users find the endpoint.

The wiring of `up` calls `ensure` with `--serve-heapster`, and `remove` without. A Service of that name that somebody
else created is left alone.

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

_log = logging.getLogger(__name__)


async def ensure(registry: Registry, address: str, port: int) -> None:
    """Create the Service, and let its endpoint be the address and port. Raises StatusError."""
    service = registry.find(SERVICES, NAMESPACE, NAME)
    if service is not None and not _is_own(service):
        _log.warning("the Service %s/%s is not that of --serve-heapster, and stays as it is", NAMESPACE, NAME)
        return
    if service is None:
        await registry.create(SERVICES, _service())
    wanted, found = _slice(address, port), registry.find(SLICES, NAMESPACE, NAME)
    if found is None:
        await registry.create(SLICES, wanted)
    else:
        await registry.update(SLICES, {**found, "endpoints": wanted["endpoints"], "ports": wanted["ports"]})


async def remove(registry: Registry) -> None:
    """Delete what `ensure` created in an earlier run, if it did. Raises StatusError."""
    for resource in (SERVICES, SLICES):
        found = registry.find(resource, NAMESPACE, NAME)
        if found is not None and _is_own(found):
            await registry.delete(resource, NAMESPACE, NAME)


def _is_own(obj: Object) -> bool:
    return OWN_LABEL in (obj["metadata"].get("labels") or {})


def _service() -> Object:
    labels = {"kubernetes.io/name": "Heapster", "k8s-app": NAME, OWN_LABEL: NAME}
    metadata = {"namespace": NAMESPACE, "name": NAME, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": "ClusterIP", "ports": [{"protocol": "TCP", "port": PORT}]},
    }


def _slice(address: str, port: int) -> Object:
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
