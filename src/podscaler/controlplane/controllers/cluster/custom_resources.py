"""CustomResourceDefinitions come true: the one owner of "a definition is stored, so its kind is served".

The API server makes one `CustomKinds` and runs it; nothing else needs to (`up --api-only` has custom resources, too).
What a definition goes through:

| the definition                             | what happens                                                         |
|--------------------------------------------|----------------------------------------------------------------------|
| is stored, its names are free              | it is Established, and its kind is served                            |
| is stored, somebody else has its names     | NamesAccepted is False, and it is not served until they are free     |
| is changed                                 | its kind is served as it says now; names that clash stay as they were|
|                                            | and who watches its objects is sent away, to come again              |
| is being deleted                           | nothing new is created, all its objects are deleted, then it goes    |
| is gone                                    | its kind is not served any more                                      |

Invariants: what is Established is served before anybody can ask for it; a kind is known to `Objects` before it has a
path, and loses its path first.

Source: the API documentation of CustomResourceDefinition; upstream's naming, establishing and finalizing controllers,
and its handler, which gives up the storage of a definition whose spec or accepted names change.
Differs: there is no delay before a kind is established, as there is only one server.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from podscaler.api.crd import records
from podscaler.api.crd.records import Records
from podscaler.api.kinds.apiextensions import crd_conditions
from podscaler.api.kinds.apiextensions.customresourcedefinition import FINALIZER, KEY
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.clock import Clock, rfc3339
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop, Watched
from podscaler.controlplane.registry.local import LocalRegistry
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import ObjectEvent
from podscaler.controlplane.storage.options import DeleteOptions

_Said = tuple[Object, Object | None]
AT_ONCE = 2
LOOK_AGAIN_S = 0.5
"""How often it is looked whether finalizers still keep objects of a definition that goes."""


class RouteTable(Protocol):
    """Where kinds become reachable: the routes of the API server."""

    def serve(self, definition: str, resources: Sequence[Resource]) -> None:
        """Serve the resources of a definition in place of those that it had; maybe none."""
        ...


class CustomKinds:
    """See the module. It is the reconciler of a `control_loop.ControlLoop`, its keys are names of definitions.

    Args:
        objects: where definitions and their objects are.
        paths: where kinds become reachable.
        clock: for transitions of conditions.
    """

    name = "custom-resource-definitions"
    RESOURCE_KEY = KEY
    """Of definitions: a server that does not serve them has no custom resources."""

    def __init__(self, objects: Objects, paths: RouteTable, clock: Clock) -> None:
        self._objects = objects
        self._registry = LocalRegistry(objects, "kube-apiserver")
        self._paths = paths
        self._clock = clock
        self._served: dict[str, Records] = {}
        self._said: dict[str, _Said] = {}
        self._listeners: list[Callable[[], None]] = []
        self._enders: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a kind comes or goes."""
        self._listeners.append(listener)

    def listen_for_ends(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with a kind's `Resource.key` whenever it is served in another way than before, or no more."""
        self._enders.append(listener)

    def load(self) -> None:
        """Serve what the stored definitions say, before anybody asks."""
        for crd in self._registry.list(KEY):
            self._serve(crd)

    async def run(self) -> None:
        """Follow the definitions until cancelled."""
        await ControlLoop(self, self._registry, self._clock, workers=AT_ONCE).run()

    def watches(self) -> Sequence[Watched[str]]:
        """Definitions."""
        return [Watched(KEY, self._of_definition)]

    def prime(self) -> Iterable[str]:
        """All there are, and those that are served although they are gone."""
        return {*self._served, *(crd["metadata"]["name"] for crd in self._registry.list(KEY))}

    async def sync(self, key: str) -> float | None:
        """Do what the definition asks for; see the module."""
        crd = self._registry.find(KEY, "", key)
        if crd is None:
            self._withdraw(key)
            return None
        if "deletionTimestamp" in crd["metadata"]:
            return await self._end(crd)
        await self._settle(key)
        return None

    def report(self, key: str, error: Exception) -> None:
        """Nothing more than the log."""

    def _of_definition(self, change: ObjectEvent) -> Iterable[str]:
        """The definition itself; with it those that may want a name that it no longer has."""
        yield change.object["metadata"]["name"]
        if change.type != "ADDED":
            group = change.object["spec"]["group"]
            yield from (crd["metadata"]["name"] for crd in self._of_group(group) if not _has_its_names(crd))

    def _of_group(self, group: str) -> list[Object]:
        return [crd for crd in self._registry.list(KEY) if crd["spec"]["group"] == group]

    async def _settle(self, name: str) -> None:
        """Give it its names, and serve it in the moment in which others can see that it is established."""
        crd = self._registry.get(KEY, "", name)
        self._settle_in_place(crd)
        if crd["status"] != (self._registry.get(KEY, "", name).get("status") or {}):
            crd = await self._registry.mutate(KEY, "", name, self._settle_in_place, subresource="status")
        self._serve(crd)

    def _settle_in_place(self, crd: Object) -> None:
        others = [
            one for one in self._of_group(crd["spec"]["group"]) if one["metadata"]["uid"] != crd["metadata"]["uid"]
        ]
        crd_conditions.settle(crd, crd_conditions.taken(others), rfc3339(self._clock.now_ns()))

    def _serve(self, crd: Object) -> None:
        """Serve what a definition says, if it may be served."""
        if not (crd_conditions.is_true(crd, crd_conditions.ESTABLISHED) or _has_its_names(crd)):
            return
        name = crd["metadata"]["name"]
        before, now = self._served.get(name), records.of(crd)
        said, self._said[name] = self._said.get(name), _said(crd)
        self._served[name] = now
        for record in (now.stored, *now.faces):
            self._objects.serve(record)
        self._paths.serve(name, now.served)
        for record in before.faces if before else ():
            if record.key not in {one.key for one in now.faces}:
                self._objects.withdraw(record.key)
        if before is None:
            self._tell()
        elif said != self._said[name]:
            self._end_watches(before)

    def _withdraw(self, name: str) -> None:
        gone = self._served.pop(name, None)
        if gone is None:
            return
        del self._said[name]
        self._paths.serve(name, ())
        for record in (*gone.faces, gone.stored):
            self._objects.withdraw(record.key)
        self._end_watches(gone)
        self._tell()

    def _end_watches(self, gone: Records) -> None:
        for listener in self._enders:
            listener(gone.stored.key)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    async def _end(self, crd: Object) -> float | None:
        """Delete all objects, then let the definition go."""
        name = crd["metadata"]["name"]
        if FINALIZER not in (crd["metadata"].get("finalizers") or ()):
            return None
        key = records.storage_key(crd)
        self._serve(crd)
        if name in self._served:
            await self._registry.mutate(KEY, "", name, self._mark_deleting, subresource="status")
            await self._objects.delete_collection(key, "", options=DeleteOptions(propagation="Background"))
            if self._registry.list(key):
                return LOOK_AGAIN_S
        await self._registry.mutate(KEY, "", name, _release)
        return None

    def _mark_deleting(self, crd: Object) -> None:
        crd_conditions.mark_deleting(crd, rfc3339(self._clock.now_ns()))


def _said(crd: Object) -> _Said:
    """What decides how objects are served."""
    return crd["spec"], (crd.get("status") or {}).get("acceptedNames")


def _release(crd: Object) -> None:
    finalizers = crd["metadata"].get("finalizers") or []
    crd["metadata"]["finalizers"] = [one for one in finalizers if one != FINALIZER]


def _has_its_names(crd: Object) -> bool:
    return crd_conditions.is_true(crd, crd_conditions.NAMES_ACCEPTED)
