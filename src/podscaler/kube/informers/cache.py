"""Defines the store of an informer: the objects of one kind by key, namespace and labels, with event handlers.

`informers.reflector.Reflector` fills it; controllers read it and subscribe to its changes. Invariants:

1. Objects are shared and never modified.
2. Handlers are called after the cache has changed, in the order of changes, without waiting in between.
3. `version` is the resource version up to which the cache is complete.
4. The cost of a selection by labels is proportional to the objects with the rarest label value of the selector, not to
   the namespace: the values of a label are indexed when a selector first needs that label.

Source: client-go's informers (documentation).
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from podscaler.api.machinery.selectors import Selector

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Namespace and name; the namespace is empty for kinds without one."""


class Cached(Protocol):
    """An object with metadata: namespace, name, uid, resource_version, labels."""

    @property
    def metadata(self) -> Any: ...


T = TypeVar("T", bound=Cached)
T_contra = TypeVar("T_contra", bound=Cached, contravariant=True)


class ResourceEventHandler(Protocol[T_contra]):
    """A subscriber to changes; called on the event loop, must not block."""

    def added(self, obj: T_contra, /) -> None:
        """An object is new in the cache."""
        ...

    def updated(self, old: T_contra, new: T_contra, /) -> None:
        """An object changed."""
        ...

    def deleted(self, obj: T_contra, /) -> None:
        """An object is gone; `obj` is its last state."""
        ...


def key_of(obj: Cached) -> Key:
    """The key of an object."""
    meta = obj.metadata
    return meta.namespace, meta.name


class Cache(Generic[T]):
    """The objects of one kind as last listed or watched; the module's invariants hold. Empty before the first list."""

    def __init__(self) -> None:
        # by namespace, then by name
        self._objects: dict[str, dict[str, T]] = {}
        # by label, then by namespace and value of that label, then by name
        self._indexes: dict[str, dict[tuple[str, str], dict[str, T]]] = {}
        self._handlers: list[ResourceEventHandler[T]] = []
        self._synced = asyncio.Event()
        self.version = ""

    def __len__(self) -> int:
        return sum(len(objects) for objects in self._objects.values())

    def __iter__(self) -> Iterator[T]:
        for objects in self._objects.values():
            yield from objects.values()

    @property
    def synced(self) -> bool:
        """Whether the first complete list has arrived."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once the first complete list has arrived."""
        await self._synced.wait()

    def subscribe(self, handler: ResourceEventHandler[T]) -> None:
        """Call `handler` for every change, at first with `added` for the cached objects; its exceptions are logged."""
        self._handlers.append(handler)
        for obj in list(self):
            self._notify(handler, None, obj)

    def find(self, key: Key) -> T | None:
        """The object of that key, None if there is none."""
        namespace, name = key
        return self._objects.get(namespace, {}).get(name)

    def deduplicated(self, obj: T) -> T:
        """The cached object of the same uid and version as `obj`, else `obj`, so that a relist does not hold both."""
        old = self.find(key_of(obj))
        if old is None or old.metadata.uid != obj.metadata.uid:
            return obj
        return old if old.metadata.resource_version == obj.metadata.resource_version else obj

    def count(self, namespace: str) -> int:
        """How many objects a namespace has."""
        return len(self._objects.get(namespace, ()))

    def select(self, namespace: str, selector: Selector) -> list[T]:
        """The objects of a namespace that `selector` matches, by name."""
        if selector.matches_nothing:
            return []
        candidates = self._candidates(namespace, selector)
        matching = [obj for obj in candidates.values() if selector.matches(obj.metadata.labels or {})]
        matching.sort(key=lambda obj: str(obj.metadata.name))
        return matching

    def replace(self, objects: Iterable[T], version: str) -> None:
        """Replace the whole content by `objects` (of all namespaces), the state of `version`."""
        listed_objects = {key_of(obj): obj for obj in objects}
        for old in [obj for obj in self if key_of(obj) not in listed_objects]:
            self.remove(old)
        for obj in listed_objects.values():
            self.put(obj)
        self.version = version
        self._synced.set()

    def put(self, obj: T) -> None:
        """Store `obj`. The stored version again changes nothing; another uid counts as a deletion and an addition."""
        namespace, name = key_of(obj)
        old = self._objects.get(namespace, {}).get(name)
        if old is not None and old.metadata.uid != obj.metadata.uid:
            self.remove(old)
            old = None
        if old is not None and old.metadata.resource_version == obj.metadata.resource_version:
            return
        if old is not None:
            self._unindex(old)
        self._objects.setdefault(namespace, {})[name] = obj
        self._index(obj)
        self._notify_all(old, obj)

    def remove(self, obj: T) -> None:
        """Drop the object with the key of `obj`, if there is one; handlers get `obj`."""
        namespace, name = key_of(obj)
        objects = self._objects.get(namespace, {})
        old = objects.pop(name, None)
        if old is None:
            return
        if not objects:
            del self._objects[namespace]
        self._unindex(old)
        self._notify_all(obj, None)

    def _candidates(self, namespace: str, selector: Selector) -> Mapping[str, T]:
        """The objects by name that may match: those with the rarest label value that the selector requires."""
        smallest: Mapping[str, T] | None = None
        for label, label_value in selector.equalities:
            labelled = self._index_of(label).get((namespace, label_value), {})
            if smallest is None or len(labelled) < len(smallest):
                smallest = labelled
        return self._objects.get(namespace, {}) if smallest is None else smallest

    def _index_of(self, label: str) -> dict[tuple[str, str], dict[str, T]]:
        """The index of a label, made now if no selector has needed it before."""
        if label not in self._indexes:
            self._indexes[label] = {}
            for obj in self:
                _add_to_index(self._indexes[label], label, obj)
        return self._indexes[label]

    def _index(self, obj: T) -> None:
        """Add an object to the indexes of its labels."""
        for label, index in self._indexes.items():
            _add_to_index(index, label, obj)

    def _unindex(self, obj: T) -> None:
        """Remove an object from the indexes of its labels; a label value without objects leaves no entry."""
        labels = obj.metadata.labels or {}
        for label, index in self._indexes.items():
            if label in labels:
                label_key = (obj.metadata.namespace, labels[label])
                index[label_key].pop(obj.metadata.name, None)
                if not index[label_key]:
                    del index[label_key]

    def _notify_all(self, old: T | None, new: T | None) -> None:
        """Call all handlers; `old` is None for an added object, `new` for a deleted one."""
        for handler in self._handlers:
            self._notify(handler, old, new)

    def _notify(self, handler: ResourceEventHandler[T], old: T | None, new: T | None) -> None:
        """Call a handler: `old` is None for an added object, `new` for a deleted one. An exception is logged."""
        try:
            if new is None:
                assert old is not None
                handler.deleted(old)
            elif old is None:
                handler.added(new)
            else:
                handler.updated(old, new)
        except Exception:
            log.exception("an event handler of a cache failed; the other handlers are called")


def _add_to_index(index: dict[tuple[str, str], dict[str, T]], label: str, obj: T) -> None:
    """Add an object to the index of a label, if it has that label."""
    labels: Mapping[str, str] = obj.metadata.labels or {}
    if label in labels:
        index.setdefault((obj.metadata.namespace, labels[label]), {})[obj.metadata.name] = obj
