"""The records of Event: core/v1, which is stored, and events.k8s.io/v1, a second API for the same objects.

The two differ in field names (`involvedObject`/`regarding`, `message`/`note`, ...), and in validation: the newer one
requires the time, the reporter and the action. Events are validated in their stored form, so that field errors name
fields of core/v1 in both. A new field: an entry of _NAMES_IN_EVENTS_V1, which conversion copies.

RESOURCE and EVENTS_V1 register the functions of this module as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists them for the API server.

Source: recorded responses (tests/conformance/golden); the API reference of core/v1 and events.k8s.io/v1;
kube-apiserver's messages.
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
_TEXT_FIELDS = ("reason", "message", "type", "eventTime", "action")
_IMMUTABLE_FIELDS = ("involvedObject", *_TEXT_FIELDS, "related", "reportingController", "reportingInstance")
_NAMES_IN_CORE_V1 = {"reportingController": "reportingComponent"}
"""Immutable field -> its name in a stored event, where it has another one."""
_REFERENCE_MEMBERS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def set_defaults(event: Object) -> None:
    """Sets the fields that a stored event always has, in place."""
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for time_field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(time_field, None)
    for text_field in ("reportingComponent", "reportingInstance"):
        event.setdefault(text_field, "")


def to_core(event: Object) -> Object:
    """An events.k8s.io/v1 event as the core/v1 event that is stored."""
    core_event: Object = {"apiVersion": "v1", "kind": "Event"}
    core_event |= {core_name: event[v1_name] for core_name, v1_name in _NAMES_IN_EVENTS_V1.items() if v1_name in event}
    set_defaults(core_event)
    return core_event


def from_core(event: Object) -> Object:
    """A stored event as events.k8s.io/v1."""
    event_v1: Object = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}
    event_v1 |= {v1_name: event[core_name] for core_name, v1_name in _NAMES_IN_EVENTS_V1.items() if core_name in event}
    for text_field in ("reportingController", "reportingInstance"):
        if not event_v1.get(text_field):
            event_v1.pop(text_field, None)
    return event_v1


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of an event written through core/v1.

    Its namespace must be that of the object; an event with an `eventTime` must also name its reporter.
    """
    return _common_errors(new, "reportingComponent")


