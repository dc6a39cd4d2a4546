"""Encodes and decodes the lines of a recording (format version 1): the inputs of each sync, one JSON object a line.

    {"recording":1,"kubernetes":"1.37.0","flags":{}}                     read_header, header_line
    {"time":"2026-01-31T12:00:00Z","hpa":{...},"scale":{...},...}        read_line, sync_line
    {"time":"2026-01-31T12:00:15Z","deleted":"default/web"}              read_line, deleted_line

The controller's recorder writes lines, the replay (`podscaler.core.replay`) reads them and decides the syncs again.
Pods and the autoscaler's spec stay raw JSON: they repeat from line to line, and the reader decodes each distinct text
once. A new input of a sync is an attribute of RecordingLine and SyncLine, with a default for recordings without it.

Source: the format of the decision vectors (docs/recordings.md).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podscaler.api.machinery.meta import ObjectMeta, Status, Wire
from podscaler.api.typed import autoscaling, metrics
from podscaler.base.errors import JSON_DECODE_ERRORS, UsageError

VERSION = 1

RecordedResponse = metrics.PodMetricsList | metrics.MetricValueList | metrics.ExternalMetricValueList | Status
"""The response of a metrics API."""


class RecordingError(UsageError):
    """A line of a recording is invalid; str() is the reason, to which the caller adds the file and line number."""


class RecordingHeader(Wire, frozen=True):
    """The first line.

    Attributes:
        recording: the version of the format.
        kubernetes: the version of Kubernetes as which the controller decided.
        flags: settings of the controller, by their names as flags of kube-controller-manager.
    """

    recording: int
    kubernetes: str = "1.37.0"
    flags: dict[str, Any] = msgspec.field(default_factory=dict)


class RecordedRecommendation(Wire, frozen=True):
    """The replicas that an earlier sync recommended; `time` is RFC 3339."""

    replicas: int
    time: str


class RecordedScaleEvent(Wire, frozen=True):
    """A change of the replicas by an earlier sync; `outdated`: whether it is older than the periods of all policies."""

    change: int
    time: str
    outdated: bool = False


class RecordedProposal(Wire, frozen=True):
    """What a metric proposed when it was read last, when, and the value that status reported."""

    metric: str
    replicas: int
    time: str
    current: autoscaling.MetricValueStatus = autoscaling.MetricValueStatus()


class RecordedHistory(Wire, frozen=True):
    """The recommendations and scale events of earlier syncs, in the order in which the decision holds them.

    Attributes:
        last_proposals: of each metric, where a failure policy keeps them.
        unread_since: when the first of the syncs in a row was that could read no metric; empty: the last one could.
    """

    recommendations: tuple[RecordedRecommendation, ...] = ()
    scale_ups: tuple[RecordedScaleEvent, ...] = ()
    scale_downs: tuple[RecordedScaleEvent, ...] = ()
    last_proposals: tuple[RecordedProposal, ...] = ()
    unread_since: str = ""


class RecordedAutoscaler(Wire, frozen=True):
    """An autoscaler with its spec as raw JSON."""

    metadata: ObjectMeta
    spec: msgspec.Raw
    kind: str = ""
    api_version: str = ""
    status: autoscaling.HorizontalPodAutoscalerStatus = autoscaling.HorizontalPodAutoscalerStatus()


class RecordingLine(Wire, frozen=True):
    """A sync, or the deletion of an autoscaler.

    Attributes:
        time: the start of the sync, RFC 3339.
        hpa: the autoscaler as read; None where `deleted` is set.
        scale: the Scale of the scaled object, or the error of reading it.
        scale_update: the responses to successive attempts to update the Scale.
        scaled_at: the time of the last attempt; empty for the time that replay assumes.
        status_update: the error of writing the status; None if it was written, or had not changed.
        pods: the pods of the namespace, as raw JSON.
        metrics: the response for each of `spec.metrics`, None for a metric without request.
        neighbours: the other autoscalers over the same pods; None for those of the last line that has them.
        history: that before the sync; None for that after the autoscaler's last line.
        gone: whether the autoscaler was deleted during the sync.
        deleted: `namespace/name` of a deleted autoscaler; empty for a sync.
    """

    time: str
    hpa: RecordedAutoscaler | None = None
    scale: autoscaling.Scale | Status | None = None
    scale_update: tuple[autoscaling.Scale | Status | None, ...] | None = None
    scaled_at: str = ""
    status_update: Status | None = None
    pods: tuple[msgspec.Raw, ...] | None = None
    metrics: tuple[RecordedResponse | None, ...] | None = None
    neighbours: tuple[str, ...] | None = None
    history: RecordedHistory | None = None
    gone: bool = False
    deleted: str = ""


class SyncLine(Wire, frozen=True):
    """A sync to be written, with the attributes of RecordingLine."""

    time: str
    hpa: autoscaling.HorizontalPodAutoscaler
    scale: autoscaling.Scale | Status
    scale_update: tuple[autoscaling.Scale | Status, ...] = ()
    scaled_at: str = ""
    status_update: Status | None = None
    pods: tuple[msgspec.Raw, ...] = ()
    metrics: tuple[RecordedResponse | None, ...] = ()
    neighbours: tuple[str, ...] | None = None
    history: RecordedHistory | None = None
    gone: bool = False


_HEADER_DECODER = msgspec.json.Decoder(RecordingHeader)
_LINE_DECODER = msgspec.json.Decoder(RecordingLine)
_ENCODER = msgspec.json.Encoder()
_TOO_DEEP = "the line is nested too deeply"


def read_header(text: bytes) -> RecordingHeader:
    """The header in a recording's first line. Raises RecordingError."""
    try:
        header = _HEADER_DECODER.decode(text)
    except JSON_DECODE_ERRORS as error:
        raise RecordingError(f"not the header of a recording: {error}") from None
    except RecursionError:
        raise RecordingError(_TOO_DEEP) from None
    if header.recording != VERSION:
        raise RecordingError(f"recording version {header.recording} is not supported, only version {VERSION}")
    return header


def read_line(text: bytes) -> RecordingLine:
    """A line after the first one. Raises RecordingError."""
    try:
        line = _LINE_DECODER.decode(text)
    except JSON_DECODE_ERRORS as error:
        raise RecordingError(str(error)) from None
    except RecursionError:
        raise RecordingError(_TOO_DEEP) from None
    if (line.hpa is None) == (not line.deleted):
        raise RecordingError("a line has either `hpa` (a sync) or `deleted` (the end of an autoscaler)")
    return line


def header_line(kubernetes: str, flags: Mapping[str, Any]) -> bytes:
    """The first line of a recording, with its newline."""
    return _ENCODER.encode(RecordingHeader(VERSION, kubernetes, dict(flags))) + b"\n"


def sync_line(line: SyncLine) -> bytes:
    """The line of a sync, with its newline."""
    return _ENCODER.encode(line) + b"\n"


def deleted_line(time: str, key: str) -> bytes:
    """The line of the deletion of the autoscaler `key` (`namespace/name`), with its newline."""
    return _ENCODER.encode({"time": time, "deleted": key}) + b"\n"
