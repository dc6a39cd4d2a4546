"""Reads the objects around one autoscaler: itself, its target, the target's ReplicaSets, and their events.

`podscaler.cli.diagnosis.examination` and `podscaler.cli.diagnosis.cluster_timeline` make a RelatedObjectsReader. A part
that may not or cannot be read becomes a note, a sentence; only the autoscaler itself has to be there. A further part is
an attribute of AutoscalerObjects that `read_around` sets by an `attempt`.

Invariant: nothing is written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.cli.commands import all_pages
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, Query
from podscaler.kube.client.discovery import Discovery, RESTMapping
from podscaler.kube.transport.transport import TransportError

JsonObject = Mapping[str, Any]
PART_TIMEOUT_S = 15.0
"""How long one part of the reading may take."""

_OBJECT_DECODER = msgspec.json.Decoder(dict[str, Any])
T = TypeVar("T")


@dataclass(slots=True)
class AutoscalerObjects:
    """What was read.

    Attributes:
        autoscaler: the autoscaler as the API has it, with managedFields.
        target: the object that it scales; None if it is not there, or cannot be read (`notes` has the reason).
        replica_sets: those that the target owns.
        events: of the namespace, those about the autoscaler, the target, its ReplicaSets and its pods; in any order.
        notes: what could not be read, a sentence each; the list of the reader.
    """

    autoscaler: JsonObject
    target: JsonObject | None = None
    replica_sets: Sequence[JsonObject] = ()
    events: Sequence[JsonObject] = ()
    notes: list[str] = field(default_factory=list)


class RelatedObjectsReader:
    """Reads objects with one client.

    Args:
        client: of the cluster; it only reads.
        notes: gets a sentence for each part that cannot be read.
    """

    def __init__(self, client: Client, clock: Clock, notes: list[str]) -> None:
        self._client = client
        self._discovery = Discovery(client, clock)
        self.notes = notes

    async def read_around(self, autoscaler: Autoscaler) -> AutoscalerObjects:
        """The objects around an autoscaler. Raises StatusError if the autoscaler itself cannot be read."""
        kind, meta = autoscaler.kind, autoscaler.metadata
        path = kind.path(meta.namespace, urls.object_name(meta.name))
        autoscaler_object = await self.get(path, subject=f"{kind.plural} {meta.name}")
        type_meta = {"apiVersion": kind.api_version, "kind": kind.kind}
        related = AutoscalerObjects(type_meta | autoscaler_object, notes=self.notes)
        reference = autoscaler.wire.spec.scale_target_ref
        related.target = await self.attempt(f"{reference.kind} {reference.name}", lambda: self._read_target(autoscaler))
        if related.target is not None and related.target.get("kind") == "Deployment":
            sets = await self.attempt("ReplicaSets", lambda: self.read_all("apps", "v1", meta.namespace, "replicasets"))
            related.replica_sets = [replica_set for replica_set in sets or () if is_owned(replica_set, related.target)]
        events = await self.attempt("events", lambda: self.read_all("", "v1", meta.namespace, "events"))
        related.events = list(events_about(events or (), related))
        return related

    async def attempt(self, subject: str, read: Callable[[], Awaitable[T]]) -> T | None:
        """What `read` returns; None with a note if it fails or takes too long. Raises TransportError."""
        try:
            async with asyncio.timeout(PART_TIMEOUT_S):
                return await read()
        except TimeoutError:
            self.notes.append(f"{subject} cannot be read: no response within {PART_TIMEOUT_S:g} s")
        except TransportError:
            raise
        except StatusError as error:
            self.notes.append(f"{subject} cannot be read: {error}")
        return None

    async def read_all(
        self, group: str, version: str, namespace: str, plural: str, query: Query = ()
    ) -> list[dict[str, Any]]:
        """All objects of a resource in a namespace (empty: in all, or outside of namespaces). Raises StatusError."""
        scope = urls.path("namespaces", namespace) if namespace else ""
        path = urls.group_version(group, version) + scope + urls.path(plural)
        pages = all_pages.read_raw(self._client, path, subject=plural, query=query)
        raw_objects = [object_json async for object_json in pages]
        return [_decoded(object_json, plural) for object_json in raw_objects]

    async def get(self, path: str, *, subject: str) -> dict[str, Any]:
        """The object at a path. Raises StatusError."""
        return _decoded(await self._client.get(path, subject=subject), subject)

    async def find_target_mapping(self, autoscaler: Autoscaler) -> RESTMapping:
        """The resource of the autoscaler's target. Raises StatusError if its kind is not served."""
        reference = autoscaler.wire.spec.scale_target_ref
        group = reference.api_version.rpartition("/")[0]
        return (await self._discovery.mappings(group, reference.kind))[0]  # of the preferred version

    async def _read_target(self, autoscaler: Autoscaler) -> JsonObject:
        """The target of an autoscaler, with its apiVersion and kind. Raises StatusError."""
        reference, namespace = autoscaler.wire.spec.scale_target_ref, autoscaler.metadata.namespace
        mapping = await self.find_target_mapping(autoscaler)
        prefix = urls.group_version(mapping.group, mapping.version)
        path = prefix + urls.path("namespaces", namespace, mapping.plural, urls.object_name(reference.name))
        target = await self.get(path, subject=f"{mapping.plural} {reference.name}")
        return {"apiVersion": reference.api_version, "kind": mapping.kind} | target


def is_owned(obj: JsonObject, owner: JsonObject) -> bool:
    """Whether one of an object's ownerReferences names the owner."""
    uid = owner.get("metadata", {}).get("uid")
    owner_references = obj.get("metadata", {}).get("ownerReferences") or ()
    return any(owner_reference.get("uid") == uid for owner_reference in owner_references)


def name_of(obj: JsonObject) -> str:
    """The object's name."""
    return str(obj.get("metadata", {}).get("name", ""))


def events_about(events: Iterable[JsonObject], related: AutoscalerObjects) -> Iterable[JsonObject]:
    """The events about the objects that were found, and about pods with their names and a suffix (`web-7d9f`)."""
    objects = [related.autoscaler, *([related.target] if related.target else []), *related.replica_sets]
    kinds_and_names = {(obj.get("kind", "ReplicaSet"), name_of(obj)) for obj in objects}  # items of lists have no kind
    owners = [name_of(owner) for owner in (*related.replica_sets, *([related.target] if related.target else []))]
    for event in events:
        involved = event.get("involvedObject") or {}
        kind, name = involved.get("kind"), str(involved.get("name", ""))
        if (kind, name) in kinds_and_names or (kind == "Pod" and name.rpartition("-")[0] in owners):
            yield event


def _decoded(body: bytes | msgspec.Raw, subject: str) -> dict[str, Any]:
    """The JSON object in a response; `subject` is for the message. Raises StatusError."""
    try:
        return _OBJECT_DECODER.decode(body)
    except JSON_DECODE_ERRORS as error:
        raise StatusError(f"the response about {subject} cannot be read: {error}", code=0) from None
