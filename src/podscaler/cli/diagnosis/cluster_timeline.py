"""The timeline of an autoscaler of a cluster: what the objects show, then new entries as they happen.

`podscaler.cli.diagnosis.timeline` prints it. New entries come from watches of the autoscaler, its target, ReplicaSets
and Events, by the Reflectors of the controller. An entry is yielded once, also where an Event occurs again. A further
kind of object is watched in FollowedTimeline, and becomes entries in `timeline_entries.of_cluster`.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass

import msgspec

from podscaler.api.machinery.meta import ObjectMeta
from podscaler.base.clock import Clock
from podscaler.cli.diagnosis import autoscaler_objects, timeline_entries
from podscaler.cli.diagnosis.autoscaler_objects import AutoscalerObjects, JsonObject, RelatedObjectsReader
from podscaler.cli.diagnosis.recorded_timeline import ReplicaPoint
from podscaler.cli.diagnosis.timeline_entries import EntryKind, TimelineEntry
from podscaler.cli.explain import explain_autoscalers, explain_cluster
from podscaler.cli.explain.explain_request import ExplainRequest
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.core.model import settings
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, Query
from podscaler.kube.client.discovery import RESTMapping
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector, WatchSource
from podscaler.kube.transport.config import Config


class AutoscalerTimeline(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a timeline; instants in ns since the epoch.

    Attributes:
        autoscaler: `namespace/name`.
        from_, to: the range that is shown.
        entries: oldest first.
        points: one for each recorded sync; empty without a recording.
        notes: what could not be read, a sentence each.
    """

    autoscaler: str
    from_: int = msgspec.field(name="from")
    to: int
    entries: Sequence[TimelineEntry]
    points: Sequence[ReplicaPoint] = ()
    notes: Sequence[str] = ()


async def timelines(
    config: Config, request: ExplainRequest, clock: Clock, *, since_ns: int, follow: bool
) -> AsyncGenerator[AutoscalerTimeline]:
    """The timeline so far; with `follow`, then parts with the new entries, until the autoscaler is deleted.

    `since_ns` is the length of the time that is shown, in ns. Raises UsageError if the cluster cannot be reached, does
    not know the user, or has no such autoscaler or several; StatusError if the autoscaler may not be read.
    """
    async with explain_cluster.connected(config, clock, "timeline") as client:
        namespace = request.namespace or config.namespace
        autoscalers = await explain_autoscalers.read_autoscalers(client, namespace, request.kind, settings.DEFAULT)
        autoscaler = autoscalers.get_requested(request, namespace)
        reader = RelatedObjectsReader(client, clock, [])
        objects = await reader.read_around(autoscaler)
        now_ns = clock.now_ns()
        timeline = AutoscalerTimeline(
            autoscaler="/".join(autoscaler.key),
            from_=now_ns - since_ns,
            to=now_ns,
            entries=timeline_entries.in_order(timeline_entries.of_cluster(objects), now_ns - since_ns),
            notes=reader.notes,
        )
        yield timeline
        if follow:
            mapping = await reader.attempt("the target's kind", lambda: reader.find_target_mapping(autoscaler))
            followed = FollowedTimeline(client, clock, autoscaler, mapping)
            async for new_entries in followed.entries(timeline.entries, timeline.from_):
                yield msgspec.structs.replace(timeline, to=clock.now_ns(), entries=new_entries, notes=())


class _ObjectMetadata(msgspec.Struct, frozen=True):
    """An object, of which only the metadata are read."""

    metadata: ObjectMeta = ObjectMeta()


_METADATA_DECODER = msgspec.json.Decoder(_ObjectMetadata)
_OBJECT_DECODER = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class WatchedObject:
    """An object as the API has it, without apiVersion and kind; `metadata` is read for the cache."""

    metadata: ObjectMeta
    obj: JsonObject


def _decode(object_json: msgspec.Raw) -> WatchedObject:
    return WatchedObject(_METADATA_DECODER.decode(object_json).metadata, _OBJECT_DECODER.decode(object_json))


