"""Computes loads of a shape: step, ramp, diurnal, spike, and noise on top of others.

Called by `loads`. A shape that changes without steps is sampled: its value at the middle of each step of `every`. A new
shape: a function that reads its fields and yields steps, and its entry in SHAPES.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from podscaler.simulation.files.file_fields import FileField, optional_duration_ms, parse_amount
from podscaler.simulation.model import step_series
from podscaler.simulation.model.step_series import StepSeries

_DEFAULT_EVERY_MS = 15_000
"""The default of `every`: one sync period."""
_DIURNAL_EVERY_MS = 60_000
_LEAST_EVERY_MS = 100
_DAY_MS = 86_400_000

ShapeStep = tuple[int, float]
"""The instant in ms from which an amount applies, and the amount in the load's unit."""


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """Random deviations, normally distributed and independent of each other.

    Attributes:
        deviation: the standard deviation, in units of the load or (`is_relative`) as a share of the load.
        every_ms: how long one deviation lasts.
        stream: the name of its stream of random numbers: the path of its field, so that noises differ.
    """

    deviation: float
    is_relative: bool
    every_ms: int
    stream: str

    def add_to(self, series: StepSeries, duration_ms: int, seed: int, per_unit: int) -> StepSeries:
        """The series (1 unit of the load is `per_unit` in it) with noise; what would be negative is 0."""
        random = Random(f"{seed}/{self.stream}")
        grid = range(0, duration_ms, self.every_ms)
        deviations = {at_ms: random.gauss(0, self.deviation) for at_ms in grid}
        instants = sorted({*grid, *(at_ms for at_ms in series.at_ms if at_ms < duration_ms)})
        return step_series.from_steps(
            (at_ms, self._value_with_noise(series, at_ms, deviations, per_unit)) for at_ms in instants
        )

    def _value_with_noise(self, series: StepSeries, at_ms: int, deviations: dict[int, float], per_unit: int) -> int:
        """The value at an instant with the deviation of its part of the grid; `deviations` are by instant in ms."""
        value = series.value_at(at_ms)
        deviation = deviations[at_ms - at_ms % self.every_ms]
        return max(round(value + deviation * (value if self.is_relative else per_unit)), 0)


def steps_of_shape(name: str, field: FileField, duration_ms: int) -> Iterator[ShapeStep]:
    """The steps (instant in ms, amount in the load's unit) of one shape of SHAPES. Raises UsageError."""
    return SHAPES[name](field, duration_ms)


def read_noise(field: FileField) -> NoiseShape:
    """The noise of `{deviation: 10%}` or `{deviation: 20m, every: 15s}`. Raises UsageError."""
    members = field.members(("deviation", "every"))
    deviation_field = _required_member(
        field, members, "deviation", "noise needs its standard deviation, such as 10% or 20m"
    )
    every_ms = _read_every_ms(members, _DEFAULT_EVERY_MS)
    deviation_text = str(deviation_field.value)
    if deviation_text.endswith("%"):
        try:
            share = float(parse_amount(deviation_text[:-1])) / 100
        except ValueError:
            raise deviation_field.error(f"{deviation_text!r} is not a percentage") from None
        return NoiseShape(share, True, every_ms, field.path)
    return NoiseShape(float(deviation_field.amount()), False, every_ms, field.path)


def _required_member(field: FileField, members: dict[str, FileField], name: str, sentence: str) -> FileField:
    """The member of that name. Raises UsageError with the sentence if it is absent."""
    if name not in members:
        raise field.error(sentence)
    return members[name]


def _read_every_ms(members: dict[str, FileField], default_ms: int) -> int:
    return optional_duration_ms(members, "every", default_ms, low_ms=_LEAST_EVERY_MS)


def _optional_amount(members: dict[str, FileField], name: str) -> float:
    member = members.get(name)
    return 0.0 if member is None else float(member.amount())


