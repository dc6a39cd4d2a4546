"""What is wrong with an Event, in the old and in the new face.

Called by its records. Events come in their stored form, core/v1; so upstream names their fields, whichever face it is.

Source: upstream's messages.
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import go_struct
from podscaler.api.resource.resources import Object

_TEXT_MAX = 128
_NOTE_MAX = 1024
_SERIES_MIN = 2
_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingController",
    "reportingInstance",
)
_REFERENCES = ("involvedObject", "related")


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with an event written through core/v1.

    Its namespace must be that of the object; one that says when it happened (`eventTime`) must also say by whom.
    """
    del old
    return _common_faults(new, "reportingComponent")


def strict_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with an event written through events.k8s.io/v1 (given in the stored form)."""
    found = _common_faults(new, "reportingController")
    series = new.get("series")
    if old is not None:
        found += _series_faults(series) if series is not None and series != old.get("series") else []
        return found + _update_faults(new, old)
    found += _series_faults(series) if series is not None else []
    if not new.get("eventTime"):
        found.append(required("eventTime"))
    kind = new.get("type", "")
    if kind not in ("Normal", "Warning"):
        found.append(invalid("type", "", f"has invalid value: {kind}"))
    return found + (_deprecated_faults(new) if new.get("eventTime") else [])


def _common_faults(event: Object, reporter: str) -> list[FieldError]:
    about = (event.get("involvedObject") or {}).get("namespace", "")
    own = event["metadata"].get("namespace", "")
    found = []
    if about != own and (about or own != "default"):
        found.append(invalid("involvedObject.namespace", about, "does not match event.namespace"))
    return found + (_reporter_faults(event, reporter) if event.get("eventTime") else [])


def _reporter_faults(event: Object, reporter: str) -> list[FieldError]:
    controller = event.get("reportingComponent", "")
    found = [] if controller else [required(reporter)]
    found += [invalid(reporter, controller, text) for text in names.label_key_faults(controller)]
    for key in ("reportingInstance", "action", "reason"):
        text = event.get(key) or ""
        found += [] if text else [required(key)]
        found += _length_faults(key, text, _TEXT_MAX)
    return found + _length_faults("message", event.get("message") or "", _NOTE_MAX)


def _length_faults(path: str, text: str, limit: int) -> list[FieldError]:
    is_too_long = len(text.encode()) > limit
    return [invalid(path, "", f"can have at most {limit} characters")] if is_too_long else []


def _series_faults(series: Object) -> list[FieldError]:
    found = []
    if (series.get("count") or 0) < _SERIES_MIN:
        found.append(invalid("series.count", "", f"should be at least {_SERIES_MIN}"))
    return found if series.get("lastObservedTime") else [*found, required("series.lastObservedTime")]


def _deprecated_faults(event: Object) -> list[FieldError]:
    named = ("firstTimestamp", "lastTimestamp", "count", "source")
    return [invalid(name, "", "needs to be unset") for name in named if event.get(name)]


def _update_faults(new: Object, old: Object) -> list[FieldError]:
    stored = {"reportingController": "reportingComponent"}
    found = []
    for name in _FIXED:
        key = stored.get(name, name)
        value, before = new.get(key) or None, old.get(key) or None
        if value != before:
            shown = go_struct.shown(value, "core/v1.ObjectReference") if value and name in _REFERENCES else value
            found.append(invalid(name, shown, "field is immutable"))
    return found
