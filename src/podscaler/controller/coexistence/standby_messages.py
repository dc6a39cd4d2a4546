"""What the log says of a decision that is not carried out.

The reconciler and the comparison ask `of`.
"""

from podscaler.core.decision import Decision
from podscaler.explain import explained
from podscaler.explain.data import TraceSource


def of(decision: Decision) -> str:
    """One sentence or two: what would be done, and why."""
    why = explained.of_decision(decision, TraceSource.CLUSTER).summary
    draft = decision.draft
    if decision.replicas is None or draft is None:
        return f"nothing would be written to its target. {why}"
    return f"would be rescaled from {draft.scale.replicas} to {decision.replicas}: {draft.reason}. {why}"
