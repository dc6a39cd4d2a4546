"""An event as an explanation repeats it."""

from podscaler.core.model.trace import Step


class ReportedEvent(Step, frozen=True, gc=False):
    """One event on the autoscaler."""

    type: str
    reason: str
    message: str
