"""Defines the entries of `podscaler timeline`, and makes those of the objects of a cluster; pure.

`podscaler.cli.diagnosis.cluster_timeline` calls `of_cluster`; `podscaler.cli.diagnosis.recorded_timeline` makes entries
of recorded decisions itself. Of a cluster there are: Events of the autoscaler and its target, warnings about its
ReplicaSets and pods, creations, transitions of conditions, and the last changes of fields by each manager. Entries are
in the order of their instants, those of one instant in the order of EntryKind. A new kind is a member of EntryKind at
its place in that order, and a function that `of_cluster` calls.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from podscaler.cli.diagnosis import events, scale_writers
from podscaler.cli.diagnosis.autoscaler_objects import AutoscalerObjects, JsonObject, name_of

REVISION = "deployment.kubernetes.io/revision"
"""The annotation of a ReplicaSet with the revision of its Deployment."""


class EntryKind(StrEnum):
    """What an entry is about."""

    CREATED = "created"
    """The autoscaler or its target was created."""
    WRITE = "write"
    """A manager changed fields of the object or its scale."""
    ROLLOUT = "rollout"
    """A ReplicaSet was created."""
    DECISION = "decision"
    EVENT = "event"
    CONDITION = "condition"
    DELETED = "deleted"


_KIND_ORDER = list(EntryKind)


class TimelineEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that happened, or a decision that stayed the same for a while.

    Attributes:
        at: when it began, in ns since the epoch.
        subject: `Kind/name` of the object.
        text: what happened, with the reason.
        until: when it ended, or was seen last; None if it is an instant, or it lasts.
        times: how often it was seen.
    """

    at: int
    kind: EntryKind
    subject: str
    text: str
    until: int | None = None
    times: int = 1

    @property
    def last_at(self) -> int:
        """The latest instant at which it is known to have lasted, in ns."""
        return self.at if self.until is None else self.until

    @property
    def identity(self) -> tuple[int, str, str, str]:
        """The same for an entry that was seen again."""
        return self.at, self.kind, self.subject, self.text


def in_order(entries: Iterable[TimelineEntry], from_ns: int) -> list[TimelineEntry]:
    """The entries since an instant, and earlier ones that lasted until it, in order."""
    recent = [entry for entry in entries if entry.last_at >= from_ns]
    return sorted(recent, key=lambda entry: (entry.at, _KIND_ORDER.index(entry.kind), entry.subject, entry.text))


def of_cluster(objects: AutoscalerObjects) -> Iterator[TimelineEntry]:
    """The entries of an autoscaler's objects, in any order."""
    owners = [objects.autoscaler, *([objects.target] if objects.target is not None else [])]
    for owner in owners:
        yield from _creation(owner)
        yield from _writes(owner)
    yield from _conditions(objects.autoscaler)
    for replica_set in objects.replica_sets:
        yield from _rollout(replica_set)
    yield from _events(objects.events, {_subject(owner) for owner in owners})


def _subject(obj: JsonObject) -> str:
    return f"{obj.get('kind', '')}/{name_of(obj)}"


def _creation(obj: JsonObject) -> Iterator[TimelineEntry]:
    """The entry of an object's creation; none if its time is not known."""
    created_at = events.instant_ns(obj.get("metadata", {}).get("creationTimestamp"))
    if created_at is not None:
        yield TimelineEntry(created_at, EntryKind.CREATED, _subject(obj), "created")


def _writes(obj: JsonObject) -> Iterator[TimelineEntry]:
    """The last change by each manager, without those of statuses."""
    for field_write in scale_writers.field_writes(obj):
        if field_write.at_ns is None or field_write.subresource == "status":
            continue
        written_part = "its scale" if field_write.subresource == "scale" else "its fields"
        replicas = ", spec.replicas too" if field_write.has_replicas and field_write.subresource != "scale" else ""
        description = f"{field_write.manager} wrote {written_part}{replicas} ({field_write.operation})"
        yield TimelineEntry(field_write.at_ns, EntryKind.WRITE, _subject(obj), description)


def _conditions(autoscaler: JsonObject) -> Iterator[TimelineEntry]:
    """The last transitions of the autoscaler's conditions."""
    for condition in (autoscaler.get("status") or {}).get("conditions") or ():
        changed_at = events.instant_ns(condition.get("lastTransitionTime"))
        if changed_at is not None:
            message = f": {condition['message']}" if condition.get("message") else ""
            change = f"{condition.get('type')} became {condition.get('status')}"
            # reason and message may have changed since the transition
            description = f"{change}; it is {condition.get('reason')} now{message}"
            yield TimelineEntry(changed_at, EntryKind.CONDITION, _subject(autoscaler), description)


def _rollout(replica_set: JsonObject) -> Iterator[TimelineEntry]:
    """The creation of a ReplicaSet, with its revision; nothing if it has no time."""
    metadata = replica_set.get("metadata", {})
    created_at = events.instant_ns(metadata.get("creationTimestamp"))
    if created_at is not None:
        revision = (metadata.get("annotations") or {}).get(REVISION)
        revision_text = f" (revision {revision})" if revision else ""
        yield TimelineEntry(
            created_at, EntryKind.ROLLOUT, f"ReplicaSet/{name_of(replica_set)}", f"created{revision_text}"
        )


def _events(event_objects: Sequence[JsonObject], subjects: set[str]) -> Iterator[TimelineEntry]:
    """The events about these subjects (`Kind/name`), and the warnings about others."""
    for event in events.read(event_objects):
        if event.subject in subjects or event.type == "Warning":
            description = f"{event.type} {event.reason}: {event.message}"
            until = event.last_at if event.last_at != event.first_at else None
            yield TimelineEntry(event.first_at, EntryKind.EVENT, event.subject, description, until, event.times)
