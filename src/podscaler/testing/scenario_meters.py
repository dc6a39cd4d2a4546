"""What the metrics APIs answer in a scenario: loads that pods share, fixed values, values over time, failures.

Given to `podscaler.testing.scenario`, one meter for each entry of `spec.metrics`. Amounts are thousandths; one that
changes is written as steps, `{0: 250, 900: 700}`: 250 from second 0 on, 700 from second 900 on.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from podscaler.base.clock import NANOSECONDS
from podscaler.core.model.model import Failure, Measurement, PodSamples, Sample, Values
from podscaler.testing.scenario_target import ScenarioTarget

Amount = int | Mapping[float, int]


class ScenarioMoment(NamedTuple):
    """The moment at which somebody asks: seconds since the scenario began, the instant, and the target then."""

    at_s: float
    now: int
    target: ScenarioTarget


Meter = Callable[[ScenarioMoment], Measurement]

_T = TypeVar("_T")


def _at(steps: Mapping[float, _T], at_s: float) -> _T:
    return steps[max(since_s for since_s in steps if since_s <= max(at_s, 0))]


def amount_at(amount: Amount, at_s: float) -> int:
    """The amount at a second; before the first it is that of the first."""
    return amount if isinstance(amount, int) else _at(amount, at_s)


def shared(total: Amount, *, window_s: float = 0, lag_s: float = 0) -> Meter:
    """A load that the pods in service share evenly; others that run are idle.

    Args:
        window_s: over how long samples are averaged; a pod's first ones after it got ready do not count for CPU.
        lag_s: how late the metrics API learns of a changed load.
    """

    def answer(look: ScenarioMoment) -> Measurement:
        serving = [pod.name for pod in look.target.serving(look.now)]
        share, rest = divmod(amount_at(total, look.at_s - lag_s), max(len(serving), 1))
        usage = {name: share + (index < rest) for index, name in enumerate(serving)}
        return _samples(look, {pod.name: usage.get(pod.name, 0) for pod in look.target.pods}, window_s)

    return answer


def alike(amount: Amount, *, window_s: float = 0) -> Meter:
    """The same for each pod, however many there are, averaged over a window."""
    return lambda look: _samples(look, {pod.name: amount_at(amount, look.at_s) for pod in look.target.pods}, window_s)


def each(*amounts: int) -> Meter:
    """One amount for each of the first pods."""
    return lambda look: _samples(look, dict(zip((pod.name for pod in look.target.pods), amounts, strict=False)), 0)


def _samples(look: ScenarioMoment, usage: Mapping[str, int], window_s: float) -> PodSamples:
    """The samples of those pods that run and report."""
    known = [pod for pod in look.target.pods if pod.reports and pod.phase == "Running" and pod.name in usage]
    window_ns = round(window_s * NANOSECONDS)
    samples = {pod.name: Sample(usage[pod.name], look.now, window_ns) for pod in known}
    return PodSamples(samples, is_empty=not samples)


def values(*amounts: Amount) -> Meter:
    """The values of an Object or External metric."""
    return lambda look: Values(tuple(amount_at(amount, look.at_s) for amount in amounts))


def failing(message: str) -> Meter:
    """An API that answers with an error."""
    return lambda look: Failure(message)


def in_turn(meters: Mapping[float, Meter]) -> Meter:
    """One meter after another, each from its second on."""
    return lambda look: _at(meters, look.at_s)(look)
