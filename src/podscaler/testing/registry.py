"""A real registry (`podscaler.controlplane.registry`) for tests of controllers and of the kubelet, on a real store.

A test or its fixture opens it, and passes `opened.registry` to the kubelet or controller under test::

    async with open_registry(tmp_path, catalog.RESOURCES, VirtualClock()) as opened:
        await opened.registry.create("pods", pod)

Commits run on the event loop (virtual time cannot wait for a thread) and do not wait for the disk. Generated names and
uids come from a seed. The namespace `default` exists if `resources` has namespaces.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from podscaler.api.resource.resources import Resource
from podscaler.base.clock import Clock
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.store import Store, open_store, run_inline


@dataclass(frozen=True, slots=True)
class OpenRegistry:
    """A registry and the two layers below it.

    Attributes:
        registry: what controllers call, as a client of an API server.
        objects: the operations of an API server on objects, which the registry calls.
        store: the database of the objects.
    """

    registry: Registry
    objects: Objects
    store: Store


@asynccontextmanager
async def open_registry(
    directory: Path, resources: Iterable[Resource], clock: Clock, *, seed: int = 0
) -> AsyncIterator[OpenRegistry]:
    """A registry that is open within the context.

    Args:
        directory: of the database, which is made if it is not there; with one that is there, its objects are kept.
        resources: the kinds that are served.
        clock: for timestamps.
        seed: of generated names and uids.
    """
    store = await open_store(directory, clock, run=run_inline, is_synced=False)
    try:
        objects = Objects(store, resources, random=Random(seed))
        registry = Registry(objects)
        if objects.knows("namespaces") and registry.find("namespaces", "", "default") is None:
            await registry.create("namespaces", {"metadata": {"name": "default"}})
        yield OpenRegistry(registry, objects, store)
    finally:
        await store.close()
