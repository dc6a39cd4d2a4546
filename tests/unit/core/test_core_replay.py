"""Recordings decided again: what is carried from line to line, attempts to write, lines that make no sense.

Source: the recording format, version 1 (docs/recordings.md).
"""

import gzip
import io
import json
import re
from typing import Any

import pytest

from podscaler.api.typed import recording
from podscaler.api.typed.recording import RecordingError
from podscaler.core import replay
from podscaler.core.model.emulation import V1_38
from podscaler.core.model.settings import Settings
from podscaler.core.replay import DecisionLine
from podscaler.testing.decisions import Json, external_metric, pods_metric, resource

HEADER: Json = {"recording": 1, "kubernetes": "1.37.0", "flags": {}}
CONFLICT = {"kind": "Status", "status": "Failure", "message": "conflict", "reason": "Conflict", "code": 409}
QUOTA = {"kind": "Status", "status": "Failure", "message": "quota", "reason": "Forbidden", "code": 403}
METRIC = external_metric(average="1")


def sync(second: int = 0, *, value: str = "3", replicas: int = 3, name: str = "web", **changes: Any) -> Json:
    """A sync line: one External metric with an average of 1, so `value` is the proposal."""
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [METRIC],
    }
    answer = {"kind": "ExternalMetricValueList", "items": [{"metricName": "queue", "value": value}]}
    scale = {"kind": "Scale", "spec": {"replicas": replicas}, "status": {"replicas": replicas, "selector": "app=web"}}
    pod = {"metadata": {"name": "p0", "labels": {"app": "web"}}, "spec": {}, "status": {"phase": "Running"}}
    line = {
        "time": f"2026-01-01T00:{second // 60:02}:{second % 60:02}.5Z",
        "hpa": {"metadata": {"name": name, "namespace": "ns", "generation": 1}, "spec": spec, "status": {}},
        "scale": scale,
        "pods": [pod],
        "metrics": [answer],
    }
    return {key: item for key, item in (line | changes).items() if item is not None}


def lines(*objects: Json | bytes) -> list[bytes]:
    """The lines of a recording."""
    return [each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in objects]


def replayed(*syncs: Json | bytes, header: Json = HEADER) -> list[DecisionLine]:
    """The decisions for a recording."""
    return list(replay.decisions(lines(header, *syncs)))


def test_history_is_carried() -> None:
    """A recommendation of one line holds the scale-down of the next, until the window has passed."""
    decided = replayed(sync(0, value="5"), sync(15, value="2", replicas=5), sync(301, value="2", replicas=5))
    assert [line.replicas for line in decided] == [5, None, 2]


def test_autoscalers_have_their_own_history() -> None:
    """Lines of another autoscaler in between do not matter."""
    other = {"metadata": {"name": "p0", "labels": {"app": "other"}}, "spec": {}, "status": {}}
    decided = replayed(sync(0, value="5"), sync(1, name="b", value="9", pods=[other]), sync(15, value="5", replicas=5))
    assert [(line.hpa, line.replicas) for line in decided] == [("ns/web", 5), ("ns/b", 6), ("ns/web", None)]


def test_a_deleted_autoscaler_is_forgotten() -> None:
    """The end of an autoscaler has no decision, and takes its history and its selector along."""
    gone = {"time": "2026-01-01T00:00:10Z", "deleted": "ns/web"}
    decided = replayed(sync(0, value="5"), gone, sync(15, value="2", replicas=3), sync(16, name="b", value="3"))
    assert [(line.hpa, [event.reason for event in line.events]) for line in decided] == [
        ("ns/web", ["SuccessfulRescale"]),
        ("ns/web", []),
        ("ns/b", ["AmbiguousSelector", "FailedComputeMetricsReplicas"]),
    ]


def test_overlap_lasts_until_one_is_deleted() -> None:
    """Two autoscalers over the same pods stop each other; the one that stays goes on."""
    gone = {"time": "2026-01-01T00:00:10Z", "deleted": "ns/b"}
    decided = replayed(sync(0), sync(1, name="b"), sync(2), gone, sync(15))
    assert ["more than one HPA" in line.error for line in decided] == [False, True, True, False]


@pytest.mark.parametrize(
    ("answers", "replicas", "error", "second"),
    [
        ([], 5, "", "00"),
        ([CONFLICT], 5, "", "00"),
        ([CONFLICT] * 4, 5, "", "00"),
        ([CONFLICT] * 5, None, "failed to rescale Deployment/ns/web: conflict", None),
        ([QUOTA], None, "failed to rescale Deployment/ns/web: quota", None),
        ([CONFLICT, QUOTA], None, "failed to rescale Deployment/ns/web: quota", None),
        ([None], 5, "", "00"),
    ],
    ids=["no list", "one conflict", "four", "five", "refused", "conflict, then refused", "success"],
)
def test_attempts_to_write(answers: list[Json | None], replicas: int | None, error: str, second: str | None) -> None:
    """Conflicts are tried again, five times at most; other failures are final."""
    (line,) = replayed(sync(value="5", scaleUpdate=answers))
    scaled_at = None if second is None else f"2026-01-01T00:00:{second}Z"
    assert (line.replicas, line.error, line.status.last_scale_time) == (replicas, error, scaled_at)


