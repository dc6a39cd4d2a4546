"""Failure policies in a whole controller: events, status, metrics, recording, restarts, both kinds of autoscalers."""

import gzip
import itertools
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.typed import recording as format_
from podscaler.controller.options.autoscaler_kinds import POD_AUTOSCALER
from podscaler.controller.recording.file_recording import FileRecording
from podscaler.controller.recording.record_file import RecordFile
from podscaler.core import replay
from podscaler.testing import VirtualClock
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import POD_AUTOSCALERS, refusal

PREFIX = "podscaler.dev/on-metric-failure-"
METRICS = "/apis/metrics.k8s.io"
KEEP = {f"{PREFIX}keep-last-for": "5m"}
FALLBACK = {f"{PREFIX}fallback-replicas": "3", f"{PREFIX}fallback-after": "1m"}
DOWN = refusal(503, "ServiceUnavailable", "down")
RESPONSES = ("LastMetricValueKept", "FailedMetricIgnored", "FallbackReplicasApplied")


def world(annotations: dict[str, str], recording: FileRecording | None = None, **settings: Any) -> AutoscalerWorld:
    """Two pods at 40 % of their requests on a target of 50 %: 2 replicas stay."""
    made = AutoscalerWorld(recording, **settings)
    made.add_web(cpu="400m", replicas=2)
    made.cluster.put_autoscaler("web", spec(), annotations=annotations)
    return made


def active(found: AutoscalerWorld) -> str:
    """The reason of ScalingActive."""
    conditions = found.web["status"]["conditions"]
    reason: str = next(each["reason"] for each in conditions if each["type"] == "ScalingActive")
    return reason


def counts(found: AutoscalerWorld) -> tuple[float | None, ...]:
    """The counter of each response."""
    sample = found.controller.telemetry.registry.get_sample_value
    return tuple(sample("podscaler_metric_failure_responses_total", {"response": each}) for each in RESPONSES)


async def test_fallback_replicas_in_the_cluster() -> None:
    """After a minute without the metrics API there are three replicas; status, event and counter have the reason."""
    found = world(FALLBACK)
    await found.start()
    found.cluster.fail(DOWN, below=METRICS)
    await found.advance(90)
    await found.close()
    reasons = list(dict.fromkeys(event["reason"] for event in found.cluster.events if "reason" in event))
    assert (found.replicas(), active(found), counts(found)) == (3, "FallbackReplicasApplied", (0, 0, 2))
    assert reasons == [
        "FailedGetResourceMetric",
        "FailedComputeMetricsReplicas",
        "FallbackReplicasApplied",
        "SuccessfulRescale",
    ]


async def test_events_are_counted_not_repeated() -> None:
    """Syncs with the same response are one event with a count, as the recorder correlates all events."""
    found = world(KEEP)
    await found.start()
    found.cluster.fail(DOWN, below=METRICS)
    await found.advance(61)
    await found.close()
    created = [event["reason"] for event in found.cluster.events if "reason" in event]
    patched = [event["count"] for event in found.cluster.events if "the last value" in event["message"]]
    assert (created, patched, counts(found)) == (
        ["FailedGetResourceMetric", "LastMetricValueKept"],
        [1, 2, 3, 4],
        (4, 0, 0),
    )


async def test_an_invalid_annotation_is_an_event() -> None:
    """The autoscaler goes on as without it."""
    found = world({f"{PREFIX}keep-last-for": "soon"})
    await found.start()
    await found.advance(1)
    await found.close()
    assert [(event["type"], event["reason"], event["message"]) for event in found.cluster.events] == [
        (
            "Warning",
            "InvalidMetricFailurePolicy",
            f'{PREFIX}keep-last-for: "soon" is not a duration such as 90s or 5m',
        )
    ]
    assert active(found) == "ValidMetricFound"


async def test_an_annotation_counts_from_the_next_sync() -> None:
    """An edit of annotations alone is no edit of the spec, and is still noticed."""
    found = world({})
    await found.start()
    found.cluster.put_autoscaler("web", spec(), annotations=KEEP)
    await found.advance(15)
    found.cluster.fail(DOWN, below=METRICS)
    await found.advance(15)
    await found.close()
    assert active(found) == "LastMetricValueKept"


async def test_a_pod_autoscaler_states_it_in_its_spec() -> None:
    """The status is written with the whole object, so the field stays."""
    found = AutoscalerWorld(kinds=(POD_AUTOSCALER,))
    found.cluster.serve_pod_autoscalers()
    found.cluster.put_deployment("web", 1)
    found.cluster.put_pod("web-0", "web", "400m")
    found.cluster.put_autoscaler("web", spec(onMetricFailure={"keepLastFor": "5m"}), uid="pa", path=POD_AUTOSCALERS)
    await found.start()
    found.cluster.fail(DOWN, below=METRICS)
    await found.advance(15)
    await found.close()
    stored = found.cluster.collections[POD_AUTOSCALERS].objects["shop", "web"]
    reasons = {each["type"]: each["reason"] for each in stored["status"]["conditions"]}
    assert (reasons["ScalingActive"], stored["spec"]["onMetricFailure"]) == (
        "LastMetricValueKept",
        {"keepLastFor": "5m"},
    )


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed during the outage"])
async def test_a_last_value_survives_the_controller(*, is_killed: bool) -> None:
    """The next process has what the metric asked for last, which its own syncs never read."""
    found = world(KEEP, history_namespace="kube-system")
    await found.start()
    found.cluster.fail(DOWN, below=METRICS)
    await found.advance(30)  # the beginning of a failure is stored within seconds
    if is_killed:
        await found.close()
    else:
        found.controller.stop()
        await found.advance(1)
    found.controller = found.make_controller()
    await found.start()
    await found.advance(15)
    reason = active(found)
    await found.close()
    assert (reason, counts(found)[0]) == ("LastMetricValueKept", 2)


async def test_a_recording_decides_alike(tmp_path: Path) -> None:
    """A replay has the policy from the annotations, and the last values from the lines before."""
    path, clock = tmp_path / "web.recording.jsonl.gz", VirtualClock()
    file = RecordFile(path, format_.header_line("1.37.0", {}), max_bytes=10**6, files=1)
    file.begin()
    found = world(KEEP | FALLBACK, FileRecording(file, clock))
    await found.start()
    found.cluster.fail(DOWN, below=METRICS)
    await found.advance(600)
    await found.close()
    assert isinstance(found.recording, FileRecording)
    await found.recording.close()
    with gzip.open(path) as lines:
        decisions = list(replay.decisions(lines))
    reasons = [
        each.reason
        for decision in decisions
        for each in decision.status.conditions or ()
        if each.type == "ScalingActive"
    ]
    assert [reason for reason, _ in itertools.groupby(reasons)] == [
        "ValidMetricFound",
        "LastMetricValueKept",
        "FallbackReplicasApplied",
    ]
    assert [each.replicas for each in decisions if each.replicas is not None] == [3]
