"""The parts of an explanation as data: the source of its trace, its lines and sections of text, reported events.

Made by the modules of `podscaler.explain` and by `podscaler explain`, which prints them as text or as JSON. A further
TraceSource: in `has_history` and `is_past`, and wherever texts depend on it (`limit_steps`, `sentence`).
"""

from enum import StrEnum

from podscaler.core.model.trace import Step


class TraceSource(StrEnum):
    """The source of a trace, which decides how an explanation speaks of its consequences."""

    RECORDING = "Recording"
    """A recorded decision, which was executed."""
    CLUSTER = "Cluster"
    """Decided now from the objects of a cluster; the controller decides so at its next sync."""
    CLUSTER_WITHOUT_HISTORY = "ClusterWithoutHistory"
    """As CLUSTER, but the controller's history is unknown."""
    WHAT_IF = "WhatIf"
    """Decided about a recorded sync with another spec; never executed."""

    @property
    def has_history(self) -> bool:
        """Whether windows and policies could be evaluated."""
        return self is not TraceSource.CLUSTER_WITHOUT_HISTORY

    @property
    def is_past(self) -> bool:
        """Whether the sync was recorded."""
        return self in (TraceSource.RECORDING, TraceSource.WHAT_IF)


class ReportedEvent(Step, frozen=True, gc=False):
    """A Kubernetes Event on the autoscaler that belongs to the explained decision."""

    type: str
    reason: str
    message: str


class Line(Step, frozen=True, gc=False):
    """One line of a section: its label and its text."""

    label: str
    text: str


class Section(Step, frozen=True, gc=False):
    """Lines under one title, such as `Decision`."""

    title: str
    lines: tuple[Line, ...]
