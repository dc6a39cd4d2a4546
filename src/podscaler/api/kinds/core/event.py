"""The records of Event: core/v1, which is stored, and its second face events.k8s.io/v1.

The faces differ in names only (`involvedObject`/`regarding`, `message`/`note`, ...), and in what they demand of a new
event: the newer one wants to know when, by whom and what was done.

Source: golden captures; the API reference of core/v1 and events.k8s.io/v1.
"""

from typing import Any

from podscaler.api.kinds.core import event_validation
from podscaler.api.machinery import printing
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_NEW_NAMES = {
    "metadata": "metadata",
    "eventTime": "eventTime",
    "series": "series",
    "reportingComponent": "reportingController",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
    "involvedObject": "regarding",
    "related": "related",
    "message": "note",
    "type": "type",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""core/v1 name -> events.k8s.io/v1 name, in the order of the latter."""

_OBJECT_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def fill(event: Object) -> None:
    """What a stored event always shows, in place."""
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for instant in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(instant, None)
    for text in ("reportingComponent", "reportingInstance"):
        event.setdefault(text, "")


def to_core(event: Object) -> Object:
    """An events.k8s.io/v1 event as the core/v1 event that is stored."""
    core: Object = {"apiVersion": "v1", "kind": "Event"}
    core |= {old: event[new] for old, new in _NEW_NAMES.items() if new in event}
    fill(core)
    return core


def from_core(event: Object) -> Object:
    """A stored event as events.k8s.io/v1."""
    shown: Object = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}
    shown |= {new: event[old] for old, new in _NEW_NAMES.items() if old in event}
    for text in ("reportingController", "reportingInstance"):
        if not shown.get(text):
            shown.pop(text, None)
    return shown


def _reporter(event: Object) -> str:
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent", ""))


def _fields(event: Object) -> dict[str, str]:
    about = event.get("involvedObject") or {}
    return {
        **{f"involvedObject.{name}": about.get(name, "") for name in _OBJECT_FIELDS},
        "reason": event.get("reason", ""),
        "reportingComponent": event.get("reportingComponent", ""),
        "source": _reporter(event),
        "type": event.get("type", ""),
    }


def _new_fields(event: Object) -> dict[str, str]:
    about = event.get("involvedObject") or {}
    return {
        **{f"regarding.{name}": about.get(name, "") for name in _OBJECT_FIELDS},
        "reason": event.get("reason", ""),
        "reportingController": event.get("reportingComponent", ""),
        "type": event.get("type", ""),
    }


def _row(event: Object, now_ns: int) -> list[Any]:
    about, series = event.get("involvedObject") or {}, event.get("series")
    first = printing.age(event.get("firstTimestamp") or event.get("eventTime"), now_ns)
    last = printing.age(event["lastTimestamp"], now_ns) if event.get("lastTimestamp") else first
    count = event.get("count")
    if series:
        last, count = printing.age(series.get("lastObservedTime"), now_ns), series.get("count", 0)
    kind, name = about.get("kind", "").lower(), about.get("name", "")
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        _source(event),
        (event.get("message") or "").strip(),
        first,
        count or 1,
        event["metadata"].get("name", ""),
    ]


def _source(event: Object) -> str:
    host = (event.get("source") or {}).get("host") or event.get("reportingInstance", "")
    return ", ".join(part for part in (_reporter(event), host) if part)


_PRINTER = Printer(
    columns=(
        Column("Last Seen", description="Time since it was last observed."),
        Column("Type", description="Normal, or Warning for what someone should look at."),
        Column("Reason", description="What happened, in one word."),
        Column("Object", description="What it happened to."),
        Column("Subobject", description="The part that it happened to.", priority=1),
        Column("Source", description="Who reports it.", priority=1),
        Column("Message", description="What happened, in a sentence."),
        Column("First Seen", description="Time since it was first observed.", priority=1),
        Column("Count", description="How often it was observed.", priority=1),
        Column("Name", format="name", description="Name of the event.", priority=1),
    ),
    row=_row,
)

RESOURCE = Resource(
    group="",
    plural="events",
    singular="event",
    kind="Event",
    versions=(Version("v1", "core/v1.Event", default=fill),),
    storage_version="v1",
    short_names=("ev",),
    strategy=Strategy(
        allows_create_on_update=True,
        validate=event_validation.faults,
        is_checked_before_metadata=True,
        allows_bare_finalizers=True,
        has_no_dependents=True,
    ),
    fields=_fields,
    printer=_PRINTER,
)

NEW_FACE = Resource(
    group="events.k8s.io",
    plural="events",
    singular="event",
    kind="Event",
    versions=(Version("v1", "events/v1.Event", to_storage=to_core, from_storage=from_core),),
    storage_version="v1",
    short_names=("ev",),
    strategy=Strategy(allows_create_on_update=True, validate=event_validation.strict_faults, has_no_dependents=True),
    fields=_new_fields,
    printer=_PRINTER,
    stored_as="events",
)
