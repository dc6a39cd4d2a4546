"""One sync of one autoscaler: observe, decide, carry out, report.

The loop calls `AutoscalerReconciler.reconcile` for an autoscaler whose turn it is. The decision is the core's; here it
is carried out in upstream's order: scale, events, status (only where it changed), the event that follows the status.

Source: docs/spec/decision.md 2 (Reconcile in order), 11.2 (Writing); docs/spec/controller.md 3 (Processing one key).
"""

import logging
from collections.abc import Sequence

from podscaler.base.errors import PodscalerError, StatusError
from podscaler.controller.coexistence import standby_messages
from podscaler.controller.coexistence.standby import GONE
from podscaler.controller.history.store import Latest
from podscaler.controller.informers import handover
from podscaler.controller.informers.observed_objects import Autoscaler, CachedPod
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.reconcile import status
from podscaler.controller.reconcile.events import Subject
from podscaler.controller.reconcile.observe import Observer
from podscaler.controller.reconcile.state import Memory
from podscaler.controller.reconcile.surroundings import Surroundings
from podscaler.controller.recording.observed import ObservedSync
from podscaler.controller.recording.recording import SyncRecord
from podscaler.controller.scales.target import ScaleTarget
from podscaler.core import decide, settle
from podscaler.core.decision import Action, Decision, Draft, ErrorKind
from podscaler.core.model.history import History
from podscaler.core.model.model import Scale
from podscaler.kube.client.client import is_conflict
from podscaler.kube.informers.cache import Cache, Key

log = logging.getLogger(__name__)


class Outdated(PodscalerError):
    """The autoscaler was edited, or may not be written about any more, since its sync began; it is to be synced again.

    The sync ends without writing anything more.
    """


