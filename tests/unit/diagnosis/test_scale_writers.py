"""Writers of a target's replicas, and Events, for `podscaler doctor`."""

from typing import Any

import pytest

from podscaler.api.machinery import instants
from podscaler.cli.diagnosis import events, scale_writers
from podscaler.cli.diagnosis.events import KubernetesEvent
from podscaler.cli.diagnosis.findings import Area, DoctorFinding, FindingLevel

Json = dict[str, Any]
NOW = instants.parse("2026-03-03T10:30:00Z")
SCALED = instants.parse("2026-03-03T10:20:00Z")


def written(manager: str, time: str | None, *, fields: str = "f:replicas", **more: str) -> Json:
    """A target whose replicas (or another field) that manager wrote."""
    entry: Json = {"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {fields: {}}}} | more
    if time is not None:
        entry["time"] = f"2026-03-03T{time}Z"
    return {"metadata": {"managedFields": [entry]}}


@pytest.mark.parametrize(
    "target",
    [
        None,
        {},
        {"metadata": {"managedFields": [{"manager": "x", "fieldsV1": None}]}},
        written("kubectl", "10:20:00"),
        written("kubectl", None),
        written("kubectl", "10:25:00", fields="f:template"),
        written("kube-controller-manager", "10:25:00", subresource="scale"),
        written("podscaler-up", "10:25:00", subresource="scale"),
        written("test", "10:25:00", subresource="scale"),
    ],
    ids=[
        *["no target", "no managedFields", "odd fields", "not after the rescale", "no time", "another field"],
        *["the built-in controller", "podscaler", "who writes the status"],
    ],
)
def test_no_finding(target: Json | None) -> None:
    """The autoscaler itself, and what came before it."""
    assert scale_writers.check(target, "test", SCALED, NOW).findings == ()


def test_another_writer_after_the_rescale() -> None:
    """It undoes what the autoscaler did."""
    found = scale_writers.check(written("pipeline", "10:25:00"), "test", SCALED, NOW)
    assert found.findings == (
        DoctorFinding(
            FindingLevel.WARNING,
            Area.WRITERS,
            "pipeline wrote spec.replicas of the target 5 min ago, after the autoscaler's last rescale 10 min ago",
            "stop pipeline from writing spec.replicas: leave it out of its manifest, and do not scale by hand",
        ),
    )
    assert [(each.label, each.text) for each in found.section.lines] == [
        ("pipeline", "by Update of the object, 5 min ago")
    ]


def event(reason: str, time: str, **more: Any) -> Json:
    """An Event about ReplicaSet/web-1."""
    involved = {"kind": "ReplicaSet", "name": "web-1"}
    return {
        "type": "Warning",
        "reason": reason,
        "message": "exceeded quota",
        "involvedObject": involved,
        "firstTimestamp": "2026-03-03T09:00:00Z",
        "lastTimestamp": f"2026-03-03T{time}Z",
        "count": 4,
    } | more


def test_events_of_both_forms() -> None:
    """Those with a count and those with a series; without any time they are left out; oldest first."""
    series = {"count": 7, "lastObservedTime": "2026-03-03T10:10:00.5Z"}
    newer = event("B", "10:00:00") | {
        "firstTimestamp": None,
        "lastTimestamp": None,
        "count": None,
        "eventTime": "2026-03-03T10:00:00.25Z",
        "series": series,
    }
    timeless = event("C", "10:00:00") | {"firstTimestamp": None, "lastTimestamp": "soon"}
    assert [
        (each.reason, each.times, instants.text(each.first_at), each.last_at % 10**9)
        for each in events.read([newer, timeless, event("A", "10:00:00")])
    ] == [("A", 4, "2026-03-03T09:00:00Z", 0), ("B", 7, "2026-03-03T10:00:00Z", 500_000_000)]


def test_pods_that_cannot_be_created() -> None:
    """A finding; older ones are not, and others are only shown."""
    found = events.check(events.read([event("FailedCreate", "10:29:00"), event("Other", "09:29:59")]), NOW, "shop")
    assert found.findings == (
        DoctorFinding(
            FindingLevel.ERROR,
            Area.EVENTS,
            "ReplicaSet/web-1 could not create pods 1 min ago: exceeded quota",
            "kubectl -n shop describe replicaset/web-1",
        ),
    )
    assert [(each.label, each.text) for each in found.section.lines] == [
        ("1 min ago", "Warning FailedCreate ReplicaSet/web-1 (4 times): exceeded quota")
    ]


def test_many_events_are_cut() -> None:
    """The newest ones, and how many more there are."""
    many = [KubernetesEvent("Normal", f"R{index}", "m", "Pod/web", NOW - index, NOW - index, 1) for index in range(12)]
    lines = events.check(sorted(many, key=lambda each: each.last_at), NOW, "shop").section.lines
    assert [each.text.split(" ")[1] for each in lines] == [*[f"R{index}" for index in range(10)], "2"]
