"""Defines scalers that an autoscaler is compared with: a fixed count, and one that knows the future load.

Each is a `podscaler.simulation.scaler_runs.Scaler`; `knative` has one more. Called by `podscaler.cli.backtest` and
`podscaler.simulation.fleet.trials`, which make `comparison.Candidate`s of them: a new scaler is added to both.
"""

import bisect

import msgspec

from podscaler.simulation.model.distributions import DurationDistribution
from podscaler.simulation.model.results import WorkloadState
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.model.workloads import WorkloadModel

_HOUR_MS = 3_600_000


class FixedCount(msgspec.Struct, frozen=True):
    """A Scaler that keeps the same count; the length of a tick does not matter."""

    count: int
    tick_ms: int = _HOUR_MS

    def replicas(self, at_ms: int, state: WorkloadState) -> int:
        """As in Scaler."""
        del at_ms, state
        return self.count


class Hindsight:
    """A Scaler that knows the future: at each tick it asks for the peak need until the pods of the next tick are ready.

    A pod that is asked for at one tick is ready `lead_ms` later, so the pods of a tick must suffice until those of the
    next tick are ready. Where durations are drawn, `lead_ms` is a long one, and a few pods may still be late.

    Args:
        needed: the needed pods over time.
        lead_ms: the time from a decision until a pod is ready, such as the result of the function `lead_ms`.
        tick_ms: the time between two ticks.
    """

    def __init__(self, needed: StepSeries, lead_ms: int, tick_ms: int) -> None:
        self._needed = needed
        self._lead_ms = lead_ms
        self.tick_ms = tick_ms

    def replicas(self, at_ms: int, state: WorkloadState) -> int:
        """As in Scaler."""
        del state
        step_starts_ms = self._needed.at_ms
        first_step = max(bisect.bisect_right(step_starts_ms, at_ms) - 1, 0)
        end_step = bisect.bisect_right(step_starts_ms, at_ms + self._lead_ms + self.tick_ms)
        return max(self._needed.values[first_step : max(end_step, first_step + 1)])


def lead_ms(workload: WorkloadModel, scenario: SimulationScenario) -> int:
    """The time from the write of a scale until a new pod is ready, at the long end of its durations."""
    pod = workload.pod
    return scenario.actuation_ms + _high_estimate_ms(pod.launch) + _high_estimate_ms(pod.startup)


def _high_estimate_ms(durations: DurationDistribution) -> int:
    """A fixed duration itself, the upper bound of a uniform one, the 95th percentile of a lognormal one."""
    return durations.low_ms if durations.is_fixed else durations.high_ms  # by the definition of `high_ms`
