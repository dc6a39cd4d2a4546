"""Reports the outcome of syncs: events, Prometheus metrics, log lines, and the recording.

The reconciler and `podscaler.controller.worker` call the one `SyncReporter`. It decides nothing; no call waits, and
none fails. A new Prometheus metric of syncs: in `podscaler.controller.telemetry.telemetry`, counted in `report_end`.

Source: docs/spec/controller.md 6 (Events) and 8 (Prometheus metrics).
"""

import logging

from podscaler.base.errors import StatusError
from podscaler.controller.coexistence import standby
from podscaler.controller.coexistence.comparison import DecisionComparison
from podscaler.controller.informers import handover
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.reconcile.autoscaler_state import AutoscalerState
from podscaler.controller.reconcile.event_recorder import AutoscalerEventRecorder, Subject
from podscaler.controller.recording.recording import Recording, SyncRecord
from podscaler.controller.telemetry.server_health import ServerHealth
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.core.decision import Action, Decision, Draft, ErrorKind
from podscaler.core.model.trace import MetricStep

log = logging.getLogger(__name__)


class SyncReporter:
    """Reports each sync to events, metrics, log and recording.

    Args:
        telemetry: the Prometheus metrics.
        recorder: writes events.
        recording: records syncs, so that they can be decided again.
        health: decides whether a fault of the API server, which is logged once, explains the errors of syncs.
        comparison: compares decisions in standby with another controller's; None if they are logged.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        recorder: AutoscalerEventRecorder,
        recording: Recording,
        health: ServerHealth,
        comparison: DecisionComparison | None = None,
    ) -> None:
        self._telemetry = telemetry
        self._recorder = recorder
        self._health = health
        self._comparison = comparison
        self._recording = recording

    def report_skipped(self, described: str, lag: str) -> None:
        """A sync was skipped because the cache lacks our last write, as `lag` says."""
        self._telemetry.stale_skip()
        log.debug("%s is skipped: %s", described, lag)

    def report_waiting(self, autoscaler: Autoscaler) -> None:
        """An autoscaler waits for a migration: record the event that `podscaler migrate` waits for."""
        message = handover.waiting_message(autoscaler.metadata.annotations or {})
        self._recorder.record(subject_of(autoscaler), "Normal", handover.WAITING, message)

    def record_events(self, autoscaler: Autoscaler, decision: Decision, *, follow_status: bool) -> None:
        """Record the events of a decision: those before the status is written, or those after."""
        for event in decision.events:
            if event.follows_status is follow_status:
                self._recorder.record(subject_of(autoscaler), event.type, event.reason, event.message)

    def set_desired(self, autoscaler: Autoscaler, decision: Decision) -> None:
        """Set the gauge of desired replicas, where the decision has them."""
        if decision.reached_end:
            self._telemetry.set_desired(autoscaler.key, decision.status.desired_replicas)

    def report_rescaled(self, autoscaler: Autoscaler, draft: Draft) -> None:
        """The scale was written."""
        old_replicas, new_replicas, reason = draft.scale.replicas, draft.desired, draft.reason
        extra = {"from": old_replicas, "to": new_replicas, "reason": reason}
        log.info(
            "%s: rescaled from %d to %d: %s", autoscaler.described, old_replicas, new_replicas, reason, extra=extra
        )

    def report_status_failure(self, autoscaler: Autoscaler, error: StatusError) -> None:
        """The status was not written, and the decision has no error that says so."""
        level = self._health.failure_log_level(logging.WARNING)  # lower while a fault that is logged explains it
        log.log(level, "%s: its status: %s", autoscaler.described, error, extra={"error": str(error)})

    def report_not_carried_out(self, sync: SyncRecord, state: AutoscalerState, reason: str) -> None:
        """A decision is not carried out: log what it would write, or compare it with another controller's status."""
        self.set_desired(sync.autoscaler, sync.decision)
        if self._comparison is not None:
            self._comparison.compare(sync.autoscaler, sync.observed, sync.prior_history, sync.decision)
        elif reason != standby.GONE and state.note_desired(sync.decision.replicas):
            log.info("%s: %s", sync.autoscaler.described, standby.unwritten(sync.decision))
        self.record(sync)

    def record(self, sync: SyncRecord) -> None:
        """Report a sync to the recording."""
        self._recording.report(sync)

    def report_end(self, sync: SyncRecord, state: AutoscalerState, duration_s: float) -> None:
        """A sync ended with a decision: log its error, where it is new, and count it."""
        decision = sync.decision
        self._log_error(sync.autoscaler, state, decision.error)
        self._telemetry.reconciled(decision.action.value, decision.error_kind.value, duration_s)
        for response in decision.trace.combination.responses if decision.trace.combination else ():
            self._telemetry.failure_response(response)
        current_replicas = sync.autoscaler.wire.status.current_replicas
        steps = decision.trace.metrics
        durations_s = sync.observed.durations_s or (0.0,) * len(steps)  # empty if no metric was queried
        for step, query_s in zip(steps, durations_s, strict=False):  # no steps if the decision failed before
            action, error = _metric_outcome(step, current_replicas)
            self._telemetry.metric_computed(action.value, error.value, metric_type=step.type, duration_s=query_s)

    def _log_error(self, autoscaler: Autoscaler, state: AutoscalerState, error: str) -> None:
        """Log an error when it is new, and not while a fault of the API server explains it."""
        if error and self._health.explains_failures:
            self._health.count_failed_sync()
            log.debug("%s: %s", autoscaler.described, error)
        elif state.note_error(error):
            if error:
                log.warning("%s: %s", autoscaler.described, error, extra={"error": error})
            else:
                log.info("%s: works again", autoscaler.described)


def _metric_outcome(step: MetricStep, current_replicas: int) -> tuple[Action, ErrorKind]:
    """The labels of one metric's computation: what it alone would do to the status' replicas, or its kind of error."""
    if step.failure is not None or step.proposal is None:
        is_unknown_type = step.failure is not None and step.failure.reason == "InvalidMetricSourceType"
        return Action.NONE, ErrorKind.SPEC if is_unknown_type else ErrorKind.INTERNAL
    if step.proposal == current_replicas:
        return Action.NONE, ErrorKind.NONE
    return (Action.SCALE_UP if step.proposal > current_replicas else Action.SCALE_DOWN), ErrorKind.NONE


def subject_of(autoscaler: Autoscaler) -> Subject:
    """The autoscaler as the subject of events."""
    meta = autoscaler.metadata
    return Subject(meta.namespace, meta.name, meta.uid, meta.resource_version, autoscaler.kind)
