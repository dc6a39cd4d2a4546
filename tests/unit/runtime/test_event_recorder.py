"""Events as they are stored: created, counted, and never in anybody's way."""

import logging
from typing import Any

import pytest

from podscaler.controlplane.registry import events
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.testing import VirtualClock
from podscaler.testing.registry import OpenRegistry

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
}


@pytest.fixture
def recorder(opened: OpenRegistry, clock: VirtualClock) -> EventRecorder:
    """The kubelet's."""
    return EventRecorder(opened.registry, "kubelet", clock, host="vm")


def stored(opened: OpenRegistry) -> list[dict[str, Any]]:
    return list(opened.registry.list("events"))


async def test_a_new_event(recorder: EventRecorder, opened: OpenRegistry) -> None:
    """Everything that `kubectl describe` reads."""
    recorder.event(POD, "Warning", "BackOff", "Back-off", field_path="spec.containers{web}")
    await recorder.flush()
    (event,) = stored(opened)
    at = "2026-01-01T00:00:00Z"
    wanted = {
        "involvedObject": {
            "kind": "Pod",
            "namespace": "default",
            "name": "web",
            "uid": "u1",
            "apiVersion": "v1",
            "resourceVersion": "7",
            "fieldPath": "spec.containers{web}",
        },
        "reason": "BackOff",
        "message": "Back-off",
        "source": {"component": "kubelet", "host": "vm"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "type": "Warning",
        "reportingComponent": "kubelet",
        "reportingInstance": "vm",
    }
    assert {key: event[key] for key in wanted} == wanted


async def test_repeats_raise_the_count(recorder: EventRecorder, opened: OpenRegistry, clock: VirtualClock) -> None:
    """Within one batch, in later ones, and after the event was removed."""
    for _ in range(3):
        recorder.event(POD, "Normal", "Pulled", "again")
    await recorder.flush()
    await clock.advance(60)
    recorder.event(POD, "Normal", "Pulled", "again")
    await recorder.flush()
    (event,) = stored(opened)
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        4,
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:01:00Z",
    )
    await opened.registry.delete("events", "default", event["metadata"]["name"])
    recorder.event(POD, "Normal", "Pulled", "again")
    await recorder.flush()
    assert [event["count"] for event in stored(opened)] == [5]


async def test_many_objects_at_once(recorder: EventRecorder, opened: OpenRegistry) -> None:
    """A thousand events of a thousand pods are all written."""
    for number in range(1000):
        recorder.event({**POD, "metadata": {**POD["metadata"], "name": f"p{number}"}}, "Normal", "Scheduled", "here")
    await recorder.flush()
    assert len(stored(opened)) == 1000


async def test_an_event_that_is_refused(recorder: EventRecorder, opened: OpenRegistry) -> None:
    """A namespace that is not there costs this event alone."""
    elsewhere = {**POD, "metadata": {**POD["metadata"], "namespace": "nowhere"}}
    recorder.event(elsewhere, "Normal", "Lost", "no namespace")
    recorder.event(POD, "Normal", "Kept", "fine")
    await recorder.flush()
    assert [event["reason"] for event in stored(opened)] == ["Kept"]


async def test_a_full_buffer_says_so_once(
    recorder: EventRecorder, opened: OpenRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """The oldest are kept; one warning for all that were dropped."""
    with caplog.at_level(logging.WARNING):
        for number in range(events.BUFFERED_EVENTS + 10):
            recorder.event(POD, "Normal", f"R{number}", "x")
    await recorder.flush()
    assert len(caplog.records) == 1


async def test_cluster_scoped_objects(recorder: EventRecorder, opened: OpenRegistry) -> None:
    """Their events go to `default`."""
    recorder.event({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vm"}}, "Normal", "Starting", "here")
    await recorder.flush()
    assert [event["metadata"]["namespace"] for event in stored(opened)] == ["default"]
