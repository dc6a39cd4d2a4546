"""Reads Kubernetes Events as values, and checks those of an autoscaler.

`podscaler.cli.diagnosis.examination` calls `check`; `podscaler.cli.diagnosis.timeline_entries` calls `read`, and other
checks read timestamps by `instant_ns`. A further reason of events that is a finding goes to _CREATION_FAILURE_REASONS.

Source: core/v1 Event (count, first and last timestamp) and events.k8s.io/v1 (eventTime, series).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.cli.diagnosis.autoscaler_objects import JsonObject
from podscaler.cli.diagnosis.findings import Area, CheckResult, DoctorFinding, FindingLevel, section
from podscaler.explain import wording

RECENT_NS = 3600 * NANOSECONDS
"""Older events are left out of the check."""
SHOWN_EVENTS_MAX = 10
_CREATION_FAILURE_REASONS = frozenset({"FailedCreate", "ReplicaSetCreateError", "FailedToCreate"})


class KubernetesEvent(NamedTuple):
    """One Event; instants in ns since the epoch.

    Attributes:
        subject: `Kind/name` of the object that it is about.
        first_at, last_at: of the first and the last occurrence; equal where there was one.
        times: how often it occurred.
    """

    type: str
    reason: str
    message: str
    subject: str
    first_at: int
    last_at: int
    times: int


def read(event_objects: Iterable[JsonObject]) -> list[KubernetesEvent]:
    """The events that have a time, oldest first by their last occurrence."""
    events = [event for event in map(_read_event, event_objects) if event is not None]
    return sorted(events, key=lambda event: (event.last_at, event.first_at, event.subject, event.reason))


def check(events: Sequence[KubernetesEvent], now_ns: int, namespace: str) -> CheckResult:
    """The events of the last hour; pods that cannot be created are a finding for each object that creates them.

    Args:
        events: as `read` returns them.
        now_ns: since the epoch.
        namespace: of the autoscaler, for commands.
    """
    recent = [event for event in events if now_ns - event.last_at < RECENT_NS]
    newest = recent[::-1][:SHOWN_EVENTS_MAX]
    lines = [(wording.age(event.last_at, now_ns), _event_text(event)) for event in newest]
    if len(recent) > len(newest):
        lines.append(("", f"and {len(recent) - len(newest)} more within the last hour"))
    latest_failures = {event.subject: event for event in recent if event.reason in _CREATION_FAILURE_REASONS}
    findings = []
    for failure in latest_failures.values():
        age = wording.age(failure.last_at, now_ns)
        message = f"{failure.subject} could not create pods {age}: {failure.message}"
        fix = f"kubectl -n {namespace} describe {failure.subject.lower()}"
        findings.append(DoctorFinding(FindingLevel.ERROR, Area.EVENTS, message, fix))
    return CheckResult(section("Events of the last hour", lines or [("", "none")]), tuple(findings))


def _event_text(event: KubernetesEvent) -> str:
    times = f" ({event.times} times)" if event.times > 1 else ""
    return f"{event.type} {event.reason} {event.subject}{times}: {event.message}"


def _read_event(event_object: JsonObject) -> KubernetesEvent | None:
    """The event; None if it has no time."""
    series, involved = event_object.get("series") or {}, event_object.get("involvedObject") or {}
    first_at = _first_instant_ns(event_object, ("firstTimestamp", "eventTime", "lastTimestamp"))
    last_at = (
        _first_instant_ns(series, ("lastObservedTime",))
        or _first_instant_ns(event_object, ("lastTimestamp", "eventTime"))
        or first_at
    )
    if last_at is None:
        return None
    return KubernetesEvent(
        type=str(event_object.get("type") or "Normal"),
        reason=str(event_object.get("reason") or ""),
        message=str(event_object.get("message") or ""),
        subject=f"{involved.get('kind', '')}/{involved.get('name', '')}",
        first_at=last_at if first_at is None else first_at,
        last_at=last_at,
        times=int(series.get("count") or event_object.get("count") or 1),
    )


def _first_instant_ns(obj: JsonObject, names: Sequence[str]) -> int | None:
    """The time in the first of these fields that has a readable one, in ns since the epoch; None if none has."""
    return next((found_ns for name in names if (found_ns := instant_ns(obj.get(name))) is not None), None)


def instant_ns(timestamp: object) -> int | None:
    """The instant of a timestamp; None if there is none, or it cannot be read."""
    try:
        return instants.parse(timestamp) if isinstance(timestamp, str) and timestamp else None
    except ValueError:
        return None
