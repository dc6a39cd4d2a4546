"""Encodes the lines of a recording: what each sync read, and its results, as JSON.

`podscaler.controller.recording.file_recording` calls `RecordLines.encode` with each report, in order, in its thread.
Invariant: a replay of a file gives the decisions that were taken. A reader derives the history before a sync from the
lines before it; where it cannot (the first line of an autoscaler in a file, or after a lost report), the line contains
the history. A further field: in `podscaler.api.typed.recording`, `_sync_line`, and `podscaler.core.replay`.

Source: docs/recordings.md.
"""

import msgspec

from podscaler.api.machinery import instants, meta
from podscaler.api.typed import recording
from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler, Scale
from podscaler.base.errors import StatusError
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.recording.observed_sync import ObservedSync
from podscaler.controller.recording.recording import SyncRecord, SyncsEnd
from podscaler.core import replay
from podscaler.core.model import history
from podscaler.core.model.history import History
from podscaler.core.model.observation import Failure
from podscaler.kube.informers.cache import Key
from podscaler.metrics.metric_fetching import FetchedMetric


class RecordLines:
    """Makes the lines of reports; remembers the history of each autoscaler that a reader has derived so far."""

    def __init__(self) -> None:
        self._derived_histories: dict[Key, tuple[History, int]] = {}  # with the instant of the last line

    def restart(self) -> None:
        """A new file begins, in which no history is recorded yet."""
        self._derived_histories.clear()

    def encode(self, record: SyncRecord | SyncsEnd) -> bytes:
        """The JSON lines of a report: one, or two where the wall clock was set back; call it in the order of syncs."""
        if isinstance(record, SyncsEnd):
            self._derived_histories.pop(record.key, None)
            return _end_line(record.key, record.at_ns)
        key = record.autoscaler.key
        prior_history, last_at_ns = self._derived_histories.get(key, (history.EMPTY, record.at_ns))
        end_line = b""
        if record.at_ns < last_at_ns:  # the wall clock was set back: the autoscaler begins again
            end_line, prior_history = _end_line(key, record.at_ns), history.EMPTY
        self._derived_histories[key] = record.decision.history, record.at_ns
        return end_line + recording.sync_line(
            _sync_line(record, None if prior_history == record.prior_history else record.prior_history)
        )


def _end_line(key: Key, at_ns: int) -> bytes:
    return recording.deleted_line(instants.exact(at_ns), "/".join(key))


def _sync_line(sync: SyncRecord, prior_history: History | None) -> recording.SyncLine:
    """The line of one sync; `prior_history` is None where the reader can derive it."""
    trace, observation = sync.decision.trace, sync.observed.observation
    overlapping = trace.selection.overlapping if trace.selection else ()
    return recording.SyncLine(
        time=instants.exact(sync.at_ns),
        hpa=_as_hpa(sync.autoscaler),
        scale=_recorded_scale(sync.observed),
        scale_update=_recorded_attempts(sync),
        scaled_at=instants.exact(trace.write.at) if trace.write else "",
        status_update=_error_status(sync.status_error) if sync.status_error else None,
        pods=tuple([msgspec.Raw(pod.trimmed_json) for pod in sync.observed.pods]),
        metrics=tuple([_recorded_metric(fetched) for fetched in sync.observed.fetched_metrics]),
        neighbours=tuple([key for key in overlapping if key != trace.autoscaler]),
        history=None if prior_history is None else replay.write_history(prior_history),
        gone=not observation.is_registered,
    )


def _as_hpa(autoscaler: Autoscaler) -> HorizontalPodAutoscaler:
    """The object as a HorizontalPodAutoscaler, which readers expect; a PodAutoscaler keeps the prefix of its key."""
    name = autoscaler.key[1]
    metadata = (
        autoscaler.metadata if not autoscaler.kind.prefix else msgspec.structs.replace(autoscaler.metadata, name=name)
    )
    return msgspec.structs.replace(
        autoscaler.wire, kind="HorizontalPodAutoscaler", api_version="autoscaling/v2", metadata=metadata
    )


def _recorded_scale(observed_sync: ObservedSync) -> Scale | meta.Status:
    """The target's scale as it was read, or the failure to read it."""
    scale = observed_sync.observation.scale
    if isinstance(scale, Failure):
        return _failure_status(scale)
    return observed_sync.target.scale if observed_sync.target else Scale()


def _recorded_attempts(sync: SyncRecord) -> tuple[Scale | meta.Status, ...]:
    """The results of the attempts to write the scale: each failure, then the scale that was read if one succeeded.

    Empty if none failed: then a reader knows the result by the decision.
    """
    if not sync.scale_errors:
        return ()
    scale_errors = tuple([_error_status(error) for error in sync.scale_errors])
    return scale_errors if sync.decision.replicas is None else (*scale_errors, _recorded_scale(sync.observed))


def _recorded_metric(fetched_metric: FetchedMetric | None) -> recording.RecordedResponse | None:
    """The response to a metric query, or its failure as a Status; None for a metric that was not queried."""
    if fetched_metric is not None and isinstance(fetched_metric.measurement, Failure):
        return _failure_status(fetched_metric.measurement)
    return None if fetched_metric is None else fetched_metric.response


def _error_status(error: StatusError) -> meta.Status:
    return meta.Status("v1", status="Failure", message=error.message, reason=error.reason, code=error.code)


def _failure_status(failure: Failure) -> meta.Status:
    return meta.Status("v1", status="Failure", message=failure.message, reason=failure.reason, code=failure.code)