def test_attempts_take_time() -> None:
    """Each wait between attempts takes 10 ms, which shows where a second begins."""
    late = sync(value="5", scaleUpdate=[CONFLICT]) | {"time": "2026-01-01T00:00:00.990000000Z"}
    later = late | {"time": "2026-01-01T00:00:00.989999999Z"}
    assert [replayed(line)[0].status.last_scale_time for line in (late, later)] == [
        "2026-01-01T00:00:01Z",
        "2026-01-01T00:00:00Z",
    ]


def test_the_instant_of_the_write() -> None:
    """Where a line says when the scale was written, or was refused, that counts."""
    slow = sync(value="5", scaledAt="2026-01-01T00:00:03.000000001Z")
    failed = sync(value="5", scaledAt="2026-01-01T00:00:04Z", scaleUpdate=[QUOTA])
    written, refused = (replayed(line)[0] for line in (slow, failed))
    assert written.status.last_scale_time == "2026-01-01T00:00:03Z"
    assert [each.last_transition_time for each in refused.status.conditions or () if each.type == "AbleToScale"] == [
        "2026-01-01T00:00:04Z"
    ]


def test_history_of_before_the_recording() -> None:
    """A line may say what was remembered; later lines carry it on."""
    past = {"recommendations": [{"replicas": 5, "time": "2026-01-01T00:00:00Z"}]}
    first, second = sync(15, value="2", replicas=5, history=past), sync(302, value="2", replicas=5)
    assert [line.replicas for line in replayed(first, second)] == [None, 2]
    assert [line.replicas for line in replayed(sync(15, value="2", replicas=5, history={}), second)] == [None, None]


def test_neighbours_that_a_line_names() -> None:
    """Where a line names the autoscalers over the same pods, selectors of other lines do not matter."""
    decided = replayed(sync(0), sync(1, name="b", neighbours=[]), sync(2, neighbours=["ns/c"]))
    assert [line.error.partition("(e.g. ")[2] for line in decided] == ["", "", "[ns/c ns/web])"]


def test_an_autoscaler_that_is_deleted_during_its_sync() -> None:
    """The sync ends with upstream's error, without an event of its own."""
    (line,) = replayed(sync(gone=True))
    assert line.error.endswith("HPA ns/web was deleted during reconciliation")


def test_a_status_that_was_not_written() -> None:
    """The status stays, an event tells why, and the sync ends with that error."""
    (line,) = replayed(sync(value="5", statusUpdate=CONFLICT))
    assert (line.replicas, line.status.desired_replicas, [event.reason for event in line.events], line.error) == (
        5,
        0,
        ["SuccessfulRescale", "FailedUpdateStatus"],
        "failed to update status for web: conflict",
    )


def test_trace_on_demand() -> None:
    """Traces are added only where they are asked for."""
    with_trace = next(replay.decisions(lines(HEADER, sync()), with_trace=True))
    assert (hasattr(with_trace.trace, "branch"), hasattr(replayed(sync())[0].trace, "branch")) == (True, False)


def test_flags_and_version_of_the_header() -> None:
    """The header's flags and version are those of the decisions."""
    header = HEADER | {"flags": {"horizontal-pod-autoscaler-downscale-stabilization": "10s"}}
    decided = replayed(sync(0, value="5"), sync(15, value="2", replicas=5), header=header)
    assert [line.replicas for line in decided] == [5, 2]
    assert replay.Replay(recording.RecordingHeader(1, "1.38.0")).settings == Settings(emulation=V1_38)


def test_scale_is_not_needed_for_a_bad_target() -> None:
    """An apiVersion that cannot be parsed is found out whatever `scale` holds."""
    bad = sync(scale=None)
    bad["hpa"]["spec"]["scaleTargetRef"]["apiVersion"] = "a/b/c"
    (line,) = replayed(bad)
    assert line.error == "invalid API version in scale target reference: unexpected GroupVersion string: a/b/c"


def test_blank_lines_do_not_count() -> None:
    """Blank lines are skipped."""
    assert len(replayed(b"\n", sync(), b"  \n", b"")) == 1


def hpa(**changes: Any) -> Json:
    """The autoscaler of a sync line with another spec."""
    return {"metadata": {"name": "web", "namespace": "ns"}, "spec": sync()["hpa"]["spec"] | changes}


