"""The data that explanations are made of: the source of a trace, lines and sections of text, reported events."""

from enum import StrEnum

from podscaler.core.model.trace import Step


class TraceSource(StrEnum):
    """Where a trace came from."""

    RECORDING = "Recording"
    """It was recorded: what it says was done."""
    CLUSTER = "Cluster"
    """It was decided just now from what a cluster says; the controller does so at its next sync."""
    CLUSTER_WITHOUT_HISTORY = "ClusterWithoutHistory"
    """As CLUSTER, but what the controller remembers of earlier syncs is not known."""
    WHAT_IF = "WhatIf"
    """It was decided about a recorded sync with another spec; nobody does it."""

    @property
    def has_history(self) -> bool:
        """Whether windows and policies could be looked at."""
        return self is not TraceSource.CLUSTER_WITHOUT_HISTORY

    @property
    def is_past(self) -> bool:
        """Whether the sync was recorded."""
        return self in (TraceSource.RECORDING, TraceSource.WHAT_IF)


class ReportedEvent(Step, frozen=True, gc=False):
    """One event on the autoscaler."""

    type: str
    reason: str
    message: str


class Line(Step, frozen=True, gc=False):
    """One line: what it is about, and what there is to say."""

    label: str
    text: str


class Section(Step, frozen=True, gc=False):
    """Lines that belong together."""

    title: str
    lines: tuple[Line, ...]
