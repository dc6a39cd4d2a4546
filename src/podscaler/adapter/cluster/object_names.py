"""Finds the names of the objects that a label selector matches, for requests about several objects.

`adapter.providers` calls it. The first request about a resource starts a watch of the metadata of its objects; until
the watch has its first list, and where it is not allowed, each request lists the objects. Equal lists that overlap in
time are one request.

Differs: prometheus-adapter lists the objects for each request.
"""

import asyncio
import logging
import random
from collections.abc import Sequence

import msgspec

from podscaler.adapter.cluster.rest_mapper import MappedResource
from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.watch import Reflector, WatchSource
from podscaler.kube.transport.sharing import SingleFlight

log = logging.getLogger(__name__)

PAGE_OBJECTS = "500"


class ObjectMetadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata that selecting needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class LabeledObject(msgspec.Struct, gc=False):
    """An object of any kind; `status` is read for the phase of pods alone."""

    metadata: ObjectMetadata = msgspec.field(default_factory=ObjectMetadata)
    status: _Status | None = None

    @property
    def is_running(self) -> bool:
        """Whether this is a pod whose phase is Running."""
        return self.status is not None and self.status.phase == "Running"


class _ListMetadata(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _ObjectList(msgspec.Struct):
    items: list[LabeledObject] | None = None
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


_OBJECT: msgspec.json.Decoder[LabeledObject] = msgspec.json.Decoder(LabeledObject)
_LIST: msgspec.json.Decoder[_ObjectList] = msgspec.json.Decoder(_ObjectList)


class ObjectNames:
    """Returns the names of objects by label selector: from watches of whole kinds, or from one list for each request.

    Args:
        client: sends the requests.
        clock: for the delays of watches.
        watches: whether objects are watched; otherwise each request lists them.
    """

    def __init__(self, client: Client, clock: Clock, *, watches: bool = True) -> None:
        self._client = client
        self._clock = clock
        self._watches = watches
        self._informers: dict[str, tuple[Cache[LabeledObject], asyncio.Task[None]]] = {}
        self._lists: SingleFlight[tuple[str, str], list[LabeledObject]] = SingleFlight()

    async def select(self, resource: MappedResource, namespace: str, selector: Selector) -> list[str]:
        """The names in a namespace (empty: of objects without one), in order. Raises StatusError."""
        return [each.metadata.name for each in await self.objects(resource, namespace, selector)]

    async def objects(self, resource: MappedResource, namespace: str, selector: Selector) -> Sequence[LabeledObject]:
        """The objects that a selector matches, in order; of all namespaces where none is given. Raises StatusError."""
        cache = self._cache(resource) if self._watches else None
        if cache is not None and cache.synced:
            if namespace or not resource.is_namespaced:
                return cache.select(namespace, selector)
            found = [each for each in cache if selector.matches(each.metadata.labels or {})]
            return sorted(found, key=lambda each: (each.metadata.namespace, each.metadata.name))
        path, text = resource.path(namespace), str(selector)
        return await self._lists.run((path, text), lambda: self._list(path, text))

    async def stop(self) -> None:
        """End all watches."""
        tasks = [task for _, task in self._informers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._informers.clear()

    def _cache(self, resource: MappedResource) -> Cache[LabeledObject]:
        path = resource.path()
        if path not in self._informers:
            cache: Cache[LabeledObject] = Cache()
            source = WatchSource(path, str(resource.resource), _decoded)
            reflector = Reflector(self._client, source, cache=cache, clock=self._clock, rng=random.Random())
            self._informers[path] = cache, asyncio.get_running_loop().create_task(reflector.run())
        return self._informers[path][0]

    async def _list(self, path: str, selector: str) -> list[LabeledObject]:
        """All pages of a list. Raises StatusError."""
        objects: list[LabeledObject] = []
        token = ""
        while True:
            query = [("labelSelector", selector), ("limit", PAGE_OBJECTS), ("continue", token)]
            body = await self._client.get(path, subject=path, query=query)
            try:
                page = _LIST.decode(body)
            except msgspec.DecodeError as error:
                raise StatusError(f"the list at {path} cannot be decoded: {error}", code=0) from error
            objects += page.items or []
            token = page.metadata.continue_
            if not token:
                return objects


def _decoded(raw: msgspec.Raw) -> LabeledObject:
    return _OBJECT.decode(raw)
