"""Defines the load of one autoscaler of a fleet, and the rows of results about it.

Called by the other modules of this package. Tasks are sent to other processes: everything here can be pickled. A new
column of results: a field of FleetRow, which `candidate_rows` computes; `result_files` takes its type from here.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.simulation.evaluation.comparison import Candidate, Needs
from podscaler.simulation.model.scenario import SimulationScenario


class FleetAutoscaler(msgspec.Struct, frozen=True, kw_only=True):
    """An autoscaler with its load.

    Attributes:
        key: `namespace/name`.
        scenario: a scenario with this autoscaler and its workload alone.
        wire: its spec in the API's form, which candidates change.
        notes: sentences about what was assumed of the load.
    """

    key: str
    scenario: SimulationScenario
    wire: HorizontalPodAutoscalerSpec
    notes: tuple[str, ...] = ()


class UnusableAutoscaler(msgspec.Struct, frozen=True):
    """An autoscaler whose load cannot be known; `reason` is a sentence."""

    key: str
    reason: str


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate of one autoscaler: a row of the results.

    Attributes:
        candidate: its name; empty if the whole autoscaler failed.
        error: why there are no measures; empty if there are.
        needed_pod_hours: the time integral of the needed pods, the same for all candidates.
        pod_hours, scale_changes, slo_missed_pct, lost_pct and the elasticity metrics: see docs/backtest.md; None:
            undefined.
        speedup: against the first candidate.
        engine: `batch` or `exact`.
        notes: about the autoscaler's load, joined.
    """

    autoscaler: str
    candidate: str
    error: str = ""
    pod_hours: float | None = None
    needed_pod_hours: float | None = None
    under_timeshare_pct: float | None = None
    under_accuracy_pct: float | None = None
    over_timeshare_pct: float | None = None
    over_accuracy_pct: float | None = None
    instability_pct: float | None = None
    jitter: float | None = None
    slo_missed_pct: float | None = None
    lost_pct: float | None = None
    scale_changes: int | None = None
    speedup: float | None = None
    engine: str = ""
    notes: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared for one autoscaler; the first candidate is the present spec."""

    candidates: tuple[Candidate, ...]
    needs: Needs


class MakeTrial(Protocol):
    """Makes the trial of an autoscaler; it can be pickled."""

    def __call__(self, autoscaler: FleetAutoscaler, /) -> Trial:
        """The trial. Raises UsageError or ValueError for an autoscaler that cannot be judged."""
        ...


class Partition(Protocol):
    """A part of a fleet, the unit of work and of a file of results; it can be pickled."""

    @property
    def name(self) -> str:
        """The stem of its file of results."""
        ...

    @property
    def fingerprint(self) -> str:
        """A text that differs where its content does."""
        ...

    def autoscalers(self) -> Iterator[FleetAutoscaler | UnusableAutoscaler]:
        """Its autoscalers, one at a time. Raises UsageError if it cannot be read."""
        ...