class AutoscalerReconciler:
    """See the module.

    Args:
        around: what syncs work with.
        memory: what is remembered between syncs.
        pods: all pods.
        settings: what the flags say.
    """

    def __init__(
        self, around: Surroundings, memory: Memory, pods: Cache[CachedPod], settings: ControllerSettings
    ) -> None:
        self._around = around
        self._memory = memory
        self._flags = settings.decision
        self._status_period_s = settings.status_period_s
        self._observer = Observer(around, memory, pods, self._flags)

    async def reconcile(self, autoscaler: Autoscaler) -> Decision:
        """What was decided and done.

        Raises Outdated where the spec has changed since, and nothing else that the world may cause: that is in the
        decision and reported.

        Differs: upstream carries out what it decided by the spec that it began with.
        """
        clock = self._around.clock
        started_s = clock.monotonic_s()
        await self._recall(autoscaler)
        seen = await self._observer.observe(autoscaler)
        self._ensure_latest(autoscaler)
        now_ns = clock.now_ns()
        self._memory.follow_clock(now_ns, clock.monotonic_s())
        past = self._past(autoscaler, seen, now_ns)
        decision = decide.decide(autoscaler.spec, seen.observation, past, now_ns, self._flags)
        has_change = decision.replicas is not None or not status.is_same(autoscaler.wire.status, decision.status)
        if obstacle := self._around.standing.obstacle(autoscaler, has_change=has_change):
            self._stand_by(autoscaler, seen, decision)
            self._say_standing(autoscaler, seen, past, decision, obstacle=obstacle)
            self._around.recording.report(SyncRecord(now_ns, autoscaler, seen, past, decision))
        else:
            decision = await self._act(autoscaler, seen, past, decision)
        self._say(autoscaler, decision.error)
        duration_s = clock.monotonic_s() - started_s
        self._around.telemetry.reconciled(decision.action.value, decision.error_kind.value, duration_s)
        self._count_metrics(autoscaler, seen, decision)
        return decision

    async def _act(self, autoscaler: Autoscaler, seen: ObservedSync, past: History, decision: Decision) -> Decision:
        """Carry out and report what was decided; the decision as it turned out."""
        now_ns = decision.trace.now
        self._memory.act(autoscaler.key)
        decision, refusals = await self._carry_out(autoscaler, seen, decision)
        self._archive(autoscaler, seen, decision, now_ns)
        decision, status_refusal = await self._report(autoscaler, decision)
        self._around.recording.report(SyncRecord(now_ns, autoscaler, seen, past, decision, refusals, status_refusal))
        return decision

    def _stand_by(self, autoscaler: Autoscaler, seen: ObservedSync, decision: Decision) -> None:
        """Remember what was decided, and what others did, so that going on takes up where they stop; tell no more."""
        key, scale = autoscaler.key, seen.observation.scale
        if decision.selector is not None:
            self._memory.keep_selector(key, decision.selector)
        past = decision.history if decision.draft is None else decision.draft.past
        if isinstance(scale, Scale):
            change = self._memory.stand_at(key, scale.replicas)
            past = settle.with_change(autoscaler.spec, past, change, decision.trace.now)
        self._memory.keep_history(key, past)
        if decision.reached_end:
            self._around.telemetry.desired(key, decision.status.desired_replicas)

    def _say_standing(
        self, autoscaler: Autoscaler, seen: ObservedSync, past: History, decision: Decision, *, obstacle: str
    ) -> None:
        """Tell what would have been done where that is news, or what another did instead."""
        if self._around.comparison is not None:
            self._around.comparison.judge(autoscaler, seen, past, decision)
        elif obstacle != GONE and self._memory.is_new_wish(autoscaler.key, decision.replicas):
            log.info("%s: %s", autoscaler.described, standby_messages.of(decision))

    def _ensure_latest(self, autoscaler: Autoscaler) -> None:
        """Raise Outdated where another spec is known by now. Servers of old count no generations."""
        latest = self._around.find_latest(autoscaler.key)
        if latest is None or latest is autoscaler:
            return
        if latest.metadata.uid != autoscaler.metadata.uid or latest.wire.spec != autoscaler.wire.spec:
            raise Outdated(f"{autoscaler.described} was edited while it was synced: it is synced again")

    async def _recall(self, autoscaler: Autoscaler) -> None:
        """Learn what an earlier process remembered; where that cannot be known now, the next sync asks again."""
        key = autoscaler.key
        if self._memory.is_recalled(key):
            return
        try:
            found = await self._around.archive.find(key, autoscaler.metadata.uid)
            if found is None:
                found = handover.find_history(autoscaler.metadata, self._around.clock.now_ns())
            self._memory.recall(key, found)
        except StatusError as error:
            log.debug("%s: its kept history: %s", autoscaler.described, error)

    def _past(self, autoscaler: Autoscaler, seen: ObservedSync, now_ns: int) -> History:
        key, scale = autoscaler.key, seen.observation.scale
        if isinstance(scale, Scale):
            has_behavior = autoscaler.spec.behavior is not None
            self._memory.resume(key, scale.replicas, now_ns, has_behavior=has_behavior)
        return self._memory.history(key)

    def _archive(self, autoscaler: Autoscaler, seen: ObservedSync, decision: Decision, now_ns: int) -> None:
        """Have what this sync left kept for later processes."""
        key, scale = autoscaler.key, seen.observation.scale
        if isinstance(scale, Scale) and self._memory.is_recalled(key):
            replicas = scale.replicas if decision.replicas is None else decision.replicas
            latest = Latest(autoscaler.metadata.uid, decision.history, replicas, now_ns)
            self._around.archive.keep(key, latest)

    async def _store(self, autoscaler: Autoscaler, draft: Draft) -> None:
        """Have what a rescale will leave kept before it is written: whoever goes on after a kill knows of it."""
        if not self._memory.is_recalled(autoscaler.key):
            return
        before, after, now_ns = draft.scale.replicas, draft.desired, draft.now
        history = settle.with_change(draft.spec, draft.past, after - before, now_ns)
        latest = Latest(autoscaler.metadata.uid, history, after, now_ns, rescaled_from=before)
        await self._around.archive.store(autoscaler.key, latest)

    def _say(self, autoscaler: Autoscaler, error: str) -> None:
        """Log an error when it is news, not at every sync, and not where all syncs fail alike."""
        if error and self._around.health.explains_failures:
            self._around.health.count_sync()
            log.debug("%s: %s", autoscaler.described, error)
            return
        if self._memory.is_news(autoscaler.key, error):
            if error:
                log.warning("%s: %s", autoscaler.described, error, extra={"error": error})
            else:
                log.info("%s: works again", autoscaler.described)

    async def _carry_out(
        self, autoscaler: Autoscaler, seen: ObservedSync, decision: Decision
    ) -> tuple[Decision, Sequence[StatusError]]:
        """Write the scale, and remember; the decision as it turned out, and the failed attempts to write."""
        key = autoscaler.key
        refusals: Sequence[StatusError] = ()
        if decision.selector is not None:
            self._memory.keep_selector(key, decision.selector)
        if decision.draft is not None and seen.target is not None:
            self._memory.keep_history(key, decision.draft.past)
            decision, refusals = await self._rescale(autoscaler, decision.draft, seen.target)
        self._memory.keep_history(key, decision.history)
        return decision, refusals

    async def _rescale(
        self, autoscaler: Autoscaler, draft: Draft, target: ScaleTarget
    ) -> tuple[Decision, Sequence[StatusError]]:
        await self._store(autoscaler, draft)
        self._ensure_latest(autoscaler)
        if obstacle := self._around.standing.obstacle(autoscaler, has_change=True):
            raise Outdated(f"{autoscaler.described} is not rescaled: {obstacle}")
        written = await self._around.writer.write_scale(target, draft.desired)
        now_ns = self._around.clock.now_ns()
        if not written.is_done:
            self._note(autoscaler.key, written.refusals[-1])
            return settle.refused(draft, now_ns, written.refusals[-1].message), written.refusals
        log.info(
            "%s: rescaled from %d to %d: %s",
            autoscaler.described,
            draft.scale.replicas,
            draft.desired,
            draft.reason,
            extra={"from": draft.scale.replicas, "to": draft.desired, "reason": draft.reason},
        )
        return settle.written(draft, now_ns), written.refusals

    async def _report(self, autoscaler: Autoscaler, decision: Decision) -> tuple[Decision, StatusError | None]:
        """Events, gauge and status; the decision as it turned out, and why the status was not written."""
        subject = subject_of(autoscaler)
        self._record(subject, decision, follows_status=False)
        if decision.reached_end:
            self._around.telemetry.desired(autoscaler.key, decision.status.desired_replicas)
        refusal = await self._write_status(autoscaler, decision)
        if refusal is not None:
            name, before = autoscaler.metadata.name, autoscaler.wire.status
            decision = settle.unreported(decision, before, name, refusal.message)
            if not decision.reached_end:
                level = self._around.health.level(logging.WARNING)
                log.log(level, "%s: its status: %s", autoscaler.described, refusal, extra={"error": str(refusal)})
        self._record(subject, decision, follows_status=True)
        return decision, refusal

    async def _write_status(self, autoscaler: Autoscaler, decision: Decision) -> StatusError | None:
        """Write it if it says something new; why it was refused, if it was."""
        key = autoscaler.key
        if status.is_same(autoscaler.wire.status, decision.status) or self._can_wait(key, autoscaler, decision):
            return None
        try:
            version = await self._around.writer.write_status(autoscaler, decision.status)
        except StatusError as error:
            self._note(key, error)
            return error
        self._memory.versions.wrote(key, autoscaler.metadata.uid, version)
        self._memory.keep_report(key, self._around.clock.monotonic_s(), self._status_period_s)
        return None

    def _note(self, key: Key, refusal: StatusError) -> None:
        """A write of this turn failed: without an answer, or with a conflict after that, another turn may come soon."""
        if refusal.code == 0:
            self._memory.early.miss(key)
        elif is_conflict(refusal):
            self._memory.early.miss_again(key)

    def _can_wait(self, key: Key, autoscaler: Autoscaler, decision: Decision) -> bool:
        """Whether the status has nothing new but values of metrics, and was written less than `--status-period` ago."""
        written_s = self._memory.find_report(key) if self._status_period_s else None
        if written_s is None or self._around.clock.monotonic_s() - written_s >= self._status_period_s:
            return False
        return status.differs_in_values(autoscaler.wire.status, decision.status)

    def _record(self, subject: Subject, decision: Decision, *, follows_status: bool) -> None:
        for event in decision.events:
            if event.follows_status is follows_status:
                self._around.recorder.record(subject, event.type, event.reason, event.message)

    def _count_metrics(self, autoscaler: Autoscaler, seen: ObservedSync, decision: Decision) -> None:
        before = autoscaler.wire.status.current_replicas
        for index, step in enumerate(decision.trace.metrics):
            duration_s = seen.durations_s[index] if index < len(seen.durations_s) else 0.0
            action, error = Action.NONE, ErrorKind.NONE
            if step.failure is not None or step.proposal is None:
                is_unknown = step.failure is not None and step.failure.reason == "InvalidMetricSourceType"
                error = ErrorKind.SPEC if is_unknown else ErrorKind.INTERNAL
            elif step.proposal != before:
                action = Action.SCALE_UP if step.proposal > before else Action.SCALE_DOWN
            self._around.telemetry.metric_computed(
                action.value, error.value, metric_type=step.type, duration_s=duration_s
            )


def subject_of(autoscaler: Autoscaler) -> Subject:
    """What events about the autoscaler are about."""
    meta = autoscaler.metadata
    return Subject(meta.namespace, meta.name, meta.uid, meta.resource_version, autoscaler.kind)
