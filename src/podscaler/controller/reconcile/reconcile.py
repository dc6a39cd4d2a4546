"""Runs one sync of one autoscaler: observes, decides, writes, and reports.

The worker calls `AutoscalerReconciler.reconcile`. `podscaler.core.decide` decides; this module carries the decision out
in the order of `reconcileAutoscaler` of kube-controller-manager: scale, events, status (only where it changed), the
events that follow the status. Something new that a sync writes: a part of SyncWrites, used in `_carry_out`, and an
argument in `podscaler.controller.assembly`.

Source: docs/spec/decision.md 2 (Reconcile in order), 11.2 (Writing); docs/spec/controller.md 3 (Processing one key).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podscaler.base.clock import Clock
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.controller.coexistence.standby import WriteGate
from podscaler.controller.history.store import HistorySnapshot, HistoryStore
from podscaler.controller.informers import handover
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.scale_client import ScaleClient, ScaleTarget
from podscaler.controller.reconcile import status_writer
from podscaler.controller.reconcile.autoscaler_state import AutoscalerState, AutoscalerStates
from podscaler.controller.reconcile.observer import Observer
from podscaler.controller.reconcile.status_writer import StatusWriter
from podscaler.controller.reconcile.sync_reporter import SyncReporter
from podscaler.controller.recording.observed_sync import ObservedSync
from podscaler.controller.recording.recording import SyncRecord
from podscaler.core import decide, settle
from podscaler.core.decision import Decision, Draft
from podscaler.core.model.history import History
from podscaler.core.model.observation import Scale
from podscaler.core.model.settings import Settings
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)


class Outdated(PodscalerError):
    """The autoscaler was edited, or may not be written any more, since its sync began, which ends and is repeated."""


@dataclass(frozen=True, slots=True)
class SyncWrites:
    """The parts that write the results of a sync.

    Attributes:
        gate: decides whether anything may be written.
        find_latest: returns the autoscaler as the cache has it now; None if it was deleted.
        scales: writes the scale of the target.
        statuses: writes the status of the autoscaler.
        history: stores histories for later processes; a rescale is stored before it is written.
    """

    gate: WriteGate
    find_latest: Callable[[Key], Autoscaler | None]
    scales: ScaleClient
    statuses: StatusWriter
    history: HistoryStore


class AutoscalerReconciler:
    """Executes syncs of autoscalers.

    Args:
        observer: reads what the decision needs.
        states: the state of each autoscaler between syncs.
        writes: writes the results.
        reporter: reports the results.
        flags: the settings of decisions.
    """

    def __init__(
        self,
        observer: Observer,
        states: AutoscalerStates,
        *,
        writes: SyncWrites,
        reporter: SyncReporter,
        clock: Clock,
        flags: Settings,
    ) -> None:
        self._observer = observer
        self._states = states
        self._writes = writes
        self._reporter = reporter
        self._clock = clock
        self._flags = flags

    async def reconcile(self, autoscaler: Autoscaler) -> Decision:
        """Sync the autoscaler; the decision with the results of its writes. Failures of requests are part of it.

        Raises Outdated if the autoscaler was edited, or may not be rescaled any more, and LeadershipLost where the
        write lease ended.

        Differs: kube-controller-manager carries out what it decided by the spec that it began with.
        """
        clock, state = self._clock, self._states.of(autoscaler.key)
        started_s = clock.monotonic_s()
        await self._restore_history(autoscaler, state)
        observed_sync = await self._observer.observe(autoscaler)
        self._ensure_latest(autoscaler)
        now_ns, scale = clock.now_ns(), observed_sync.observation.scale
        self._states.follow_clock(now_ns, clock.monotonic_s())
        if isinstance(scale, Scale):
            state.add_restored(scale.replicas, now_ns, has_behavior=autoscaler.spec.behavior is not None)
        prior_history = state.history
        decision = decide.decide(autoscaler.spec, observed_sync.observation, prior_history, now_ns, self._flags)
        has_change = decision.replicas is not None or not status_writer.is_same(autoscaler.wire.status, decision.status)
        if reason := self._writes.gate.block_reason(autoscaler, has_change=has_change):
            self._stand_by(autoscaler, observed_sync, decision)
            sync = SyncRecord(now_ns, autoscaler, observed_sync, prior_history, decision, is_carried_out=False)
            self._reporter.report_not_carried_out(sync, state, reason)
        else:
            sync = await self._carry_out(autoscaler, observed_sync, prior_history, decision)
        self._reporter.report_end(sync, state, clock.monotonic_s() - started_s)
        return sync.decision

    async def _carry_out(
        self, autoscaler: Autoscaler, observed_sync: ObservedSync, prior_history: History, decision: Decision
    ) -> SyncRecord:
        """Carry out and report a decision; returns the sync with the results of its writes. Raises Outdated."""
        now_ns, state = decision.trace.now, self._states.of(autoscaler.key)
        state.leave_standby()
        decision, errors = await self._write_scale(autoscaler, observed_sync, decision)
        self._keep_history(autoscaler, observed_sync, decision)
        self._reporter.record_events(autoscaler, decision, follow_status=False)
        self._reporter.set_desired(autoscaler, decision)
        status_error = await self._writes.statuses.write(autoscaler, decision.status, state)
        if status_error is not None:
            name, stored_status = autoscaler.metadata.name, autoscaler.wire.status
            decision = settle.unreported(decision, stored_status, name, status_error.message)
            if not decision.reached_end:
                self._reporter.report_status_failure(autoscaler, status_error)
        self._reporter.record_events(autoscaler, decision, follow_status=True)
        sync = SyncRecord(
            at_ns=now_ns,
            autoscaler=autoscaler,
            observed=observed_sync,
            prior_history=prior_history,
            decision=decision,
            scale_errors=errors,
            status_error=status_error,
        )
        self._reporter.record(sync)
        return sync

    def _stand_by(self, autoscaler: Autoscaler, observed_sync: ObservedSync, decision: Decision) -> None:
        """Add the recommendation, and rescales by others, to the history that the first sync that writes needs."""
        state, scale = self._states.of(autoscaler.key), observed_sync.observation.scale
        if decision.selector is not None:
            self._states.keep_selector(state, decision.selector)
        prior_history = decision.history if decision.draft is None else decision.draft.prior_history
        if isinstance(scale, Scale):
            change = state.take_standby_change(scale.replicas)
            prior_history = settle.with_change(autoscaler.spec, prior_history, change, decision.trace.now)
        state.history = prior_history

    def _ensure_latest(self, autoscaler: Autoscaler) -> None:
        """Raise Outdated if the cache has another spec; old API servers set no generation that could be compared."""
        latest = self._writes.find_latest(autoscaler.key)
        if latest is None or latest is autoscaler:
            return
        is_same = latest.metadata.uid == autoscaler.metadata.uid and latest.wire.spec == autoscaler.wire.spec
        if not is_same or latest.spec.failure_policy != autoscaler.spec.failure_policy:
            raise Outdated(f"{autoscaler.described} was edited while it was synced: it is synced again")

    async def _restore_history(self, autoscaler: Autoscaler, state: AutoscalerState) -> None:
        """Load the history that an earlier process stored, or a migration; where it cannot be read, try again later."""
        if state.was_history_sought:
            return
        try:
            restored = await self._writes.history.find(autoscaler.key, autoscaler.metadata.uid)
            if restored is None:
                restored = handover.find_history(autoscaler.metadata, self._clock.now_ns())
            state.set_restored(restored)
        except StatusError as error:
            log.debug("%s: its kept history: %s", autoscaler.described, error)

    def _keep_history(self, autoscaler: Autoscaler, observed_sync: ObservedSync, decision: Decision) -> None:
        """Have the history after this sync stored for later processes."""
        scale = observed_sync.observation.scale
        if isinstance(scale, Scale) and self._states.of(autoscaler.key).was_history_sought:
            replicas = scale.replicas if decision.replicas is None else decision.replicas
            snapshot = HistorySnapshot(autoscaler.metadata.uid, decision.history, replicas, decision.trace.now)
            self._writes.history.keep(autoscaler.key, snapshot)

    async def _store_rescale(self, autoscaler: Autoscaler, draft: Draft) -> None:
        """Store the history as after the rescale, before the scale is written: the process may be killed after that."""
        if not self._states.of(autoscaler.key).was_history_sought:
            return
        old_replicas, new_replicas, now_ns = draft.scale.replicas, draft.desired, draft.now_ns
        history = settle.with_change(draft.spec, draft.prior_history, new_replicas - old_replicas, now_ns)
        snapshot = HistorySnapshot(autoscaler.metadata.uid, history, new_replicas, now_ns, rescaled_from=old_replicas)
        await self._writes.history.store(autoscaler.key, snapshot)

    async def _write_scale(
        self, autoscaler: Autoscaler, observed_sync: ObservedSync, decision: Decision
    ) -> tuple[Decision, Sequence[StatusError]]:
        """Write the scale if the decision has a draft, and keep the selector and the history for later syncs.

        Returns the decision with the result of the write, and the errors of failed attempts. Raises Outdated.
        """
        state = self._states.of(autoscaler.key)
        errors: Sequence[StatusError] = ()
        if decision.selector is not None:
            self._states.keep_selector(state, decision.selector)
        if decision.draft is not None and observed_sync.target is not None:
            state.history = decision.draft.prior_history  # also if the sync ends here: the recommendation counts
            decision, errors = await self._write_draft(autoscaler, decision.draft, observed_sync.target)
        state.history = decision.history
        return decision, errors

    async def _write_draft(
        self, autoscaler: Autoscaler, draft: Draft, target: ScaleTarget
    ) -> tuple[Decision, Sequence[StatusError]]:
        """Write the replicas of a draft; the settled decision, and the errors of failed attempts. Raises Outdated."""
        await self._store_rescale(autoscaler, draft)
        self._ensure_latest(autoscaler)
        if reason := self._writes.gate.block_reason(autoscaler, has_change=True):
            raise Outdated(f"{autoscaler.described} is not rescaled: {reason}")
        write_result = await self._writes.scales.write(target, draft.desired)
        now_ns = self._clock.now_ns()
        if not write_result.is_done:
            self._states.of(autoscaler.key).note_failed_write(write_result.errors[-1])
            return settle.refused(draft, now_ns, write_result.errors[-1].message), write_result.errors
        self._reporter.report_rescaled(autoscaler, draft)
        return settle.written(draft, now_ns), write_result.errors
