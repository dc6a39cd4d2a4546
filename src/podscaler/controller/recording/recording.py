"""Defines the interface of recordings, which store every sync so that it can be decided again; the base stores nothing.

The reconciler reports each sync, and a `SyncsEnd` is reported for each autoscaler that this process has stopped
syncing; `podscaler.controller.recording.file_recording` writes them to a file. Reporting copies nothing and never
waits: all objects are immutable. A new field of SyncRecord: its encoding in `record_lines`, its field in
`podscaler.api.typed.recording`, and its use in `podscaler.core.replay`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.base.errors import StatusError
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.recording.observed_sync import ObservedSync
from podscaler.core.decision import Decision
from podscaler.core.model.history import History
from podscaler.kube.informers.cache import Key


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """What one sync read, and its results; everything in it is immutable and shared.

    Attributes:
        at_ns: the instant of the decision, since the epoch.
        autoscaler: the autoscaler that was synced.
        observed: what the decision read.
        prior_history: the history before the sync.
        decision: the decision with the results of its writes.
        scale_errors: the errors of failed attempts to write the scale, in order.
        status_error: the error of the write of the status; None if it succeeded, or nothing was written.
        is_carried_out: whether the decision was written, or would have been if it changed anything; False on standby.
    """

    at_ns: int
    autoscaler: Autoscaler
    observed: ObservedSync
    prior_history: History
    decision: Decision
    scale_errors: Sequence[StatusError] = ()
    status_error: StatusError | None = None
    is_carried_out: bool = True


@dataclass(frozen=True, slots=True)
class SyncsEnd:
    """The report that this process has stopped syncing an autoscaler: its history ends at `at_ns` since the epoch."""

    at_ns: int
    key: Key


class Recording:
    """Takes the report of every sync; this base class drops them.

    Attributes:
        is_on: whether reports are written anywhere.
        lines_written: how many lines were written to a file.
        lines_lost: how many lines could not be written, and were dropped.
    """

    is_on = False
    lines_written = 0
    lines_lost = 0

    def report(self, record: SyncRecord | SyncsEnd) -> None:
        """Take a report; never waits."""

    async def run(self) -> None:
        """Write what is reported, until cancelled; returns at once if reports are dropped."""
