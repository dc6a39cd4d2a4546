"""Values over time: constant, in steps, on a ramp, and shares of a total."""

import pytest

from podscaler.api.machinery.quantity import Quantity
from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.custom import schedule
from podscaler.controlplane.metrics.custom.schedule import Constant, Ramp, Schedule, Steps, ValueStep

Timeline = list[tuple[float, str | None]]


def timeline(values: Schedule, *instants_s: float) -> Timeline:
    """The texts of the values at these seconds."""
    found = [(at_s, values.value_at(round(at_s * NANOSECONDS))) for at_s in instants_s]
    return [(at_s, None if value is None else str(value)) for at_s, value in found]


def step(at_s: float, value: str) -> ValueStep:
    """A step at a second."""
    return ValueStep(round(at_s * NANOSECONDS), Quantity.parse(value))


def ramp(first: str, last: str, *, start_s: float = 10, span_s: float = 30) -> Ramp:
    """A ramp, from the 10th to the 40th second unless told otherwise."""
    return Ramp(Quantity.parse(first), Quantity.parse(last), round(start_s * NANOSECONDS), round(span_s * NANOSECONDS))


def test_a_constant_stays_as_it_was_written() -> None:
    """A constant has its exact quantity at all times."""
    assert timeline(Constant(Quantity.parse("123456789n")), 0, 1e9) == [(0, "123456789n"), (1e9, "123456789n")]


def test_steps_hold_from_their_instant_on() -> None:
    """A step counts from its instant on, until the next one; before the first there is no value."""
    steps = Steps([step(5, "10"), step(20, "2500m")], None)
    assert timeline(steps, 0, 4.999999999, 5, 19.9, 20, 1e6) == [
        (0, None),
        (4.999999999, None),
        (5, "10"),
        (19.9, "10"),
        (20, "2500m"),
        (1e6, "2500m"),
    ]


def test_steps_may_say_what_was_before() -> None:
    """With a value before, there is one at all times."""
    assert timeline(Steps([step(5, "10")], Quantity.parse("3")), 0, 5) == [(0, "3"), (5, "10")]


def test_steps_may_stand_in_any_order() -> None:
    """Steps are sorted; of two at one instant the one that stands later counts."""
    assert timeline(Steps([step(9, "9"), step(5, "5"), step(9, "90")], None), 5, 9) == [(5, "5"), (9, "90")]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        pytest.param("0", "90", ["0", "0", "45", "90", "90"], id="up"),
        pytest.param("90", "0", ["90", "90", "45", "0", "0"], id="down"),
        pytest.param("1", "2", ["1", "1", "1500m", "2", "2"], id="between whole numbers"),
        pytest.param("1Gi", "2Gi", ["1Gi", "1Gi", "1536Mi", "2Gi", "2Gi"], id="in its own format"),
        pytest.param("-1", "1", ["-1", "-1", "0", "1", "1"], id="through zero"),
        pytest.param("0", "1n", ["0", "0", "1m", "1n", "1n"], id="rounded up to thousandths on the way only"),
    ],
)
def test_a_ramp_is_a_straight_line(first: str, last: str, expected: list[str]) -> None:
    """Before its start a ramp has its first value, after its end its last, and in the middle their mean."""
    assert [text for _, text in timeline(ramp(first, last), 0, 10, 25, 40, 99)] == expected


def test_a_ramp_is_exact() -> None:
    """No float is on the way: a third of a large number is a third, rounded up to thousandths."""
    values = ramp("0", "9007199254740993", start_s=0, span_s=3)
    assert timeline(values, 1, 2) == [(1, "3002399751580331"), (2, "6004799503160662")]


@pytest.mark.parametrize(
    ("total", "among", "expected"),
    [
        pytest.param("100", 1, "100", id="alone"),
        pytest.param("123n", 1, "123n", id="alone, exactly"),
        pytest.param("100", 4, "25", id="even"),
        pytest.param("100", 3, "33334m", id="rounded up"),
        pytest.param("-1", 3, "-333m", id="negative, rounded up"),
        pytest.param("0", 7, "0", id="nothing"),
    ],
)
def test_shares(total: str, among: int, expected: str) -> None:
    """A total is shared equally, in thousandths, rounded up."""
    assert str(schedule.share(Quantity.parse(total), among)) == expected