def validate_events_v1(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of an event written through events.k8s.io/v1 (given in the stored form)."""
    errors, series = _common_errors(new, "reportingController"), new.get("series")
    if series is not None and (old is None or series != old.get("series")):
        errors += _series_errors(series)
    if old is not None:
        return errors + _update_errors(new, old)
    errors += checks.present(new.get("eventTime"), "eventTime")
    event_type = new.get("type", "")
    errors += checks.holds(event_type in ("Normal", "Warning"), "type", "", f"has invalid value: {event_type}")
    return errors + (_deprecated_errors(new) if new.get("eventTime") else [])


def _common_errors(event: Object, reporter_field: str) -> list[FieldError]:
    """Field errors of an event through either API; `reporter_field` is the name of the reporter in that API."""
    object_namespace = (event.get("involvedObject") or {}).get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    is_same_namespace = object_namespace == namespace or (not object_namespace and namespace == "default")
    errors = checks.holds(
        is_same_namespace, "involvedObject.namespace", object_namespace, "does not match event.namespace"
    )
    return errors + (_reporter_errors(event, reporter_field) if event.get("eventTime") else [])


def _reporter_errors(event: Object, reporter_field: str) -> list[FieldError]:
    """Field errors of the reporter and of the fields that an event with an `eventTime` must have."""
    controller = event.get("reportingComponent", "")
    errors = checks.present(controller, reporter_field)
    errors += checks.well_formed(controller, reporter_field, names.label_key_errors)
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field)
        errors += checks.present(value, field) + _length_errors(field, value, _TEXT_MAX_BYTES)
    return errors + _length_errors("message", event.get("message"), _NOTE_MAX_BYTES)


def _length_errors(path: str, value: str | None, max_bytes: int) -> list[FieldError]:
    """The error of too long a text; the message says characters, as kube-apiserver's, which counts bytes."""
    return checks.holds(len((value or "").encode()) <= max_bytes, path, "", f"can have at most {max_bytes} characters")


def _series_errors(series: Object) -> list[FieldError]:
    """Field errors of a series: at least two events, and the time of the last one."""
    is_series = (series.get("count") or 0) >= _SERIES_MIN_COUNT
    errors = checks.holds(is_series, "series.count", "", f"should be at least {_SERIES_MIN_COUNT}")
    return errors + checks.present(series.get("lastObservedTime"), "series.lastObservedTime")


def _deprecated_errors(event: Object) -> list[FieldError]:
    """Field errors of deprecated fields, which an event with an `eventTime` must not have."""
    deprecated_fields = ("firstTimestamp", "lastTimestamp", "count", "source")
    return [invalid(field, "", "needs to be unset") for field in deprecated_fields if event.get(field)]


def _update_errors(new: Object, old: Object) -> list[FieldError]:
    """Field errors of an update that changes immutable fields; errors name fields as in Go's internal Event."""
    errors = []
    for field in _IMMUTABLE_FIELDS:
        stored_name = _NAMES_IN_CORE_V1.get(field, field)
        new_value, old_value = new.get(stored_name) or None, old.get(stored_name) or None
        if new_value != old_value:
            shown_value = new_value
            if new_value and field in _REFERENCE_FIELDS:
                shown_value = go_struct.printed(new_value, "core/v1.ObjectReference")
            errors.append(invalid(field, shown_value, checks.IMMUTABLE))
    return errors


def _reporter_name(event: Object) -> str:
    """The name of the component that reports an event; empty if it has none."""
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent", ""))


def _selectable_fields(
    event: Object, *, object_field: str = "involvedObject", reporter_field: str = "reportingComponent"
) -> dict[str, str]:
    """The selectable fields of a stored event but `source`: name in the API version -> value.

    Args:
        object_field: the name of `involvedObject` in the API version.
        reporter_field: the name of `reportingComponent` in the API version.
    """
    reference = event.get("involvedObject") or {}
    return {
        **{f"{object_field}.{name}": reference.get(name, "") for name in _REFERENCE_MEMBERS},
        "reason": event.get("reason", ""),
        reporter_field: event.get("reportingComponent", ""),
        "type": event.get("type", ""),
    }


def _row(event: Object, now_ns: int) -> list[Any]:
    """The cells of a table row; a series has its own time and count."""
    involved_object, series = event.get("involvedObject") or {}, event.get("series")
    first_seen = printing.age(event.get("firstTimestamp") or event.get("eventTime"), now_ns)
    last_seen = printing.age(event["lastTimestamp"], now_ns) if event.get("lastTimestamp") else first_seen
    count = event.get("count")
    if series:
        last_seen, count = printing.age(series.get("lastObservedTime"), now_ns), series.get("count", 0)
    object_kind, object_name = involved_object.get("kind", "").lower(), involved_object.get("name", "")
    return [
        last_seen,
        event.get("type", ""),
        event.get("reason", ""),
        f"{object_kind}/{object_name}" if object_name else object_kind,
        involved_object.get("fieldPath", ""),
        _source_text(event),
        (event.get("message") or "").strip(),
        first_seen,
        count or 1,
        event["metadata"].get("name", ""),
    ]


def _source_text(event: Object) -> str:
    """The column SOURCE: the reporter, and its host or instance if there is one."""
    host = (event.get("source") or {}).get("host") or event.get("reportingInstance", "")
    return ", ".join(filter(None, (_reporter_name(event), host)))


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
    fields=lambda event: {**_selectable_fields(event), "source": _reporter_name(event)},
    printer=_PRINTER,
)

EVENTS_V1 = Resource(
    group="events.k8s.io",
    plural="events",
    kind="Event",
    versions=(Version("v1", "events/v1.Event", to_storage=to_core, from_storage=from_core),),
    short_names=("ev",),
    strategy=Strategy(allows_create_on_update=True, validate=validate_events_v1, has_no_dependents=True),
    fields=lambda event: _selectable_fields(event, object_field="regarding", reporter_field="reportingController"),
    printer=_PRINTER,
    stored_as="events",
)
