"""Builds core/v1 Events, as client-go's event recorder does.

The recorders of the controller, of leader election and of the control plane write what `core_event` returns.

Source: client-go/tools/record (the fields and their values).
"""

from typing import Any

from podscaler.base.clock import rfc3339
from podscaler.events.event_correlation import EventDraft


def core_event(
    event: EventDraft, involved: dict[str, str], *, component: str, host: str = "", reporter: str | None = None
) -> dict[str, Any]:
    """The Event as JSON-ready data.

    Args:
        event: correlated, so that it has a name.
        involved: the fields of `involvedObject`; those that are empty are left out.
        component: `source.component`.
        host: `source.host` and `reportingInstance`; empty where the component belongs to no node.
        reporter: `reportingComponent`; None: the component.
    """
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": involved.get("namespace") or "default"},
        "involvedObject": _without_empty(involved),
        "reason": event.reason,
        "message": event.message,
        "source": _without_empty({"component": component, "host": host}),
        "firstTimestamp": rfc3339(event.first_at_ns),
        "lastTimestamp": rfc3339(event.at_ns),
        "count": event.count,
        "type": event.type,
        "eventTime": None,
        "reportingComponent": component if reporter is None else reporter,
        "reportingInstance": host,
    }


def _without_empty(values: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}