def _step_shape(field: FileField, duration_ms: int) -> Iterator[ShapeStep]:
    """A load that changes from one value to another at an instant."""
    del duration_ms
    members = field.members(("from", "to", "at"))
    to_field = _required_member(field, members, "to", "a step needs `to`, its value from `at` on")
    at_field = _required_member(field, members, "at", "a step needs `at`, the instant from which its value is `to`")
    yield 0, _optional_amount(members, "from")
    yield at_field.duration_ms(low_ms=1), float(to_field.amount())


def _ramp_shape(field: FileField, duration_ms: int) -> Iterator[ShapeStep]:
    """A load that goes from one value to another within `over`, and stays there."""
    members = field.members(("from", "to", "at", "over", "every"))
    high = float(_required_member(field, members, "to", "a ramp needs `to`, its value at its end").amount())
    low, at_ms = _optional_amount(members, "from"), optional_duration_ms(members, "at", 0)
    every_ms = _read_every_ms(members, _DEFAULT_EVERY_MS)
    over_ms = max(optional_duration_ms(members, "over", duration_ms - at_ms), 1)
    yield 0, low
    yield from _sample_steps(lambda elapsed_ms: low + (high - low) * elapsed_ms / over_ms, at_ms, over_ms, every_ms)
    yield at_ms + over_ms, high


def _diurnal_shape(field: FileField, duration_ms: int) -> Iterator[ShapeStep]:
    """A load that follows a cosine between `low` and `high`, with its highest value at `peak` of each period."""
    members = field.members(("low", "high", "period", "peak", "every"))
    high = float(
        _required_member(field, members, "high", "a diurnal load needs `high`, its value at its peak").amount()
    )
    low, period_ms = _optional_amount(members, "low"), max(optional_duration_ms(members, "period", _DAY_MS), 1)
    peak_ms = optional_duration_ms(members, "peak", period_ms // 2)
    if low > high:
        raise members["low"].error("`low` is above `high`")

    def value_at(ms: float) -> float:
        return low + (high - low) * (1 + math.cos(2 * math.pi * (ms - peak_ms) / period_ms)) / 2

    return _sample_steps(value_at, 0, duration_ms, _read_every_ms(members, _DIURNAL_EVERY_MS))


def _spike_shape(field: FileField, duration_ms: int) -> Iterator[ShapeStep]:
    """A load that rises from zero to `height`, stays there for `hold`, and falls to zero again."""
    del duration_ms
    members = field.members(("height", "at", "rise", "hold", "fall", "every"))
    height = float(_required_member(field, members, "height", "a spike needs `height`, its value at its top").amount())
    at_ms = _required_member(field, members, "at", "a spike needs `at`, the instant at which it begins").duration_ms()
    rise_ms, fall_ms = optional_duration_ms(members, "rise", 0), optional_duration_ms(members, "fall", 0)
    hold_ms, every_ms = optional_duration_ms(members, "hold", 60_000), _read_every_ms(members, _DEFAULT_EVERY_MS)
    top_ms = at_ms + rise_ms
    yield 0, 0.0
    yield from _sample_steps(lambda elapsed_ms: height * elapsed_ms / rise_ms, at_ms, rise_ms, every_ms)
    yield top_ms, height
    yield from _sample_steps(
        lambda elapsed_ms: height * (1 - elapsed_ms / fall_ms), top_ms + hold_ms, fall_ms, every_ms
    )
    yield top_ms + hold_ms + fall_ms, 0.0


def _sample_steps(value_at: Callable[[float], float], at_ms: int, over_ms: int, every_ms: int) -> Iterator[ShapeStep]:
    """The value at the middle of each step within `over_ms` from `at_ms` on, at which the time of `value_at` begins."""
    for begin_ms in range(0, over_ms, every_ms):
        end_ms = min(begin_ms + every_ms, over_ms)
        yield at_ms + begin_ms, value_at((begin_ms + end_ms) / 2)


SHAPES: dict[str, Callable[[FileField, int], Iterator[ShapeStep]]] = {
    "step": _step_shape,
    "ramp": _ramp_shape,
    "diurnal": _diurnal_shape,
    "spike": _spike_shape,
}
"""The shapes that stand alone, by name; `noise` is added to another load."""
