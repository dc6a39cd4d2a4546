"""A real registry for tests of what works on one: the store on a real file, commits inline, virtual or real time.

Tests of controllers and node call `open_registry(tmp_path, resources, clock)`. Commits run on the event loop (a thread
could not be waited for in virtual time) and do not wait for the disk; names and uids come from a fixed seed; the
namespace `default` is there.
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
    """What a test works with: the registry, and the layers below for what a registry does not show."""

    registry: Registry
    objects: Objects
    store: Store


@asynccontextmanager
async def open_registry(
    directory: Path, resources: Iterable[Resource], clock: Clock, *, seed: int = 0
) -> AsyncIterator[OpenRegistry]:
    """A registry of `resources` (namespaces among them or not) over the store in `directory`, closed on leaving."""
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
        return  # these resources know no namespaces
    await registry.create("namespaces", {"metadata": {"name": "default"}})
