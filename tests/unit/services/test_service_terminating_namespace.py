"""Endpoint controllers in a namespace that is being deleted: they create nothing there, and it is no error."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.endpoints.endpoint_controller import EndpointController
from podscaler.controlplane.controllers.endpoints.endpointslices import EndpointSlices
from podscaler.controlplane.controllers.framework import write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "ending"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    """A registry with a Service in a namespace that is being deleted."""
    async with open_registry(tmp_path, catalog.RESOURCES, VirtualClock()) as opened:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ending"}}
        await opened.registry.create("namespaces", namespace)
        await opened.registry.create("services", SERVICE)
        await opened.registry.delete("namespaces", "", "ending")
        yield opened.registry


@pytest.mark.parametrize("controller", [EndpointController, EndpointSlices])
async def test_nothing_is_created(
    registry: Registry, controller: Callable[[Registry, VirtualClock], Reconciler[Key]]
) -> None:
    """The sync ends as if there were nothing to do."""
    assert await controller(registry, VirtualClock()).sync(("ending", "web")) is None
    assert [*registry.list("endpoints"), *registry.list("endpointslices.discovery.k8s.io")] == []


async def test_other_errors_are_raised(registry: Registry) -> None:
    """A create that fails for another reason is an error."""
    with pytest.raises(StatusError, match="already exists"):
        await write_errors.ignoring_terminating(
            registry.create("namespaces", {"metadata": {"name": "ending"}, "apiVersion": "v1", "kind": "Namespace"})
        )
