"""An event as an explanation repeats it."""

from podscaler.core.trace import Step


class ReportedEvent(Step, frozen=True, gc=False):
    """One event on the autoscaler."""

    type: str
    reason: str
    message: str
