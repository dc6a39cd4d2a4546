"""What the objects of a cluster show of an autoscaler's past: creations, writes, rollouts, conditions, events."""

from typing import Any

from podscaler.api.machinery import instants
from podscaler.cli.diagnosis import timeline_entries
from podscaler.cli.diagnosis.autoscaler_objects import AutoscalerObjects
from podscaler.cli.diagnosis.timeline_entries import EntryKind, TimelineEntry

Json = dict[str, Any]


def at(minute: int) -> str:
    return f"2026-03-03T10:{minute:02}:00Z"


def entry(minute: int, kind: EntryKind, subject: str, text: str, **more: int) -> TimelineEntry:
    return TimelineEntry(instants.parse(at(minute)), kind, subject, text, **more)


def event(minute: int, kind: str, name: str, *, level: str = "Normal", last: int | None = None, times: int = 1) -> Json:
    """An Event from `minute` to `last`."""
    involved = {"kind": kind, "name": name}
    times_of = {"firstTimestamp": at(minute), "lastTimestamp": at(minute if last is None else last), "count": times}
    return times_of | {"type": level, "reason": "Reason", "message": "text", "involvedObject": involved}


AUTOSCALER: Json = {
    "kind": "HorizontalPodAutoscaler",
    "metadata": {
        "name": "web",
        "creationTimestamp": at(0),
        "managedFields": [
            {"manager": "kubectl", "operation": "Apply", "time": at(3), "fieldsV1": {"f:spec": {"f:maxReplicas": {}}}},
            {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "time": at(9)},
        ],
    },
    "status": {
        "conditions": [
            {
                "type": "ScalingActive",
                "status": "False",
                "reason": "FailedGetResourceMetric",
                "message": "no metrics",
                "lastTransitionTime": at(4),
            },
            {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "lastTransitionTime": None},
        ]
    },
}
TARGET: Json = {
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "creationTimestamp": at(0),
        "managedFields": [
            {"manager": "ci", "operation": "Update", "time": at(5), "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "hand", "operation": "Update", "subresource": "scale", "time": at(6)},
            {"manager": "timeless", "operation": "Update"},
        ],
    },
}
REPLICA_SET: Json = {
    "metadata": {"name": "web-1", "creationTimestamp": at(1), "annotations": {timeline_entries.REVISION: "2"}}
}


def test_all_kinds_in_order() -> None:
    """Normal events of others than the autoscaler and its target are left out, and writes of statuses."""
    found = AutoscalerObjects(
        AUTOSCALER,
        TARGET,
        [REPLICA_SET],
        [
            event(2, "Deployment", "web"),
            event(2, "Pod", "web-1-x"),
            event(7, "Pod", "web-1-x", level="Warning", last=8, times=4),
        ],
    )
    from_ns = instants.parse(at(0))
    assert timeline_entries.in_order(timeline_entries.of_cluster(found), from_ns) == [
        entry(0, EntryKind.CREATED, "Deployment/web", "created"),
        entry(0, EntryKind.CREATED, "HorizontalPodAutoscaler/web", "created"),
        entry(1, EntryKind.ROLLOUT, "ReplicaSet/web-1", "created (revision 2)"),
        entry(2, EntryKind.EVENT, "Deployment/web", "Normal Reason: text"),
        entry(3, EntryKind.WRITE, "HorizontalPodAutoscaler/web", "kubectl wrote its fields (Apply)"),
        entry(
            4,
            EntryKind.CONDITION,
            "HorizontalPodAutoscaler/web",
            "ScalingActive became False; it is FailedGetResourceMetric now: no metrics",
        ),
        entry(5, EntryKind.WRITE, "Deployment/web", "ci wrote its fields, spec.replicas too (Update)"),
        entry(6, EntryKind.WRITE, "Deployment/web", "hand wrote its scale (Update)"),
        entry(7, EntryKind.EVENT, "Pod/web-1-x", "Warning Reason: text", until=instants.parse(at(8)), times=4),
    ]


def test_what_lasted_until_then_is_shown() -> None:
    """An event that was seen since is part of the time, others before it are not."""
    found = AutoscalerObjects(AUTOSCALER, None, [], [event(2, "HorizontalPodAutoscaler", "web", last=9, times=3)])
    entries = timeline_entries.in_order(timeline_entries.of_cluster(found), instants.parse(at(8)))
    assert [(each.kind, each.times) for each in entries] == [(EntryKind.EVENT, 3)]


def test_an_object_without_anything() -> None:
    """Fields that are missing are no fault."""
    assert list(timeline_entries.of_cluster(AutoscalerObjects({}, {}, [{}], [{}]))) == []