def pod(**parts: Any) -> Json:
    """A pod of a sync line."""
    return {"metadata": {"name": "p0", "labels": {"app": "web"}}} | parts


WRONG_ANSWER = {"kind": "PodMetricsList", "items": []}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"time":', "Input data was truncated"),
        (b"\xff\n", "JSON is malformed: invalid character (byte 0)"),
        (b"[]\n", "Expected `object`, got `array`"),
        (b'{"time": 5}\n', "Expected `str`, got `int` - at `$.time`"),
        (sync(time="yesterday"), "'yesterday' is not a time like 2026-01-31T12:00:00Z"),
        (sync(hpa=None), "a line has either `hpa` (a sync) or `deleted` (the end of an autoscaler)"),
        (sync(deleted="ns/web"), "a line has either `hpa` (a sync) or `deleted` (the end of an autoscaler)"),
        (sync(scale=None), "`scale` is missing"),
        (sync(scale={"kind": "Pod"}), "Invalid value 'Pod' - at `$.scale.kind`"),
        (sync(metrics=None), "metrics[0]: an answer is needed"),
        (sync(metrics=[None]), "metrics[0]: an answer is needed"),
        (sync(metrics=[WRONG_ANSWER]), "a metric of type External cannot have a PodMetricsList for an answer"),
        (sync(hpa=hpa(metrics=[pods_metric()])), "metrics[0]: an answer by pod is needed"),
        (sync(hpa=hpa(metrics=[resource(average="lots")])), "quantities must match the regular expression"),
        (sync(hpa=hpa(maxReplicas="many")), "Expected `int`, got `str` - at `$.maxReplicas`"),
        (sync(pods=[pod(status={"startTime": "soon"})]), "'soon' is not a time like 2026-01-31T12:00:00Z"),
        (sync(pods=[pod(spec=5)]), "Expected `object`, got `int` - at `$.spec`"),
        (sync(value="lots"), "quantities must match the regular expression"),
        (sync(scaledAt="soon", value="5"), "'soon' is not a time like 2026-01-31T12:00:00Z"),
        (sync(history={"scaleUps": [{"change": 1, "time": ""}]}), "'' is not a time like 2026-01-31T12:00:00Z"),
    ],
)
def test_lines_that_make_no_sense(line: Json | bytes, message: str) -> None:
    """A line that cannot be used is named, with what is wrong; decisions up to there are given."""
    decisions = replay.decisions(lines(HEADER, sync(), line))
    assert next(decisions).hpa == "ns/web"
    with pytest.raises(RecordingError, match=f"^line 3: {re.escape(message)}"):
        next(decisions)


def test_time_goes_backwards() -> None:
    """Lines of one autoscaler must be in time order; those of others need not be."""
    assert len(replayed(sync(15), sync(0, name="b", pods=[]), sync(15))) == 3
    with pytest.raises(RecordingError, match=r"^line 3: time goes backwards for ns/web"):
        replayed(sync(15), sync(0))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"", "line 1: the recording is empty; its first line must be a header"),
        (b"{}\n", "line 1: not the header of a recording: Object missing required field `recording`"),
        (b'{"recording": 2}\n', "line 1: recording version 2 is not supported, only version 1"),
        (b'{"recording": 1, "kubernetes": "1.2"}\n', "line 1: Kubernetes 1.2 is not one of 1.37, 1.38"),
        (json.dumps(sync()).encode(), "line 1: not the header of a recording: Object missing required field"),
    ],
)
def test_headers(header: bytes, message: str) -> None:
    """A recording without a header that we understand is refused."""
    with pytest.raises(RecordingError) as caught:
        list(replay.decisions([header]))
    assert str(caught.value)[: len(message)] == message


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distinct pods and specs without end do not fill the memory."""
    monkeypatch.setattr(replay, "CACHED_PODS", 3)
    monkeypatch.setattr(replay, "CACHED_SPECS", 3)
    reader = replay.Replay(recording.read_header(json.dumps(HEADER).encode()))
    for turn in range(10):
        own = pod(metadata={"name": f"p{turn}", "labels": {"app": "web"}})
        line = sync(turn, pods=[own], hpa=hpa(maxReplicas=10 + turn))
        assert reader.decide_line(json.dumps(line).encode()) is not None
    assert (len(reader._pods), len(reader._specs)) <= (3, 3)


def test_a_damaged_compressed_recording() -> None:
    """The error of the decompression names the last line that could be read."""
    lines = gzip.compress(json.dumps(HEADER).encode() + b"\n" + b"\n" * 5000, mtime=0)
    damaged = lines[:-20] + b"\xff" * 12 + lines[-8:]
    with pytest.raises(RecordingError, match=r"^after line \d+: "):
        list(replay.decisions(gzip.GzipFile(fileobj=io.BytesIO(damaged))))
