"""The records of Event: core/v1, which is stored, and events.k8s.io/v1, a second API for the same objects.

The two differ in field names (`involvedObject`/`regarding`, `message`/`note`, ...), and in validation: the newer one
requires the time, the reporter and the action. Events are validated in their stored form, so that field errors name
fields of core/v1 in both.

RESOURCE and EVENTS_V1 register the functions of this module; `api.kinds.catalog` lists them for the API server.

Source: golden captures; the API reference of core/v1 and events.k8s.io/v1; kube-apiserver's messages.
"""

from typing import Any

from podscaler.api.machinery import names, printing
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import checks, go_struct
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_NAMES_IN_EVENTS_V1 = {
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

_TEXT_MAX_BYTES = 128
_NOTE_MAX_BYTES = 1024
_SERIES_MIN_COUNT = 2
_REFERENCE_FIELDS = ("involvedObject", "related")
_TEXTS = ("reason", "message", "type", "eventTime", "action")
_IMMUTABLE_FIELDS = ("involvedObject", *_TEXTS, "related", "reportingController", "reportingInstance")
_REFERENCE_MEMBERS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def set_defaults(event: Object) -> None:
    """Set the fields that a stored event always has, in place."""
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for instant in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(instant, None)
    for text in ("reportingComponent", "reportingInstance"):
        event.setdefault(text, "")


def to_core(event: Object) -> Object:
    """An events.k8s.io/v1 event as the core/v1 event that is stored."""
    core: Object = {"apiVersion": "v1", "kind": "Event"}
    core |= {old: event[new] for old, new in _NAMES_IN_EVENTS_V1.items() if new in event}
    set_defaults(core)
    return core


def from_core(event: Object) -> Object:
    """A stored event as events.k8s.io/v1."""
    event_v1: Object = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}
    event_v1 |= {new: event[old] for old, new in _NAMES_IN_EVENTS_V1.items() if old in event}
    for text in ("reportingController", "reportingInstance"):
        if not event_v1.get(text):
            event_v1.pop(text, None)
    return event_v1


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of an event written through core/v1.

    Its namespace must be that of the object; an event with an `eventTime` must also name its reporter.
    """
    return _common_errors(new, "reportingComponent")


def validate_strictly(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of an event written through events.k8s.io/v1 (given in the stored form)."""
    errors, series = _common_errors(new, "reportingController"), new.get("series")
    if series is not None and (old is None or series != old.get("series")):
        errors += _series_errors(series)
    if old is not None:
        return errors + _update_errors(new, old)
    errors += checks.present(new.get("eventTime"), "eventTime")
    kind = new.get("type", "")
    errors += checks.holds(kind in ("Normal", "Warning"), "type", "", f"has invalid value: {kind}")
    return errors + (_deprecated_errors(new) if new.get("eventTime") else [])


def _common_errors(event: Object, reporter: str) -> list[FieldError]:
    about = (event.get("involvedObject") or {}).get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    is_same = about == namespace or (not about and namespace == "default")
    errors = checks.holds(is_same, "involvedObject.namespace", about, "does not match event.namespace")
    return errors + (_reporter_errors(event, reporter) if event.get("eventTime") else [])


def _reporter_errors(event: Object, reporter: str) -> list[FieldError]:
    """Errors of what reports the event; `reporter` is the name of the field in the version that is written."""
    controller = event.get("reportingComponent", "")
    errors = checks.present(controller, reporter) + checks.well_formed(controller, reporter, names.label_key_errors)
    for key in ("reportingInstance", "action", "reason"):
        text = event.get(key)
        errors += checks.present(text, key) + _length_errors(key, text, _TEXT_MAX_BYTES)
    return errors + _length_errors("message", event.get("message"), _NOTE_MAX_BYTES)


def _length_errors(path: str, text: str | None, limit: int) -> list[FieldError]:
    return checks.holds(len((text or "").encode()) <= limit, path, "", f"can have at most {limit} characters")


def _series_errors(series: Object) -> list[FieldError]:
    is_series = (series.get("count") or 0) >= _SERIES_MIN_COUNT
    errors = checks.holds(is_series, "series.count", "", f"should be at least {_SERIES_MIN_COUNT}")
    return errors + checks.present(series.get("lastObservedTime"), "series.lastObservedTime")


def _deprecated_errors(event: Object) -> list[FieldError]:
    deprecated_fields = ("firstTimestamp", "lastTimestamp", "count", "source")
    return [invalid(name, "", "needs to be unset") for name in deprecated_fields if event.get(name)]


def _update_errors(new: Object, old: Object) -> list[FieldError]:
    """Errors of an update: most fields of an event never change."""
    internal_names = {"reportingController": "reportingComponent"}
    errors = []
    for name in _IMMUTABLE_FIELDS:
        key = internal_names.get(name, name)
        value, before = new.get(key) or None, old.get(key) or None
        if value != before:
            printed = (
                go_struct.printed(value, "core/v1.ObjectReference") if value and name in _REFERENCE_FIELDS else value
            )
            errors.append(invalid(name, printed, checks.IMMUTABLE))
    return errors


def _reporter(event: Object) -> str:
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent", ""))


def _fields(event: Object, about: str = "involvedObject", reporter: str = "reportingComponent") -> dict[str, str]:
    """The selectable fields of a stored event, but `source`; `about` and `reporter` are names of the API version."""
    reference = event.get("involvedObject") or {}
    return {
        **{f"{about}.{name}": reference.get(name, "") for name in _REFERENCE_MEMBERS},
        "reason": event.get("reason", ""),
        reporter: event.get("reportingComponent", ""),
        "type": event.get("type", ""),
    }


def _row(event: Object, now_ns: int) -> list[Any]:
    """The cells of a table row; a series has its own time and count."""
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
    kind="Event",
    versions=(Version("v1", "core/v1.Event", default=set_defaults),),
    short_names=("ev",),
    strategy=Strategy(
        allows_create_on_update=True,
        validate=validate,
        is_checked_before_metadata=True,
        allows_bare_finalizers=True,
        has_no_dependents=True,
    ),
    fields=lambda event: {**_fields(event), "source": _reporter(event)},
    printer=_PRINTER,
)

EVENTS_V1 = Resource(
    group="events.k8s.io",
    plural="events",
    kind="Event",
    versions=(Version("v1", "events/v1.Event", to_storage=to_core, from_storage=from_core),),
    short_names=("ev",),
    strategy=Strategy(allows_create_on_update=True, validate=validate_strictly, has_no_dependents=True),
    fields=lambda event: _fields(event, "regarding", "reportingController"),
    printer=_PRINTER,
    stored_as="events",
)
