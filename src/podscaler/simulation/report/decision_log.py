"""Selects the syncs of an autoscaler that changed something, and explains the largest of them.

Called by `sync_collector` for every sync. Explanations are those of `podscaler explain`. They are made at once,
because a trace with all its pods is larger, and only for decisions that the report may keep.
"""

import heapq

from podscaler.explain import explained, verdict
from podscaler.explain.verdict import Verdict, VerdictReason
from podscaler.simulation.model.results import SimulatedSync
from podscaler.simulation.report.page_data import DecisionKind, ExplainedDecision

EXPLAINED_MAX = 1_000
"""The decisions of an autoscaler that a report explains; a page of so many is a few megabytes."""

_LIMITING_REASONS = frozenset(
    {
        VerdictReason.STABILIZED,
        VerdictReason.RATE_LIMITED,
        VerdictReason.COOLING,
        VerdictReason.AT_BOUND,
        VerdictReason.NO_SCALE_DOWN,
    }
)

_ERROR_SIZE = 2
"""An error counts as much as a change of this many replicas."""


class DecisionLog:
    """The decisions of one autoscaler.

    A decision is a written scale, the first sync with an error and the first one without, and the first sync since
    the last written scale at which one of the limits holds the replicas. Where there are more than `explained_max`,
    those are kept that change the most replicas; of equal ones the earlier.

    Attributes:
        total: how many there were.

    The kept decisions are a heap of (size of the change, negative instant in ms, decision): the least comes first.
    """

    def __init__(self, explained_max: int = EXPLAINED_MAX) -> None:
        self.total = 0
        self._explained_max = explained_max
        self._kept_decisions: list[tuple[int, int, ExplainedDecision]] = []
        self._known_limits: set[VerdictReason] = set()
        self._is_failing = False

    def add(self, sync: SimulatedSync) -> None:
        """Select and explain one sync; syncs come in order."""
        outcome = verdict.of(sync.decision.trace)
        kind = self._classify(sync, outcome)
        if kind is None:
            return
        self.total += 1
        rank = (_change_size(sync, kind), -sync.at_ms)
        if len(self._kept_decisions) < self._explained_max:
            heapq.heappush(self._kept_decisions, (*rank, _explain(sync, kind, outcome)))
        elif rank > self._kept_decisions[0][:2]:
            heapq.heapreplace(self._kept_decisions, (*rank, _explain(sync, kind, outcome)))

    def decisions(self) -> tuple[ExplainedDecision, ...]:
        """The kept decisions in order of time."""
        return tuple(
            [decision for *_, decision in sorted(self._kept_decisions, key=lambda kept_decision: -kept_decision[1])]
        )

    def _classify(self, sync: SimulatedSync, outcome: Verdict) -> DecisionKind | None:
        """The kind of decision; None if the sync is not one. Keeps what later syncs are compared with.

        A new kind: a value of `DecisionKind`, its case here and in `_change_size`, and its label in `decisions.js`.
        """
        was_failing, self._is_failing = self._is_failing, bool(sync.decision.trace.error)
        if sync.decision.replicas is not None:
            self._known_limits.clear()
            return "up" if sync.decision.replicas > sync.workload.replicas else "down"
        if was_failing != self._is_failing:
            return "recovered" if was_failing else "failed"
        if outcome.ending in _LIMITING_REASONS and outcome.ending not in self._known_limits:
            self._known_limits.add(outcome.ending)
            return "held"
        return None


def _change_size(sync: SimulatedSync, kind: DecisionKind) -> int:
    """How much a decision matters: the changed replicas; errors before small changes, limits last."""
    if kind == "held":
        return 0
    if sync.decision.replicas is None:
        return _ERROR_SIZE
    return abs(sync.decision.replicas - sync.workload.replicas)


def _explain(sync: SimulatedSync, kind: DecisionKind, outcome: Verdict) -> ExplainedDecision:
    """The decision of a sync with its explanation, as the report shows it."""
    explanation = explained.of_decision(sync.decision)
    replicas_before, replicas_after = sync.workload.replicas, sync.decision.replicas
    return ExplainedDecision(
        at_s=sync.at_ms / 1000,
        kind=kind,
        before=replicas_before,
        after=replicas_before if replicas_after is None else replicas_after,
        wanted=outcome.wanted,
        summary=explanation.summary,
        advice=explanation.advice,
        sections=explanation.steps,
    )
