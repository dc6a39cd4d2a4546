"""Rates between readings of cumulative CPU time."""

from podscaler.clock import NANOSECONDS
from podscaler.controlplane.usage.processes import TreeReading
from podscaler.controlplane.usage.rates import Rate, Rates, Started

CONTAINER = {"web": Started(pid=7, started_ns=100 * NANOSECONDS)}


def observe(rates: Rates[str], at_s: float, cpu_s: float) -> dict[str, Rate]:
    """One reading of the container `web`."""
    return rates.observe(CONTAINER, {7: TreeReading(cpu_s, 4096)}, round(at_s * NANOSECONDS))


def test_the_first_rate_is_taken_from_the_start() -> None:
    """A container that has run for 4 s and used 2 s of CPU uses half a core over a window of 4 s."""
    rate = observe(Rates(), 104, 2.0)
    assert rate == {"web": Rate(500_000_000, 4096, 104 * NANOSECONDS, 4 * NANOSECONDS)}


def test_later_rates_are_taken_between_readings() -> None:
    """The window of the second rate begins where the first ended."""
    rates: Rates[str] = Rates()
    observe(rates, 104, 2.0)
    assert observe(rates, 106, 2.5) == {"web": Rate(250_000_000, 4096, 106 * NANOSECONDS, 2 * NANOSECONDS)}


def test_a_reading_too_soon_is_kept_for_later() -> None:
    """Half a second is the shortest window: until then nothing is reported, and nothing is lost."""
    rates: Rates[str] = Rates()
    assert observe(rates, 100.4, 0.4) == {}
    assert observe(rates, 101, 0.5) == {"web": Rate(500_000_000, 4096, 101 * NANOSECONDS, NANOSECONDS)}


def test_a_new_incarnation_starts_anew() -> None:
    """After a restart the rate is measured from the new start, not from the old process's total."""
    rates: Rates[str] = Rates()
    observe(rates, 104, 2.0)
    restarted = {"web": Started(pid=8, started_ns=105 * NANOSECONDS)}
    got = rates.observe(restarted, {8: TreeReading(0.5, 0)}, 106 * NANOSECONDS)
    assert got == {"web": Rate(500_000_000, 0, 106 * NANOSECONDS, NANOSECONDS)}


def test_time_taken_along_by_an_orphan_counts_as_nothing() -> None:
    """A total that went down gives zero, never a negative rate."""
    rates: Rates[str] = Rates()
    observe(rates, 104, 2.0)
    assert observe(rates, 105, 1.0)["web"].cpu_nanocores == 0


def test_a_container_without_a_reading_has_no_rate() -> None:
    """A process that has ended gives no sample, and its past is forgotten."""
    rates: Rates[str] = Rates()
    observe(rates, 104, 2.0)
    assert rates.observe(CONTAINER, {}, 105 * NANOSECONDS) == {}
