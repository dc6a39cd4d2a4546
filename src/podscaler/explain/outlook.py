"""Predicts the next change of a count that is held back, if the proposal of the metrics stays the same.

Called by `explained`. Theory of operation: the trace holds the history of the next syncs (recommendations, scale events
and their instants), the windows and the periods. Only at the instants at which an entry leaves a window or a period can
the outcome change. The stages of the decision are run for these instants in order, until one has another count.

The controller acts at its first sync after that instant. A new limit of decisions: its stage in
`_FutureSyncs.replicas`, and the instants at which its result may change in `_FutureSyncs.instants`.

Source: docs/spec/decision.md 8 (Normalisation without behavior) to 10 (Scale-event history).
"""

from collections.abc import Iterable

from podscaler.core.limits import bounds, stabilization
from podscaler.core.limits.policies import PolicyFacts
from podscaler.core.model import emulation
from podscaler.core.model.history import History, Recommendation, ScaleEvent
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Cooldown, Limits, Stabilization, Step, Trace

NEXT_SYNC_NS = 1
"""The offset from the decision's instant that stands for the next sync, whose instant is not known."""


class Outlook(Step, frozen=True, gc=False):
    """The earliest change of a count.

    Attributes:
        at: its instant in ns; the instant of the decision itself stands for the next sync.
        replicas: the count after the change.
    """

    at: int
    replicas: int


def of(trace: Trace) -> Outlook | None:
    """The earliest change of a count that is held back; None if it is not held back, or time changes nothing."""
    step, limits, cooldown = trace.stabilization, trace.limits, trace.cooldown
    if step is None or limits is None or trace.is_lifted:
        return None
    if cooldown is not None and cooldown.held is not None:
        return _after_cooldown(Outlook(trace.now, cooldown.held), trace, cooldown)
    if limits.result == step.proposal:
        return None
    future_syncs = _FutureSyncs(trace, step, limits)
    for at in sorted({trace.now + NEXT_SYNC_NS, *future_syncs.instants()}):
        replicas = future_syncs.replicas(at)
        if replicas != future_syncs.current:
            is_next_sync = at == trace.now + NEXT_SYNC_NS
            change = Outlook(trace.now if is_next_sync else at, replicas)
            return change if cooldown is None else _after_cooldown(change, trace, cooldown)
    return None


def _after_cooldown(change: Outlook, trace: Trace, cooldown: Cooldown) -> Outlook:
    """The change, delayed to the end of the cooldown after this decision's rescale or the last one."""
    is_written = trace.write is not None and not trace.write.error
    scaled_at = trace.now if is_written else cooldown.scaled_at
    current = trace.desired if is_written else trace.current_replicas
    delay_ns = cooldown.up_delay_ns if change.replicas > (current or 0) else cooldown.down_delay_ns
    if scaled_at is None or not delay_ns:
        return change
    return Outlook(max(change.at, scaled_at + delay_ns), change.replicas)


class _FutureSyncs:
    """The counts that following syncs decide, if the metrics propose the same."""

    def __init__(self, trace: Trace, step: Stabilization, limits: Limits) -> None:
        self._trace = trace
        self._step = step
        self._down_window_ns = trace.now - step.down_cutoff
        self._up_window_ns = 0 if step.up_cutoff is None else trace.now - step.up_cutoff
        self._recommendations = (*step.recommendations, Recommendation(step.proposal, trace.now))
        self._history = _history_after(trace, limits)
        self._spec = _spec_of(trace)
        is_written = trace.write is not None and not trace.write.error
        self.current = limits.result if is_written else trace.current_replicas or 0

    def instants(self) -> Iterable[int]:
        """The instants from now on at which an entry leaves a window or a period."""
        return (at for at in (*self._ends_of_windows(), *self._ends_of_periods()) if at > self._trace.now)

    def _ends_of_windows(self) -> Iterable[int]:
        """Without behavior a recommendation counts at the end of the window too, with behavior it does not."""
        still_counts_ns = 1 if self._trace.behavior is None else 0
        for recommendation in self._step.recommendations:
            yield recommendation.at + self._down_window_ns + still_counts_ns
            yield recommendation.at + self._up_window_ns

    def _ends_of_periods(self) -> Iterable[int]:
        """The instants at which a scale event leaves the period of a policy."""
        behavior = self._trace.behavior
        periods_ns = (
            {policy.period_ns for rules in (behavior.up, behavior.down) for policy in rules.policies}
            if behavior
            else ()
        )
        for event in (*self._history.scale_ups, *self._history.scale_downs):
            for period_ns in periods_ns:
                yield event.at + period_ns

    def replicas(self, at: int) -> int:
        """The count that a sync at `at` decides."""
        behavior, proposal = self._spec.behavior, self._step.proposal
        if behavior is None:
            flags = Settings(downscale_stabilization_ns=self._down_window_ns)
            stabilized = stabilization.by_flag(self._recommendations, proposal, at, flags)
            return bounds.without_behavior(self._spec, stabilized.step.result, self.current).result
        windows_ns = (self._down_window_ns, self._up_window_ns)
        stabilized = stabilization.by_behavior(
            self._recommendations, proposal, self.current, now_ns=at, windows_ns=windows_ns
        )
        rates = PolicyFacts(behavior, self._history, at, emulation.VERSIONS[self._trace.version])
        return bounds.with_behavior(self._spec, rates, stabilized.step.result, self.current).result


def _history_after(trace: Trace, limits: Limits) -> History:
    """The scale events for the next sync."""
    ups, downs = limits.scale_ups, limits.scale_downs
    if trace.behavior is not None and trace.write is not None and not trace.write.error:
        change = limits.result - (trace.current_replicas or 0)
        event = ScaleEvent(abs(change), trace.write.at)
        ups, downs = ((*ups, event), downs) if change > 0 else (ups, (*downs, event))
    return History(scale_ups=ups, scale_downs=downs)


def _spec_of(trace: Trace) -> Spec:
    """A spec with the limits of the trace; names, target and metrics are empty, because limits do not need them."""
    return Spec(
        key="",
        namespace="",
        name="",
        reference="",
        target_fault="",
        min_replicas=trace.min_replicas,
        max_replicas=trace.max_replicas,
        metrics=(),
        scales_on_others=False,
        behavior=trace.behavior,
    )
