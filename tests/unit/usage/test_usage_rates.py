"""Rates between readings of cumulative CPU time."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.resource.processes import TreeReading
from podscaler.controlplane.metrics.resource.rates import MeasuredRun, Rate, SampleTime, UsageRates

CONTAINER = {"web": MeasuredRun(pid=7, started_ns=100 * NANOSECONDS)}


def moment(at_s: float, *, set_s: int = 0) -> SampleTime:
    """An instant, where the wall clock has been set by `set_s`."""
    now_ns = round((at_s + set_s) * NANOSECONDS)
    return SampleTime(now_ns, at_s, now_ns)


def observe(rates: UsageRates[str], at_s: float, cpu_s: float, *, set_s: int = 0) -> dict[str, Rate]:
    """One reading of `web`; the wall clock has been set by `set_s`."""
    reading = {7: TreeReading(cpu_s, 4096)}
    return rates.observe(CONTAINER, reading, moment(at_s, set_s=set_s))


def test_the_first_rate_is_taken_from_the_start() -> None:
    """A container that has run for 4 s and used 2 s of CPU uses half a core over a window of 4 s."""
    rate = observe(UsageRates(), 104, 2.0)
    assert rate == {"web": Rate(500_000_000, 4096, 104 * NANOSECONDS, 4 * NANOSECONDS)}


def test_later_rates_are_taken_between_readings() -> None:
    """The window of the second rate begins where the first ended."""
    rates: UsageRates[str] = UsageRates()
    observe(rates, 104, 2.0)
    assert observe(rates, 106, 2.5) == {"web": Rate(250_000_000, 4096, 106 * NANOSECONDS, 2 * NANOSECONDS)}


def test_a_reading_too_soon_is_kept_for_later() -> None:
    """Half a second is the shortest window: until then nothing is reported, and nothing is lost."""
    rates: UsageRates[str] = UsageRates()
    assert observe(rates, 100.4, 0.4) == {}
    assert observe(rates, 101, 0.5) == {"web": Rate(500_000_000, 4096, 101 * NANOSECONDS, NANOSECONDS)}


def test_a_new_incarnation_starts_anew() -> None:
    """After a restart the rate is measured from the new start, not from the old process's total."""
    rates: UsageRates[str] = UsageRates()
    observe(rates, 104, 2.0)
    restarted = {"web": MeasuredRun(pid=8, started_ns=105 * NANOSECONDS)}
    got = rates.observe(restarted, {8: TreeReading(0.5, 0)}, moment(106))
    assert got == {"web": Rate(500_000_000, 0, 106 * NANOSECONDS, NANOSECONDS)}


@pytest.mark.parametrize("set_s", [-3 * 3600, 3 * 3600], ids=["back", "forward"])
def test_a_wall_clock_that_is_set_changes_no_window(set_s: int) -> None:
    """The next reading after the jump gives the usage since the one before it, at the new instant."""
    rates: UsageRates[str] = UsageRates()
    observe(rates, 10_804, 2.0)
    assert observe(rates, 10_806, 2.5, set_s=set_s) == {
        "web": Rate(250_000_000, 4096, (10_806 + set_s) * NANOSECONDS, 2 * NANOSECONDS)
    }


def test_time_taken_along_by_an_orphan_counts_as_nothing() -> None:
    """A total that went down gives zero, never a negative rate."""
    rates: UsageRates[str] = UsageRates()
    observe(rates, 104, 2.0)
    assert observe(rates, 105, 1.0)["web"].cpu_nanocores == 0


def test_a_container_without_a_reading_has_no_rate() -> None:
    """A process that has ended gives no sample, and its past is forgotten."""
    rates: UsageRates[str] = UsageRates()
    observe(rates, 104, 2.0)
    assert rates.observe(CONTAINER, {}, moment(105)) == {}
