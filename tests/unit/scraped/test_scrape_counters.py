"""Rates of counters."""

from podscaler.controlplane.metrics.scraped.counters import CounterRate, CounterRates


def rates_of(*readings: tuple[float, float]) -> list[float | None]:
    """The rate after each reading: seconds, value."""
    rates: CounterRates[str] = CounterRates()
    found = [rates.observe([("a", value)], at_s).get("a") for at_s, value in readings]
    return [None if each is None else each.per_second for each in found]


def test_the_first_reading_gives_no_rate() -> None:
    """What was counted before nobody knows when."""
    assert rates_of((0, 100), (10, 150)) == [None, 5.0]


def test_the_window_moves() -> None:
    """A rise that is longer ago than the window does not count."""
    assert rates_of((0, 0), (15, 300), (30, 300), (45, 300), (60, 300)) == [None, 20.0, 10.0, 0.0, 0.0]


def test_a_reset_is_no_fall() -> None:
    """A counter that begins anew has risen by its value."""
    assert rates_of((0, 1000), (10, 40), (20, 60)) == [None, 4.0, 3.0]


def test_a_gap_is_bridged() -> None:
    """Between readings that are further apart than the window, the rate is that between the two."""
    assert rates_of((0, 0), (100, 500)) == [None, 5.0]


def test_counters_that_are_gone_are_forgotten() -> None:
    """One that comes back starts anew; others keep their readings."""
    rates: CounterRates[str] = CounterRates()
    rates.observe([("a", 1.0), ("b", 1.0)], 0.0)
    assert rates.observe([("b", 3.0)], 10.0) == {"b": CounterRate(0.2, 10.0)}
    assert rates.observe([("a", 9.0), ("b", 3.0)], 20.0) == {"b": CounterRate(0.1, 20.0)}


def test_readings_are_bounded() -> None:
    """A counter keeps the readings of one window, however often it is read."""
    rates: CounterRates[str] = CounterRates()
    for number in range(1000):
        rates.observe([("a", float(number))], number * 1.0)
    assert len(rates._counters["a"].readings) == 31
