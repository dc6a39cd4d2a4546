"""Where a trace came from, which decides how an explanation speaks of what follows from it."""

from enum import StrEnum


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
