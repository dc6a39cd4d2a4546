"""The lines of recordings: what is written is read again."""

import msgspec
import pytest

from podscaler.api.machinery import meta
from podscaler.api.typed import autoscaling, metrics, pods, recording
from podscaler.api.typed.recording import (
    RecordedHistory,
    RecordedRecommendation,
    RecordedScaleEvent,
    RecordingError,
    RecordingHeader,
    SyncLine,
)

TIME = "2026-01-01T00:00:00.123456Z"
HPA = autoscaling.HorizontalPodAutoscaler(
    "HorizontalPodAutoscaler",
    "autoscaling/v2",
    meta.ObjectMeta(name="web", namespace="ns", generation=3),
    autoscaling.HorizontalPodAutoscalerSpec(max_replicas=5),
    autoscaling.HorizontalPodAutoscalerStatus(desired_replicas=2),
)
SCALE = autoscaling.Scale("autoscaling/v1", spec=autoscaling.ScaleSpec(2))
FAILURE = meta.Status("v1", status="Failure", message="no", reason="Conflict", code=409)
POD = pods.Pod(pods.PodMeta("a", "ns"))


def test_header_round_trip() -> None:
    """A header that is written is read again."""
    line = recording.header_line("1.37.0", {"horizontal-pod-autoscaler-tolerance": 0.2})
    assert recording.read_header(line) == RecordingHeader(1, "1.37.0", {"horizontal-pod-autoscaler-tolerance": 0.2})


@pytest.mark.parametrize("scale", [SCALE, FAILURE], ids=["scale", "failure"])
@pytest.mark.parametrize("updates", [(), (FAILURE, SCALE)], ids=["no attempts", "attempts"])
def test_sync_round_trip(scale: autoscaling.Scale | meta.Status, updates: tuple[meta.Status, ...]) -> None:
    """A sync that is written is read again, with answers of every kind."""
    answers = (
        metrics.PodMetricsList(items=(metrics.PodMetrics(metrics.PodMetricsMeta("a", "ns")),)),
        metrics.MetricValueList(items=(metrics.MetricValue(value="1"),)),
        metrics.ExternalMetricValueList(items=(metrics.ExternalMetricValue(value="1"),)),
        FAILURE,
        None,
    )
    raw = (msgspec.Raw(msgspec.json.encode(POD)),)
    sync = SyncLine(TIME, HPA, scale, scale_update=updates, pods=raw, metrics=answers)
    line = recording.read_line(recording.sync_line(sync))
    assert line.hpa is not None
    spec = msgspec.json.decode(line.hpa.spec, type=autoscaling.HorizontalPodAutoscalerSpec)
    read_pods = [msgspec.json.decode(raw, type=pods.Pod) for raw in line.pods or ()]
    assert (line.time, line.hpa.metadata, spec, line.hpa.status) == (TIME, HPA.metadata, HPA.spec, HPA.status)
    assert (line.scale, line.scale_update or (), read_pods, line.metrics) == (scale, updates, [POD], answers)


def test_what_else_a_sync_can_tell() -> None:
    """What a replay cannot know by itself is read again as it was written; absent, it is told from an empty answer."""
    past = RecordedHistory(
        (RecordedRecommendation(3, TIME),),
        (RecordedScaleEvent(1, TIME),),
        (RecordedScaleEvent(2, TIME, outdated=True),),
    )
    sync = SyncLine(
        TIME,
        HPA,
        SCALE,
        scaled_at=TIME,
        status_update=FAILURE,
        neighbours=("ns/a",),
        history=past,
        gone=True,
    )
    line = recording.read_line(recording.sync_line(sync))
    assert (line.scaled_at, line.status_update, line.neighbours, line.history, line.gone) == (
        TIME,
        FAILURE,
        ("ns/a",),
        past,
        True,
    )
    bare = recording.read_line(recording.sync_line(SyncLine(TIME, HPA, SCALE)))
    alone = recording.read_line(
        recording.sync_line(SyncLine(TIME, HPA, SCALE, neighbours=(), history=RecordedHistory()))
    )
    assert (bare.neighbours, bare.history, alone.neighbours, alone.history) == (None, None, (), RecordedHistory())


def test_deleted_round_trip() -> None:
    """The end of an autoscaler that is written is read again."""
    line = recording.read_line(recording.deleted_line(TIME, "ns/web"))
    assert (line.time, line.deleted, line.hpa) == (TIME, "ns/web", None)


def test_errors_are_the_users() -> None:
    """What cannot be read is a RecordingError, which is the user's to mend."""
    with pytest.raises(RecordingError, match="truncated"):
        recording.read_line(b"{")
