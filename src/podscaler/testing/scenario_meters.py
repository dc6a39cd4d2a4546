"""Meters: the results of the metrics APIs in a scenario, such as a load that pods share, values over time, failures.

`podscaler.testing.scenario.Scenario` takes one meter for each entry of `spec.metrics`. Amounts are in thousandths. An
amount that changes is a mapping from seconds, `{0: 250, 900: 700}`: 250 from second 0 on, 700 from second 900 on.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from podscaler.base.clock import NANOSECONDS
from podscaler.core.model.observation import Failure, Measurement, PodSamples, Sample, Values
from podscaler.testing.scenario_target import ScenarioTarget

Amount = int | Mapping[float, int]
"""An amount in thousandths that is constant, or changes at these seconds."""


class ScenarioMoment(NamedTuple):
    """The moment of a query: seconds since the start of the scenario, the instant in ns, and the target."""

    at_s: float
    now: int
    target: ScenarioTarget


Meter = Callable[[ScenarioMoment], Measurement]
"""A function that returns the result of one metric at a moment."""

_T = TypeVar("_T")


def _at(steps: Mapping[float, _T], at_s: float) -> _T:
    """The value of the latest step that is not after `at_s`; there must be one at second 0."""
    return steps[max(since_s for since_s in steps if since_s <= max(at_s, 0))]


def amount_at(amount: Amount, at_s: float) -> int:
    """The amount at a second; before second 0 it is the amount at 0."""
    return amount if isinstance(amount, int) else _at(amount, at_s)


def shared(total: Amount, *, window_s: float = 0, lag_s: float = 0) -> Meter:
    """A load that the ready pods share evenly; other running pods have 0.

    Args:
        window_s: the window of the samples, in seconds.
        lag_s: the delay after which the metrics API shows a changed load.
    """

    def answer(moment: ScenarioMoment) -> Measurement:
        serving = [pod.name for pod in moment.target.serving(moment.now)]
        share, rest = divmod(amount_at(total, moment.at_s - lag_s), max(len(serving), 1))
        usage = {name: share + (index < rest) for index, name in enumerate(serving)}
        return _samples(moment, {pod.name: usage.get(pod.name, 0) for pod in moment.target.pods}, window_s)

    return answer


def alike(amount: Amount, *, window_s: float = 0) -> Meter:
    """The same amount for each running pod; `window_s` is the window of the samples."""
    return lambda moment: _samples(
        moment, {pod.name: amount_at(amount, moment.at_s) for pod in moment.target.pods}, window_s
    )


def each(*amounts: int) -> Meter:
    """One amount for each of the first pods; the others have no sample."""
    return lambda moment: _samples(
        moment, dict(zip((pod.name for pod in moment.target.pods), amounts, strict=False)), 0
    )


def _samples(moment: ScenarioMoment, usage: Mapping[str, int], window_s: float) -> PodSamples:
    """The samples of the running pods that the metrics API knows."""
    sampled_pods = [pod for pod in moment.target.pods if pod.reports and pod.phase == "Running" and pod.name in usage]
    window_ns = round(window_s * NANOSECONDS)
    samples = {pod.name: Sample(usage[pod.name], moment.now, window_ns) for pod in sampled_pods}
    return PodSamples(samples, is_empty=not samples)


def values(*amounts: Amount) -> Meter:
    """The values of an Object or External metric."""
    return lambda moment: Values(tuple(amount_at(amount, moment.at_s) for amount in amounts))


def failing(message: str) -> Meter:
    """A metrics API that responds with an error."""
    return lambda moment: Failure(message)


def in_turn(meters: Mapping[float, Meter]) -> Meter:
    """Several meters, each used from its second on."""
    return lambda moment: _at(meters, moment.at_s)(moment)