class _ChangeSignal:
    """A handler of caches that sets an `asyncio.Event` at each change."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()

    def added(self, _: WatchedObject) -> None:
        self.changed.set()

    def updated(self, old: WatchedObject, new: WatchedObject) -> None:
        del old, new
        self.changed.set()

    def deleted(self, _: WatchedObject) -> None:
        self.changed.set()


class FollowedTimeline:
    """The watches of one autoscaler's objects.

    Args:
        autoscaler: the one that is followed.
        mapping: the resource of its target; None if it is not known, and the target is not watched.
    """

    def __init__(self, client: Client, clock: Clock, autoscaler: Autoscaler, mapping: RESTMapping | None) -> None:
        self._client = client
        self._clock = clock
        self._kind = autoscaler.kind
        self._name = autoscaler.metadata.name
        self._signal = _ChangeSignal()
        self._reflectors: list[Reflector[WatchedObject]] = []
        namespace, reference = autoscaler.metadata.namespace, autoscaler.wire.spec.scale_target_ref
        self._autoscalers = self._watch(self._kind.path(namespace), self._kind.plural, _name_query(self._name))
        self._replica_sets = self._watch(_collection_path("apps", "v1", namespace, "replicasets"), "replicasets")
        self._events = self._watch(_collection_path("", "v1", namespace, "events"), "events")
        self._targets: Cache[WatchedObject] = Cache()
        self._target_kind = reference.kind
        if mapping is not None:
            path = _collection_path(mapping.group, mapping.version, namespace, mapping.plural)
            self._targets = self._watch(path, mapping.plural, _name_query(reference.name))

    async def entries(self, shown_entries: Sequence[TimelineEntry], from_ns: int) -> AsyncIterator[list[TimelineEntry]]:
        """New entries, in a list for each change, until the autoscaler is deleted; its deletion is the last one.

        Args:
            shown_entries: entries that are not yielded again.
            from_ns: entries that ended before this instant are not yielded.
        """
        shown_identities = {entry.identity for entry in shown_entries}
        watch_tasks = [asyncio.ensure_future(reflector.run()) for reflector in self._reflectors]
        try:
            await self._autoscalers.wait_synced()
            while True:
                self._signal.changed.clear()  # before the caches are read, so that no later change is missed
                objects = self._cached_objects()
                if objects is None:
                    subject = f"{self._kind.kind}/{self._name}"
                    yield [TimelineEntry(self._clock.now_ns(), EntryKind.DELETED, subject, "deleted")]
                    return
                ordered = timeline_entries.in_order(timeline_entries.of_cluster(objects), from_ns)
                new_entries = [entry for entry in ordered if entry.identity not in shown_identities]
                shown_identities.update(entry.identity for entry in new_entries)
                if new_entries:
                    yield new_entries
                await self._signal.changed.wait()
        finally:
            for task in watch_tasks:
                task.cancel()
            await asyncio.gather(*watch_tasks, return_exceptions=True)

    def _cached_objects(self) -> AutoscalerObjects | None:
        """The objects in the caches; None if the autoscaler is gone."""
        autoscaler = next(iter(self._autoscalers), None)
        if autoscaler is None:
            return None
        target = next(iter(self._targets), None)
        related = AutoscalerObjects({"kind": self._kind.kind, **autoscaler.obj})  # items of watched lists have no kind
        if target is not None:
            related.target = {"kind": self._target_kind, **target.obj}
            replica_sets = [cached.obj for cached in self._replica_sets]
            related.replica_sets = [
                replica_set for replica_set in replica_sets if autoscaler_objects.is_owned(replica_set, related.target)
            ]
        related.events = list(autoscaler_objects.events_about([cached.obj for cached in self._events], related))
        return related

    def _watch(self, path: str, subject: str, query: Query = ()) -> Cache[WatchedObject]:
        """A cache of the objects at `path`, whose changes set the signal; its reflector is added to `_reflectors`."""
        cache: Cache[WatchedObject] = Cache()
        cache.subscribe(self._signal)
        source = WatchSource(path, subject, _decode, query)
        reflector = Reflector(self._client, source, cache=cache, clock=self._clock, rng=random.Random())
        self._reflectors.append(reflector)
        return cache


def _name_query(name: str) -> Query:
    return [("fieldSelector", f"metadata.name={name}")]


def _collection_path(group: str, version: str, namespace: str, plural: str) -> str:
    return urls.group_version(group, version) + urls.path("namespaces", namespace, plural)
