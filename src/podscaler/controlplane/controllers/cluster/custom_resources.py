"""The CustomResourceDefinition controller: serves the kinds of stored definitions.

`apiserver.app` creates one `CustomKinds` and runs it, also with `up --api-only`. States of a definition:

| the definition                             | action                                                               |
|--------------------------------------------|----------------------------------------------------------------------|
| is stored, its names are free              | it becomes Established, and its kind is served                       |
| is stored, its names are taken             | NamesAccepted is False, and it is not served until they are free     |
| is changed                                 | its kind is served by the new spec, conflicting names stay unchanged,|
|                                            | and watches of its objects are ended, so that clients restart them   |
| is being deleted                           | creates are refused, all its objects are deleted, then it is removed |
| is gone                                    | its kind is no longer served                                         |

Invariants: an Established kind is served before clients can see the condition; a kind is registered with `Objects`
before it has a path, and loses its path first.

Source: the API documentation of CustomResourceDefinition; upstream's naming, establishing and finalizing controllers,
and its handler, which replaces the storage of a definition whose spec or accepted names change.
Differs: a kind is established without delay, as there is only one server.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from podscaler.api.crd import records
from podscaler.api.crd.records import Records
from podscaler.api.kinds.apiextensions import crd_conditions
from podscaler.api.kinds.apiextensions.customresourcedefinition import FINALIZER
from podscaler.api.kinds.apiextensions.customresourcedefinition import KEY as DEFINITIONS
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.clock import Clock, rfc3339
from podscaler.controlplane.controllers.framework import write_errors
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop, Reconciler, Watched
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import ObjectEvent, Registry
from podscaler.controlplane.storage.options import DeleteOptions

_ServedSpec = tuple[Object, Object | None]
"""Spec and accepted names of a definition: what determines how its objects are served."""
WORKERS = 2
REQUEUE_S = 0.5
"""How often the objects of a definition that is being deleted are checked, as finalizers may keep them."""


class RouteTable(Protocol):
    """The routes of the API server, as far as custom kinds change them."""

    def serve(self, definition: str, resources: Sequence[Resource]) -> None:
        """Replace the served resources of a definition; an empty sequence removes its paths."""
        ...


class CustomKinds(Reconciler[str]):
    """Reconciles CustomResourceDefinitions. Keys are names of definitions.

    Args:
        objects: where definitions and their objects are.
        routes: the routes of the API server.
        clock: for transitions of conditions.
    """

    name = "custom-resource-definitions"
    RESOURCE_KEY = DEFINITIONS
    """The `Resource.key` of definitions: `apiserver.app` runs this controller only if it serves that kind."""

    def __init__(self, objects: Objects, routes: RouteTable, clock: Clock) -> None:
        self._objects = objects
        self._registry = Registry(objects, "kube-apiserver")
        self._routes = routes
        self._clock = clock
        self._served: dict[str, Records] = {}
        """The served kinds of each definition, by its name: the stored version, and the other versions (`faces`)."""
        self._specs: dict[str, _ServedSpec] = {}
        """What each definition is served by, to find changes."""
        self._listeners: list[Callable[[], None]] = []
        self._end_listeners: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a kind is added or removed."""
        self._listeners.append(listener)

    def listen_for_ends(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with a kind's `Resource.key` whenever its watches must end: it is changed or removed."""
        self._end_listeners.append(listener)

    def load(self) -> None:
        """Serve the kinds of the stored definitions, before the server accepts requests."""
        for crd in self._registry.list(DEFINITIONS):
            self._serve_kind(crd)

    async def run(self) -> None:
        """Sync definitions until cancelled."""
        await ControlLoop(self, self._registry, self._clock, workers=WORKERS).run()

    def watches(self) -> Sequence[Watched[str]]:
        """Definitions."""
        return [Watched(DEFINITIONS, self._keys_of)]

    def prime(self) -> Iterable[str]:
        """All stored definitions, and those that are served although they are gone."""
        return {*self._served, *(crd["metadata"]["name"] for crd in self._registry.list(DEFINITIONS))}

    async def sync(self, key: str) -> float | None:
        """Take the action of the module's table for a definition.

        Returns the seconds until the next check of one that is being deleted, otherwise None. Raises StatusError.
        """
        crd = self._registry.find(DEFINITIONS, "", key)
        if crd is None:
            self._withdraw_kind(key)
            return None
        if "deletionTimestamp" in crd["metadata"]:
            return await self._delete_objects(crd)
        await self._establish_kind(key)
        return None

    def _keys_of(self, event: ObjectEvent) -> Iterable[str]:
        """The definition itself, and those of its group that wait for a name that it may have released."""
        yield event.object["metadata"]["name"]
        if event.type != "ADDED":
            group = event.object["spec"]["group"]
            yield from (crd["metadata"]["name"] for crd in self._definitions_of(group) if not _has_accepted_names(crd))

    def _definitions_of(self, group: str) -> list[Object]:
        """The stored definitions of an API group."""
        return [crd for crd in self._registry.list(DEFINITIONS) if crd["spec"]["group"] == group]

    async def _establish_kind(self, name: str) -> None:
        """Write names and conditions, and serve the kind before other tasks see that it is established."""
        crd = self._registry.get(DEFINITIONS, "", name)
        stored_status = copy.deepcopy(crd.get("status") or {})  # `_set_conditions` changes that of `crd`
        self._set_conditions(crd)
        if crd["status"] != stored_status:
            crd = await self._registry.mutate(DEFINITIONS, "", name, self._set_conditions, subresource="status")
        self._serve_kind(crd)

    def _set_conditions(self, crd: Object) -> None:
        """Set accepted names and conditions of a definition, in place, as the names of others in its group allow."""
        others = [
            definition
            for definition in self._definitions_of(crd["spec"]["group"])
            if definition["metadata"]["uid"] != crd["metadata"]["uid"]
        ]
        crd_conditions.set_names_and_conditions(crd, crd_conditions.names_in_use(others), rfc3339(self._clock.now_ns()))

    def _serve_kind(self, crd: Object) -> None:
        """Serve the kind of a definition with accepted names, withdraw versions that it lost, end outdated watches."""
        # an Established kind stays served, even while names of its changed spec are taken
        if not (crd_conditions.is_true(crd, crd_conditions.ESTABLISHED) or _has_accepted_names(crd)):
            return
        name = crd["metadata"]["name"]
        old_records, new_records = self._served.get(name), records.of(crd)
        old_spec, self._specs[name] = self._specs.get(name), _served_spec(crd)
        self._served[name] = new_records
        for record in (new_records.stored, *new_records.faces):
            self._objects.serve(record)
        self._routes.serve(name, new_records.served)
        if old_records is None:
            self._notify_kinds_changed()
            return
        served_keys = {face.key for face in new_records.faces}
        for face in old_records.faces:
            if face.key not in served_keys:
                self._objects.withdraw(face.key)
        if old_spec != self._specs[name]:
            self._end_watches(old_records)

    def _withdraw_kind(self, name: str) -> None:
        """Stop serving the kinds of a definition, and end the watches of them."""
        old_records = self._served.pop(name, None)
        if old_records is None:
            return
        del self._specs[name]
        self._routes.serve(name, ())
        for record in (*old_records.faces, old_records.stored):
            self._objects.withdraw(record.key)
        self._end_watches(old_records)
        self._notify_kinds_changed()

    def _end_watches(self, old_records: Records) -> None:
        """Call the listeners that end the watches of a changed or removed kind."""
        for listener in self._end_listeners:
            listener(old_records.stored.key)

    def _notify_kinds_changed(self) -> None:
        """Call the listeners for added and removed kinds."""
        for listener in self._listeners:
            listener()

    async def _delete_objects(self, crd: Object) -> float | None:
        """Delete all objects of a definition, then remove its finalizer.

        Returns the seconds until the next check if objects remain, otherwise None.
        """
        name = crd["metadata"]["name"]
        if FINALIZER not in (crd["metadata"].get("finalizers") or ()):
            return None
        key = records.storage_key(crd)
        self._serve_kind(crd)  # its objects can be deleted only while their kind is served
        if name in self._served:  # a kind that was never served has no objects
            await self._registry.mutate(DEFINITIONS, "", name, self._mark_deleting, subresource="status")
            await self._objects.delete_collection(key, "", options=DeleteOptions(propagation="Background"))
            if self._registry.list(key):
                return REQUEUE_S
        await write_errors.remove_finalizer(self._registry, DEFINITIONS, "", name, FINALIZER)
        return None

    def _mark_deleting(self, crd: Object) -> None:
        """Set the condition of a definition whose objects are being deleted, in place."""
        crd_conditions.mark_deleting(crd, rfc3339(self._clock.now_ns()))


def _served_spec(crd: Object) -> _ServedSpec:
    """What a definition is served by, to be compared with its next version."""
    return crd["spec"], (crd.get("status") or {}).get("acceptedNames")


def _has_accepted_names(crd: Object) -> bool:
    """Whether the names of a definition are not taken by another one."""
    return crd_conditions.is_true(crd, crd_conditions.NAMES_ACCEPTED)
