"""The interface of recordings, which keep every sync so that it can be decided again, and the one that keeps nothing.

The reconciler reports each sync, and an end is reported for each autoscaler that is synced here no more;
`podscaler.controller.recording.file_recording` keeps them. A report never waits, and hands over immutable objects that
exist anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.base.errors import StatusError
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.recording.observed import ObservedSync
from podscaler.core.decision import Decision
from podscaler.core.model.history import History
from podscaler.kube.informers.cache import Key


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """The facts and the results of one sync; everything in it is immutable and shared.

    Attributes:
        at_ns: the instant of the decision.
        seen: the facts.
        past: the history before.
        decision: as it turned out.
        scale_errors: of the failed attempts to write the scale, in order.
        status_error: of the write of the status; None: it succeeded, or there was none.
    """

    at_ns: int
    autoscaler: Autoscaler
    seen: ObservedSync
    past: History
    decision: Decision
    scale_errors: Sequence[StatusError] = ()
    status_error: StatusError | None = None


@dataclass(frozen=True, slots=True)
class End:
    """An autoscaler is synced here no more, and its state is dropped."""

    at_ns: int
    key: Key


class Recording:
    """Gets every sync; this one keeps nothing.

    Attributes:
        is_on: whether anything is kept.
        lines_written: how many lines of the file are written.
        lines_lost: how many never will be.
    """

    is_on = False
    lines_written = 0
    lines_lost = 0

    def report(self, what: SyncRecord | End) -> None:
        """Keep it; never waits."""

    async def run(self) -> None:
        """Write what is reported, until cancelled."""
