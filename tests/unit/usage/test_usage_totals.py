"""The CPU time of containers as counters, which the node's endpoints report."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.resource.processes import TreeReading
from podscaler.controlplane.metrics.resource.rates import MeasuredRun, Rate, SampleTime
from podscaler.controlplane.metrics.resource.totals import PodTotal, UsageTotal, UsageTotals

KEY = ("uid", "c")
FIRST, SECOND = MeasuredRun(10, 1_000), MeasuredRun(11, 2_000)
S = NANOSECONDS


def at(second: float) -> SampleTime:
    """A round at this second."""
    return SampleTime(round(second * S), second, round(second * S))


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        pytest.param([(FIRST, 2.0)], UsageTotal(1_000, 2 * S, None, 5), id="the first reading"),
        pytest.param([(FIRST, 2.0), (FIRST, 3.5)], UsageTotal(1_000, 3_500_000_000, None, 5), id="it grows"),
        pytest.param([(FIRST, 2.0), (FIRST, 1.0)], UsageTotal(1_000, 2 * S, None, 5), id="a reading that falls"),
        pytest.param([(FIRST, 2.0), (FIRST, 1.0), (FIRST, 1.5)], UsageTotal(1_000, 2_500_000_000, None, 5), id="after"),
        pytest.param([(FIRST, 2.0), (SECOND, 0.5)], UsageTotal(2_000, 500_000_000, None, 5), id="a new run"),
    ],
)
def test_the_cpu_time_of_one_run_never_decreases(rounds: list[tuple[MeasuredRun, float]], expected: UsageTotal) -> None:
    """It is the sum of the increases; another run of the container begins anew."""
    totals = UsageTotals()
    for second, (run, cpu_s) in enumerate(rounds):
        totals.observe({KEY: run}, {run.pid: TreeReading(cpu_s, 5)}, {}, at(second))
    assert totals.totals({}) == {KEY: expected}


def test_the_usage_of_simulated_containers_is_integrated() -> None:
    """Half a core for ten seconds is five seconds of CPU time since it was first seen."""
    totals, rate = UsageTotals(), Rate(S // 2, 7, 0, S)
    for second in (100, 104, 110):
        totals.observe({}, {}, {KEY: rate}, at(second))
    assert totals.totals({KEY: rate}) == {KEY: UsageTotal(100 * S, 5 * S, S // 2, 7)}


def test_containers_without_a_reading_are_forgotten() -> None:
    """A container that has ended has no total."""
    totals = UsageTotals()
    totals.observe({KEY: FIRST}, {FIRST.pid: TreeReading(1.0, 5)}, {}, at(1))
    totals.observe({KEY: FIRST}, {}, {}, at(2))
    assert totals.totals({}) == {}


def test_a_pod_is_the_sum_of_its_containers() -> None:
    """Its rate is unknown while one container has none."""
    known, unknown = UsageTotal(1, 10, 3, 100), UsageTotal(1, 20, None, 200)
    both = PodTotal("default", "web", "uid", "", {"a": known, "b": unknown})
    one = PodTotal("default", "web", "uid", "", {"a": known})
    assert (both.cpu_ns, both.cpu_nanocores, both.memory_bytes) == (30, None, 300)
    assert (one.cpu_ns, one.cpu_nanocores, one.memory_bytes) == (10, 3, 100)
