"""The recording format, version 1: what each sync of each autoscaler saw, one JSON object a line.

Read by the replay, written by the recorder of the controller. This module is the codec of single lines; what a
recording means is `podscaler.core.replay`'s.

A line is typed on the outside only: pods and the autoscaler's spec stay raw JSON, because they repeat from line to line
and the reader decodes each distinct text once.

Source: the format of the decision vectors (docs/recordings.md).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podscaler.api.machinery.meta import ObjectMeta, Status, Wire
from podscaler.api.typed import autoscaling, metrics
from podscaler.base.errors import UsageError

VERSION = 1

Answer = metrics.PodMetricsList | metrics.MetricValueList | metrics.ExternalMetricValueList | Status


class RecordingError(UsageError):
    """A line of a recording cannot be used; str() says why, the caller adds the file and the line's number."""


class RecordingHeader(Wire, frozen=True):
    """The first line.

    Attributes:
        recording: the version of the format.
        kubernetes: the version whose behaviour is meant.
        flags: controller settings by their kube-controller-manager names.
    """

    recording: int
    kubernetes: str = "1.37.0"
    flags: dict[str, Any] = msgspec.field(default_factory=dict)


class RecordedRecommendation(Wire, frozen=True):
    """What an earlier sync wanted, and when."""

    replicas: int
    time: str


class RecordedScaleEvent(Wire, frozen=True):
    """A change that an earlier sync made, and when; `outdated` where all policies have forgotten it."""

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
    """What is remembered of an autoscaler, in the order of the slots.

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
    """A sync, or the end of an autoscaler.

    Attributes:
        time: when the sync began, RFC 3339.
        hpa: the autoscaler as read; absent where `deleted` is set.
        scale: of its target, or why it could not be read.
        scale_update: the responses to successive attempts to update the scale.
        scaled_at: when the last response came; empty: the time that the attempts take by convention.
        status_update: why the status could not be written; None where it was, or did not have to be.
        pods: pods of the namespace, raw.
        metrics: one response for each of `spec.metrics`, None where there was no request.
        neighbours: the other autoscalers over the same pods; None: those of earlier lines.
        history: what was remembered before; None: what the line before left.
        gone: whether the autoscaler was deleted while the sync went on.
        deleted: `namespace/name` of an autoscaler that is gone.
    """

    time: str
    hpa: RecordedAutoscaler | None = None
    scale: autoscaling.Scale | Status | None = None
    scale_update: tuple[autoscaling.Scale | Status | None, ...] | None = None
    scaled_at: str = ""
    status_update: Status | None = None
    pods: tuple[msgspec.Raw, ...] | None = None
    metrics: tuple[Answer | None, ...] | None = None
    neighbours: tuple[str, ...] | None = None
    history: RecordedHistory | None = None
    gone: bool = False
    deleted: str = ""


class SyncLine(Wire, frozen=True):
    """A sync to be written: as `RecordingLine`, with the whole autoscaler; pods are texts of trimmed objects."""

    time: str
    hpa: autoscaling.HorizontalPodAutoscaler
    scale: autoscaling.Scale | Status
    scale_update: tuple[autoscaling.Scale | Status, ...] = ()
    scaled_at: str = ""
    status_update: Status | None = None
    pods: tuple[msgspec.Raw, ...] = ()
    metrics: tuple[Answer | None, ...] = ()
    neighbours: tuple[str, ...] | None = None
    history: RecordedHistory | None = None
    gone: bool = False


_HEADER = msgspec.json.Decoder(RecordingHeader)
_LINE = msgspec.json.Decoder(RecordingLine)
_ENCODER = msgspec.json.Encoder()
_TOO_DEEP = "the line is nested too deeply"


def read_header(text: bytes) -> RecordingHeader:
    """The header in a recording's first line. Raises RecordingError."""
    try:
        header = _HEADER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingError(f"not the header of a recording: {error}") from None
    except RecursionError:
        raise RecordingError(_TOO_DEEP) from None
    if header.recording != VERSION:
        raise RecordingError(f"recording version {header.recording} is not supported, only version {VERSION}")
    return header


def read_line(text: bytes) -> RecordingLine:
    """Any other line. Raises RecordingError."""
    try:
        line = _LINE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingError(str(error)) from None
    except RecursionError:
        raise RecordingError(_TOO_DEEP) from None
    if (line.hpa is None) == (not line.deleted):
        raise RecordingError("a line has either `hpa` (a sync) or `deleted` (the end of an autoscaler)")
    return line


def header_line(kubernetes: str, flags: Mapping[str, Any]) -> bytes:
    """A header, with its newline."""
    return _ENCODER.encode(RecordingHeader(VERSION, kubernetes, dict(flags))) + b"\n"


def sync_line(line: SyncLine) -> bytes:
    """A sync, with its newline."""
    return _ENCODER.encode(line) + b"\n"


def deleted_line(time: str, key: str) -> bytes:
    """The end of the autoscaler `key`, with its newline."""
    return _ENCODER.encode({"time": time, "deleted": key}) + b"\n"
