"""A cluster with Services of every kind, for the tests of names."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.network.dns_zone import Zone
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

Object = dict[str, Any]
TARGET = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}


def service(name: str, cluster_ip: str = "", **spec: Any) -> Object:
    """A Service of the namespace `default`."""
    given = {"clusterIP": cluster_ip} if cluster_ip else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": [{"name": "http", "port": 80}], **given, **spec},
    }


def endpoint(address: str, *, ready: bool = True, **more: Any) -> Object:
    """One endpoint of a slice."""
    return {"addresses": [address], "conditions": {"ready": ready}, "targetRef": TARGET, **more}


SLICE: Object = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {"name": "web-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
    "addressType": "IPv4",
    "endpoints": [
        endpoint("127.7.1.1", hostname="web-0"),
        endpoint("127.7.1.2"),
        endpoint("127.7.1.3", hostname="web-2", ready=False),
    ],
    "ports": [{"name": "http", "port": 80}],
}


@pytest.fixture
async def zone(tmp_path: Path) -> AsyncIterator[Zone]:
    """The Services php-apache (an address), web (headless) and elsewhere (a name outside)."""
    stored = [resource for resource in catalog.RESOURCES if resource.stored]
    async with open_registry(tmp_path / "data", stored, VirtualClock()) as opened:
        registry = opened.registry
        await registry.create("services", service("php-apache", "127.7.224.1"))
        await registry.create("services", service("web", "None"))
        await registry.create("services", service("elsewhere", type="ExternalName", externalName="example.org"))
        await registry.create("endpointslices.discovery.k8s.io", SLICE)
        yield Zone(registry, cluster_cidr="127.7.0.0/16")
