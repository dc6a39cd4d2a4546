"""A real registry for tests of controllers and of the kubelet, on a store in a directory.

Tests call `open_registry(tmp_path, resources, clock)`. Commits run on the event loop (virtual time cannot wait for a
thread) and do not wait for the disk. Generated names and uids come from a fixed seed. The namespace `default` exists.
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
    """A registry, which controllers call, with its objects and their database, for what it does not provide."""

    registry: Registry
    objects: Objects
    store: Store


@asynccontextmanager
async def open_registry(
    directory: Path, resources: Iterable[Resource], clock: Clock, *, seed: int = 0
) -> AsyncIterator[OpenRegistry]:
    """Open a registry of `resources` on the store in `directory`; it is closed on leaving."""
    store = await open_store(directory, clock, run=run_inline, is_synced=False)
    try:
        objects = Objects(store, resources, random=Random(seed))
        registry = Registry(objects)
        await _make_default_namespace(registry)
        yield OpenRegistry(registry, objects, store)
    finally:
        await store.close()


async def _make_default_namespace(registry: Registry) -> None:
    try:
        if registry.find("namespaces", "", "default") is not None:
            return
    except KeyError:
        return  # `resources` has no namespaces
    await registry.create("namespaces", {"metadata": {"name": "default"}})
