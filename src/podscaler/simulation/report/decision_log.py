"""Selects the syncs of an autoscaler that changed something, and explains the largest of them.

Called by `sync_collector` for every sync. Explanations are those of `podscaler explain`. They are made at once,
because a trace with all its pods is larger, and only for decisions that the report may keep.
"""

import heapq

from podscaler.core.model.trace import Trace
from podscaler.explain import explained, verdict
from podscaler.explain.verdict import Verdict, VerdictReason
from podscaler.simulation.model.results import SimulatedSync
from podscaler.simulation.report.page_data import DecisionKind, ExplainedDecision

EXPLAINED_MAX = 1_000
"""The decisions of an autoscaler that a report explains; a page of so many is a few megabytes."""

_HELD = frozenset(
    {
        VerdictReason.STABILIZED,
        VerdictReason.RATE_LIMITED,
        VerdictReason.COOLING,
        VerdictReason.AT_BOUND,
        VerdictReason.NO_SCALE_DOWN,
    }
)


class DecisionLog:
    """The decisions of one autoscaler.

    A decision is a written scale, the first sync with an error and the first one without, and the first sync since
    the last written scale at which one of the limits holds the replicas. Where there are more than `explained_max`,
    those are kept that change the most replicas; of equal ones the earlier.

    Attributes:
        total: how many there were.
    """

    def __init__(self, explained_max: int = EXPLAINED_MAX) -> None:
        self.total = 0
        self._explained_max = explained_max
        self._kept: list[tuple[int, int, ExplainedDecision]] = []
        self._holds: set[VerdictReason] = set()
        self._is_failing = False

    def add(self, sync: SimulatedSync) -> None:
        """Select and explain one sync; syncs come in order."""
        outcome = verdict.of(sync.decision.trace)
        kind = self._kind(sync, outcome)
        if kind is None:
            return
        self.total += 1
        rank = (_size(sync, kind), -sync.at_ms)
        if len(self._kept) < self._explained_max:
            heapq.heappush(self._kept, (*rank, _explained(sync, kind, outcome)))
        elif rank > self._kept[0][:2]:
            heapq.heapreplace(self._kept, (*rank, _explained(sync, kind, outcome)))

    def decisions(self) -> tuple[ExplainedDecision, ...]:
        """The kept decisions in order of time."""
        return tuple([decision for *_, decision in sorted(self._kept, key=lambda kept_decision: -kept_decision[1])])

    def _kind(self, sync: SimulatedSync, outcome: Verdict) -> DecisionKind | None:
        """The kind of decision; None if the sync is not one."""
        was_failing, self._is_failing = self._is_failing, _fails(sync.decision.trace)
        if sync.decision.replicas is not None:
            self._holds.clear()
            return "up" if sync.decision.replicas > sync.workload.replicas else "down"
        if was_failing != self._is_failing:
            return "recovered" if was_failing else "failed"
        if outcome.ending in _HELD and outcome.ending not in self._holds:
            self._holds.add(outcome.ending)
            return "held"
        return None


def _fails(trace: Trace) -> bool:
    return bool(trace.error)


def _size(sync: SimulatedSync, kind: DecisionKind) -> int:
    """How much a decision matters: the changed replicas; errors before small changes, limits last."""
    if kind == "held":
        return 0
    return 2 if sync.decision.replicas is None else abs(sync.decision.replicas - sync.workload.replicas)


def _explained(sync: SimulatedSync, kind: DecisionKind, outcome: Verdict) -> ExplainedDecision:
    explanation = explained.of_decision(sync.decision)
    before, after = sync.workload.replicas, sync.decision.replicas
    return ExplainedDecision(
        at_s=sync.at_ms / 1000,
        kind=kind,
        before=before,
        after=before if after is None else after,
        wanted=outcome.wanted,
        summary=explanation.summary,
        advice=explanation.advice,
        sections=explanation.steps,
    )
