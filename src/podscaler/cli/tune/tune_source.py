"""Reads what `podscaler tune` improves: a scenario file with one autoscaler, and the pods that its load needs."""

from pathlib import Path

import msgspec

from podscaler.api.machinery import quantity
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.cli.simulate import range_queries
from podscaler.simulation.evaluation import demand
from podscaler.simulation.evaluation.demand import PodCapacity
from podscaler.simulation.files import fields, scenario_file
from podscaler.simulation.files.loads import RangeRequest
from podscaler.simulation.model.scenario import SimulationScenario


class TuneSource(msgspec.Struct, frozen=True, kw_only=True):
    """One autoscaler and its load.

    Attributes:
        wire: the present spec in the API's form.
        needed: for each sync the pods that the load needs.
        capacity: of one pod.
        slo_ms: the mean response time to meet; None: there is none.
    """

    scenario: SimulationScenario
    wire: HorizontalPodAutoscalerSpec
    needed: tuple[int, ...]
    capacity: PodCapacity
    slo_ms: float | None


def read(path: Path, *, latency: str | None, capacity: str | None) -> TuneSource:
    """The source of a scenario file. Raises UsageError.

    Args:
        latency: a duration such as `200ms`; None: there is no goal for response times.
        capacity: of a pod, a quantity of CPU; None: its limit, else its request.
    """
    found = scenario_file.read(path, range_query=_range_query)
    scenario = found.scenario
    if len(scenario.autoscalers) != 1:
        names = ", ".join(each.spec.key for each in scenario.autoscalers)
        raise UsageError(f"{path} has {len(scenario.autoscalers)} autoscalers ({names}); tune improves one at a time")
    (autoscaler,) = scenario.autoscalers
    workload = next(each for each in scenario.workloads if each.key == autoscaler.workload)
    slo_ms = None if latency is None else _duration_ms(latency)
    try:
        of_pod = demand.pod_capacity(workload, slo_ms=slo_ms, stated_milli=_milli(capacity))
        pods = demand.needed_series(demand.cpu_demand(workload), of_pod)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    at_ms = range(scenario.first_sync_ms, scenario.duration_ms + 1, scenario.sync_period_ms)
    return TuneSource(
        scenario=scenario,
        wire=found.wires[autoscaler.spec.key],
        needed=tuple([pods.value_at(instant_ms) for instant_ms in at_ms]),
        capacity=of_pod,
        slo_ms=slo_ms,
    )


def _range_query(request: RangeRequest) -> list[tuple[float, str]]:
    return list(range_queries.read(request))


def _duration_ms(text: str) -> float:
    try:
        return float(fields.parse_duration_ms(text))
    except ValueError as error:
        raise UsageError(f"--latency {text}: {error}") from None


def _milli(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return quantity.parse(text).milli_value()
    except ValueError as error:
        raise UsageError(f"--capacity {text}: {error}") from None
