"""Classifies the outcome of a decision: the stage that decided it, and the wanted, current and desired replicas.

Used by `sentence`, `advice`, `comparison` and `podscaler.observe`. A new VerdictReason also needs a sentence
(`sentence`) and, where it holds a count back, a clause (`hold_reasons`). Example: the metrics want 7, a window keeps
10: Verdict(STABILIZED, wanted=7, current=10, desired=10).

Source: docs/spec/decision.md 2 (Reconcile in order), 3 (Combining the metrics), 8 (Normalisation without behavior), 9
(Normalisation with behavior).
"""

from enum import StrEnum

from podscaler.core.model.trace import Branch, Limits, Stabilization, Step, Trace

RATE_REASONS = frozenset({"ScaleUpLimit", "ScaleDownLimit"})


class VerdictReason(StrEnum):
    """The stage that decided the outcome."""

    NO_SCALE = "NoScale"
    """The scale of the target could not be read."""
    PAUSED = "Paused"
    """The target has no replicas, and not because of this autoscaler."""
    OUT_OF_BOUNDS = "OutOfBounds"
    """The target was outside minimum and maximum; metrics were not evaluated."""
    NO_PODS = "NoPods"
    """The pods of the target are unknown."""
    NO_METRICS = "NoMetrics"
    """No metric could be evaluated."""
    NO_SCALE_DOWN = "NoScaleDown"
    """The metrics that could be evaluated want fewer replicas, but others failed."""
    STEADY = "Steady"
    """The metrics want the current count."""
    SCALED = "Scaled"
    """The count is what the metrics want."""
    STABILIZED = "Stabilized"
    """Earlier recommendations hold the count back."""
    RATE_LIMITED = "RateLimited"
    """The count may not change faster."""
    COOLING = "Cooling"
    """A cooldown after the last rescale holds the count back."""
    AT_BOUND = "AtBound"
    """Minimum or maximum hold the count back."""
    LIFTED = "Lifted"
    """The count was raised to the minimum on the way from zero."""


class Verdict(Step, frozen=True, gc=False):
    """The outcome of one decision.

    Attributes:
        ending: the stage that decided.
        wanted: the count by the metrics (or by a bound that was exceeded, or the fallback replicas); None if there is
            no conclusion.
        current: the count in the scale; None if it could not be read.
        desired: the new count; equal to `current`: nothing changes.
        write_error: why the scale could not be written, else empty.
    """

    ending: VerdictReason
    wanted: int | None
    current: int | None
    desired: int | None
    write_error: str = ""

    @property
    def is_change(self) -> bool:
        """Whether the scale changes."""
        return self.desired != self.current and not self.write_error


def of(trace: Trace) -> Verdict:
    """The verdict of a decision."""
    desired = trace.current_replicas if trace.desired is None else trace.desired
    error = trace.write.error if trace.write else ""
    return Verdict(_ending(trace), _wanted(trace), trace.current_replicas, desired, error)


def _ending(trace: Trace) -> VerdictReason:
    """The stage that decided, looked for in the order of the computation."""
    if trace.branch is Branch.NO_SCALE:
        return VerdictReason.NO_SCALE
    if trace.branch is Branch.DISABLED:
        return VerdictReason.PAUSED
    if trace.branch in (Branch.ABOVE_MAXIMUM, Branch.BELOW_MINIMUM):
        return VerdictReason.OUT_OF_BOUNDS
    if trace.selection is not None and trace.selection.failure is not None:
        return VerdictReason.NO_PODS
    if trace.stabilization is None or trace.limits is None:
        winner_index = trace.combination.winner if trace.combination else None
        return VerdictReason.NO_METRICS if winner_index is None else VerdictReason.NO_SCALE_DOWN
    return _normalised(trace, trace.stabilization, trace.limits)


def _normalised(trace: Trace, stabilization: Stabilization, limits: Limits) -> VerdictReason:
    """The stage after the metrics that decided: cooldown, rate, bound or window."""
    if trace.cooldown is not None and trace.cooldown.held is not None:
        return VerdictReason.COOLING
    wanted, result = stabilization.proposal, limits.result
    if trace.is_lifted:
        return VerdictReason.LIFTED
    if wanted == result:
        return VerdictReason.STEADY if result == trace.current_replicas else VerdictReason.SCALED
    # the limits moved the count in the direction in which the result differs from the metrics' proposal
    if _is_same_direction(limits.wanted, limits.result, wanted, result):
        return VerdictReason.RATE_LIMITED if limits.reason in RATE_REASONS else VerdictReason.AT_BOUND
    return VerdictReason.STABILIZED


def _is_same_direction(before: int, after: int, wanted: int, result: int) -> bool:
    """Whether a step from `before` to `after` has the direction of the change from `wanted` to `result`."""
    return (after > before) if result > wanted else (after < before)


def _wanted(trace: Trace) -> int | None:
    """The replicas that the metrics or bounds ask for before windows and policies; None if nothing does."""
    if trace.branch in (Branch.ABOVE_MAXIMUM, Branch.BELOW_MINIMUM):
        return trace.desired
    if trace.combination is None:
        return None
    if trace.combination.winner is None:
        return trace.combination.proposal
    return max(trace.metrics[trace.combination.winner].proposal or 0, 0)
