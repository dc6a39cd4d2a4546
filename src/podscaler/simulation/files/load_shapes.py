"""Computes loads of a shape: step, ramp, diurnal, spike, and noise on top of others.

Called by `loads`. A shape that changes without steps is sampled: its value at the middle of each step of `every`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from podscaler.simulation.files.file_fields import FileField, parse_amount
from podscaler.simulation.model import step_series
from podscaler.simulation.model.step_series import StepSeries

EVERY_MS = 15_000
"""The default of `every`: one sync period."""
_DIURNAL_EVERY_MS = 60_000
_DAY_MS = 86_400_000

Step = tuple[int, float]


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """Random deviations, normally distributed and independent of each other.

    Attributes:
        deviation: the standard deviation, as a number of units or (`is_relative`) as a share of the load.
        every_ms: how long one deviation lasts.
        stream: the name of its stream of random numbers.
    """

    deviation: float
    is_relative: bool
    every_ms: int
    stream: str

    def added_to(self, series: StepSeries, duration_ms: int, seed: int, per_unit: int) -> StepSeries:
        """The series with noise; what would be negative is 0."""
        random = Random(f"{seed}/{self.stream}")
        grid = range(0, duration_ms, self.every_ms)
        deviations = {at_ms: random.gauss(0, self.deviation) for at_ms in grid}
        instants = sorted({*grid, *(at_ms for at_ms in series.at_ms if at_ms < duration_ms)})
        return step_series.from_steps((at_ms, self._noisy(series, at_ms, deviations, per_unit)) for at_ms in instants)

    def _noisy(self, series: StepSeries, at_ms: int, deviations: dict[int, float], per_unit: int) -> int:
        value = series.value_at(at_ms)
        deviation = deviations[at_ms - at_ms % self.every_ms]
        return max(round(value + deviation * (value if self.is_relative else per_unit)), 0)


def steps_of_shape(name: str, field: FileField, duration_ms: int) -> Iterator[Step]:
    """The steps (instant in ms, amount in the load's unit) of one shape of SHAPES. Raises UsageError."""
    return SHAPES[name](field, duration_ms)


def read_noise(field: FileField) -> NoiseShape:
    """The noise of `{deviation: 10%}` or `{deviation: 20m, every: 15s}`. Raises UsageError."""
    members = field.members(("deviation", "every"))
    deviation = _required(field, members, "deviation", "noise needs its standard deviation, such as 10% or 20m")
    every = members.get("every")
    every_ms = EVERY_MS if every is None else every.duration_ms(low_ms=100)
    text = str(deviation.value)
    if text.endswith("%"):
        try:
            share = float(parse_amount(text[:-1])) / 100
        except ValueError:
            raise deviation.error(f"{text!r} is not a percentage") from None
        return NoiseShape(share, True, every_ms, field.path)
    return NoiseShape(float(deviation.amount()), False, every_ms, field.path)


def _required(field: FileField, members: dict[str, FileField], name: str, sentence: str) -> FileField:
    if name not in members:
        raise field.error(sentence)
    return members[name]


def _duration_ms(members: dict[str, FileField], name: str, default_ms: int) -> int:
    member = members.get(name)
    return default_ms if member is None else member.duration_ms()


def _every_ms(members: dict[str, FileField], default_ms: int) -> int:
    member = members.get("every")
    return default_ms if member is None else member.duration_ms(low_ms=100)


def _amount(members: dict[str, FileField], name: str) -> float:
    member = members.get(name)
    return 0.0 if member is None else float(member.amount())


def _step(field: FileField, duration_ms: int) -> Iterator[Step]:
    del duration_ms
    members = field.members(("from", "to", "at"))
    to = _required(field, members, "to", "a step needs `to`, its value from `at` on")
    at = _required(field, members, "at", "a step needs `at`, the instant from which its value is `to`")
    yield 0, _amount(members, "from")
    yield at.duration_ms(low_ms=1), float(to.amount())


def _ramp(field: FileField, duration_ms: int) -> Iterator[Step]:
    """A load that goes from one value to another within `over`, and stays there."""
    members = field.members(("from", "to", "at", "over", "every"))
    to = float(_required(field, members, "to", "a ramp needs `to`, its value at its end").amount())
    low, at_ms, every_ms = _amount(members, "from"), _duration_ms(members, "at", 0), _every_ms(members, EVERY_MS)
    over_ms = max(_duration_ms(members, "over", duration_ms - at_ms), 1)
    yield 0, low
    yield from _sampled(lambda ms: low + (to - low) * ms / over_ms, at_ms, over_ms, every_ms)
    yield at_ms + over_ms, to


def _diurnal(field: FileField, duration_ms: int) -> Iterator[Step]:
    """A load that follows a cosine between `low` and `high`, with its highest value at `peak` of each period."""
    members = field.members(("low", "high", "period", "peak", "every"))
    high = float(_required(field, members, "high", "a diurnal load needs `high`, its value at its peak").amount())
    low, period_ms = _amount(members, "low"), max(_duration_ms(members, "period", _DAY_MS), 1)
    peak_ms = _duration_ms(members, "peak", period_ms // 2)
    if low > high:
        raise members["low"].error("`low` is above `high`")

    def value(ms: float) -> float:
        return low + (high - low) * (1 + math.cos(2 * math.pi * (ms - peak_ms) / period_ms)) / 2

    return _sampled(value, 0, duration_ms, _every_ms(members, _DIURNAL_EVERY_MS))


def _spike(field: FileField, duration_ms: int) -> Iterator[Step]:
    """A load that rises from zero to `height`, stays there for `hold`, and falls to zero again."""
    del duration_ms
    members = field.members(("height", "at", "rise", "hold", "fall", "every"))
    height = float(_required(field, members, "height", "a spike needs `height`, its value at its top").amount())
    at_ms = _required(field, members, "at", "a spike needs `at`, the instant at which it begins").duration_ms()
    rise_ms, fall_ms = _duration_ms(members, "rise", 0), _duration_ms(members, "fall", 0)
    hold_ms, every_ms = _duration_ms(members, "hold", 60_000), _every_ms(members, EVERY_MS)
    top_ms = at_ms + rise_ms
    yield 0, 0.0
    yield from _sampled(lambda ms: height * ms / rise_ms, at_ms, rise_ms, every_ms)
    yield top_ms, height
    yield from _sampled(lambda ms: height * (1 - ms / fall_ms), top_ms + hold_ms, fall_ms, every_ms)
    yield top_ms + hold_ms + fall_ms, 0.0


def _sampled(value: Callable[[float], float], at_ms: int, over_ms: int, every_ms: int) -> Iterator[Step]:
    """The value at the middle of each step within `over_ms` from `at_ms` on; `value` counts from `at_ms`."""
    for begin_ms in range(0, over_ms, every_ms):
        end_ms = min(begin_ms + every_ms, over_ms)
        yield at_ms + begin_ms, value((begin_ms + end_ms) / 2)


SHAPES: dict[str, Callable[[FileField, int], Iterator[Step]]] = {
    "step": _step,
    "ramp": _ramp,
    "diurnal": _diurnal,
    "spike": _spike,
}
"""The shapes that stand alone, by name; `noise` is added to another load."""
