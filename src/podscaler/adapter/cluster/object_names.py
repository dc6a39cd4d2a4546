"""Finds the names of the objects that a label selector matches, for requests about several objects.

`adapter.providers` calls it, for resources that have metrics. The first request about a resource starts a watch of the
metadata of its objects; until the watch has its first list each request lists the objects. A watch ends where it is not
allowed or not served, and is tried again after RETRY_S. It also ends where its objects were not requested for IDLE_S.
Equal lists that overlap in time are one request.

Differs: prometheus-adapter lists the objects for each request.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from podscaler.adapter.cluster.rest_mapper import MappedResource
from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector, WatchSource
from podscaler.kube.transport.single_flight import SingleFlight

log = logging.getLogger(__name__)

PAGE_OBJECTS = "500"
IDLE_S = 1800.0
"""A watch whose objects are not requested for so long ends."""
RETRY_S = 600.0
"""How long a watch that the API server refused is not tried again."""


class ObjectMetadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata that selecting and `kube.informers.cache` need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class _Status(msgspec.Struct, gc=False):
    """The field of a pod's status that is read."""

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
    """The field of a list's metadata that is read: the token of the next page, empty on the last one."""

    continue_: str = msgspec.field(default="", name="continue")


class _ObjectList(msgspec.Struct):
    """A page of a list of objects."""

    items: list[LabeledObject] | None = None
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


_OBJECT: msgspec.json.Decoder[LabeledObject] = msgspec.json.Decoder(LabeledObject)
_LIST: msgspec.json.Decoder[_ObjectList] = msgspec.json.Decoder(_ObjectList)


@dataclass(slots=True)
class _Informer:
    """A watch of one resource that runs; `used_at_s` is the instant of the latest request about its objects."""

    cache: Cache[LabeledObject]
    reflector: Reflector[LabeledObject]
    task: asyncio.Task[None]
    used_at_s: float

    @property
    def is_refused(self) -> bool:
        """Whether the server does not let its objects be watched."""
        return self.reflector.is_forbidden or not self.reflector.is_served


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
        self._informers: dict[str, _Informer] = {}
        self._refused_until_s: dict[str, float] = {}
        self._lists: SingleFlight[tuple[str, str], list[LabeledObject]] = SingleFlight()

    async def select(self, resource: MappedResource, namespace: str, selector: Selector) -> list[str]:
        """The names of the objects that a selector matches, as `objects`. Raises StatusError."""
        return [labeled.metadata.name for labeled in await self.objects(resource, namespace, selector)]

    async def objects(self, resource: MappedResource, namespace: str, selector: Selector) -> Sequence[LabeledObject]:
        """The objects that a selector matches, in the order of their namespaces and names.

        With an empty `namespace` those of all namespaces, or of a cluster-scoped resource. Raises StatusError.
        """
        cache = self._find_cache(resource) if self._watches else None
        if cache is not None and cache.synced:
            if namespace or not resource.is_namespaced:
                return cache.select(namespace, selector)
            matching = [labeled for labeled in cache if selector.matches(labeled.metadata.labels or {})]
            return sorted(matching, key=lambda labeled: (labeled.metadata.namespace, labeled.metadata.name))
        path, selector_text = resource.path(namespace), str(selector)
        return await self._lists.run((path, selector_text), lambda: self._list_pages(path, selector_text))

    async def stop(self) -> None:
        """End all watches."""
        tasks = [informer.task for informer in self._informers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._informers.clear()

    def _find_cache(self, resource: MappedResource) -> Cache[LabeledObject] | None:
        """The cache of the watch of a resource, which is started where there is none; None if it is refused."""
        path, now_s = resource.path(), self._clock.monotonic_s()
        self._end_watches(now_s)
        if now_s < self._refused_until_s.get(path, 0.0):
            return None
        informer = self._informers.get(path)
        if informer is None:
            informer = self._informers[path] = self._start_informer(path, str(resource.resource), now_s)
        informer.used_at_s = now_s
        return informer.cache

    def _start_informer(self, path: str, subject: str, now_s: float) -> _Informer:
        """Begin to watch the objects at `path`; the watch counts as used at `now_s`."""
        cache: Cache[LabeledObject] = Cache()
        source = WatchSource(path, subject, _decode)
        reflector = Reflector(self._client, source, cache=cache, clock=self._clock, rng=random.Random())
        return _Informer(cache, reflector, asyncio.get_running_loop().create_task(reflector.run()), now_s)

    def _end_watches(self, now_s: float) -> None:
        """End the watches that are refused or idle, and forget the refusals that are over."""
        self._refused_until_s = {path: until_s for path, until_s in self._refused_until_s.items() if now_s < until_s}
        for path, informer in list(self._informers.items()):
            if informer.is_refused:
                self._refused_until_s[path] = now_s + RETRY_S
            if informer.is_refused or now_s - informer.used_at_s >= IDLE_S:
                informer.task.cancel()
                del self._informers[path]

    async def _list_pages(self, path: str, selector_text: str) -> list[LabeledObject]:
        """The objects of all pages of a list. Raises StatusError."""
        objects: list[LabeledObject] = []
        token = ""  # of the first page; the client leaves out parameters that are empty
        while True:
            query = [("labelSelector", selector_text), ("limit", PAGE_OBJECTS), ("continue", token)]
            body = await self._client.get(path, subject=path, query=query)
            try:
                page = _LIST.decode(body)
            except JSON_DECODE_ERRORS as error:
                raise StatusError(f"the list at {path} cannot be decoded: {error}", code=0) from error
            objects += page.items or []
            token = page.metadata.continue_
            if not token:
                return objects


def _decode(object_json: msgspec.Raw) -> LabeledObject:
    """The object in a list or watch event. Raises msgspec.DecodeError, UnicodeDecodeError."""
    return _OBJECT.decode(object_json)
