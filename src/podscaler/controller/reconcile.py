"""One sync of one autoscaler: observe, decide, carry out, report.

The loop calls `Reconciler.reconcile` for an autoscaler whose turn it is. The decision is the core's; here it is carried
out in upstream's order: scale, events, status (only where it changed), the event that follows the status.

Source: decision.md 2, 11.2; controller.md 3.
"""

import logging

from podscaler.controller import status
from podscaler.controller.correlation import Subject
from podscaler.controller.following import Autoscaler, CachedPod
from podscaler.controller.memory import Memory
from podscaler.controller.observe import Observer, Seen
from podscaler.controller.settings import Settings
from podscaler.controller.surroundings import Surroundings
from podscaler.controller.target import Target
from podscaler.core import decide, settle
from podscaler.core.decision import Action, Decision, Draft, ErrorKind
from podscaler.errors import StatusError
from podscaler.kube.cache import Cache, key_of

log = logging.getLogger(__name__)


class Reconciler:
    """See the module.

    Args:
        around: what syncs work with.
        memory: what is remembered between syncs.
        pods: all pods.
        settings: what the flags say.
    """

    def __init__(self, around: Surroundings, memory: Memory, pods: Cache[CachedPod], settings: Settings) -> None:
        self._around = around
        self._memory = memory
        self._flags = settings.decision
        self._observer = Observer(around, memory, pods, self._flags)

    async def reconcile(self, autoscaler: Autoscaler) -> Decision:
        """What was decided and done. Raises nothing that the world may cause: that is in the decision and reported."""
        started_s = self._around.clock.monotonic_s()
        seen = await self._observer.observe(autoscaler)
        decision = await self._carry_out(autoscaler, seen, self._decide(autoscaler, seen))
        error = await self._report(autoscaler, decision) or decision.error
        self._say(autoscaler, error)
        kind = ErrorKind.INTERNAL if error != decision.error else decision.error_kind
        duration_s = self._around.clock.monotonic_s() - started_s
        self._around.telemetry.reconciled(decision.action.value, kind.value, duration_s)
        self._count_metrics(autoscaler, seen, decision)
        return decision

    def _say(self, autoscaler: Autoscaler, error: str) -> None:
        """Log an error when it is news, not at every sync."""
        if self._memory.is_news(key_of(autoscaler), error):
            if error:
                log.warning("horizontalpodautoscaler %s: %s", autoscaler.spec.key, error)
            else:
                log.info("horizontalpodautoscaler %s: works again", autoscaler.spec.key)

    def _decide(self, autoscaler: Autoscaler, seen: Seen) -> Decision:
        past = self._memory.history(key_of(autoscaler))
        return decide.decide(autoscaler.spec, seen.observation, past, self._around.clock.now_ns(), self._flags)

    async def _carry_out(self, autoscaler: Autoscaler, seen: Seen, decision: Decision) -> Decision:
        """Write the scale, and remember; the decision as it turned out."""
        key = key_of(autoscaler)
        if decision.selector is not None:
            self._memory.keep_selector(key, decision.selector)
        if decision.draft is not None and seen.target is not None:
            self._memory.keep_history(key, decision.draft.past)
            decision = await self._rescale(decision.draft, seen.target)
        self._memory.keep_history(key, decision.history)
        return decision

    async def _rescale(self, draft: Draft, target: Target) -> Decision:
        try:
            await self._around.targets.write(target, draft.desired)
        except StatusError as error:
            return settle.refused(draft, self._around.clock.now_ns(), error.message)
        log.info(
            "horizontalpodautoscaler %s: rescaled from %d to %d: %s",
            draft.spec.key,
            draft.scale.replicas,
            draft.desired,
            draft.reason,
        )
        return settle.written(draft, self._around.clock.now_ns())

    async def _report(self, autoscaler: Autoscaler, decision: Decision) -> str:
        """Events, gauge and status; the error of a status that was not written, if that is the sync's, else empty."""
        subject = _subject(autoscaler)
        self._record(subject, decision, follows_status=False)
        if decision.reached_end:
            self._around.telemetry.desired(key_of(autoscaler), decision.status.desired_replicas)
        error = await self._write_status(autoscaler, subject, decision)
        self._record(subject, decision, follows_status=True)
        if error and not decision.reached_end:
            log.warning("horizontalpodautoscaler %s: %s", autoscaler.spec.key, error)
            return ""
        return error

    async def _write_status(self, autoscaler: Autoscaler, subject: Subject, decision: Decision) -> str:
        if status.is_same(autoscaler.wire.status, decision.status):
            return ""
        try:
            version = await status.write(self._around.client, autoscaler.wire, decision.status)
        except StatusError as error:
            self._around.recorder.record(subject, "Warning", "FailedUpdateStatus", error.message)
            return f"failed to update status for {autoscaler.metadata.name}: {error}"
        self._memory.versions.wrote(key_of(autoscaler), autoscaler.metadata.uid, version)
        return ""

    def _record(self, subject: Subject, decision: Decision, *, follows_status: bool) -> None:
        for event in decision.events:
            if event.follows_status is follows_status:
                self._around.recorder.record(subject, event.type, event.reason, event.message)

    def _count_metrics(self, autoscaler: Autoscaler, seen: Seen, decision: Decision) -> None:
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


def _subject(autoscaler: Autoscaler) -> Subject:
    meta = autoscaler.metadata
    return Subject(meta.namespace, meta.name, meta.uid, meta.resource_version)
