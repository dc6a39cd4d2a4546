"""What syncs report of themselves, so that they can be decided again: the protocol, and its form without a listener.

The reconciler reports each sync, the loop each autoscaler that is gone; `podscaler.controller.recording.file_recording`
keeps it. Reporting never waits, and hands over only what is immutable and there anyway.
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
    """What one sync saw and did; everything in it is immutable and shared.

    Attributes:
        at_ns: the instant for which it was decided.
        past: what was remembered before.
        decision: as it turned out.
        refusals: the failed attempts to write the scale, in order.
        status_refusal: why the status could not be written.
    """

    at_ns: int
    autoscaler: Autoscaler
    seen: ObservedSync
    past: History
    decision: Decision
    refusals: Sequence[StatusError] = ()
    status_refusal: StatusError | None = None


@dataclass(frozen=True, slots=True)
class End:
    """An autoscaler is gone, with all that was remembered of it."""

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
