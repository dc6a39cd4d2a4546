"""Computes how many pods a load needs over time, independent of any autoscaler and of its targets.

    needed = max(1, ceil(demand / (capacity of a pod * highest utilization)))

The capacity of a pod is a stated one, or else its CPU limit without its idle use, or else its CPU request. The highest
utilization is that at which the mean response time still meets the SLO (`utilization_at_slo`); without an SLO it is 1.
At least one pod is needed, since a service without load must still respond.

The response time of a pod with one core or less is T = S / (1 - rho): S is the service time of a request alone
(`load_serving.service_ms`), rho the utilization. A pod with c whole cores is an M/M/c queue.

Invariant: nothing depends on an autoscaler's target. Otherwise the surplus would only restate its headroom (a target
of 70 % has 43 % more pods than the load needs at full utilization).

Called by `podscaler.cli.backtest` and `podscaler.simulation.fleet.trials`: `pod_capacity`, `cpu_demand`, then
`needed_series` of both. `utilization_at_slo` is the inverse of `load_serving.response_time_ms`: change both together.

Source: L. Kleinrock, Queueing Systems, volume 2 (1976), 4.4 (processor sharing); volume 1 (1975), 3.5 (M/M/m).
"""

import math

import msgspec

from podscaler.simulation.model import step_series
from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.model.workloads import RequestLoad, WorkloadModel
from podscaler.simulation.world import load_serving

_UCORES_PER_MILLI = 1000
_BISECTIONS = 50
"""Halvings of the interval from 0 to 1; the remaining width 2**-50 is below a millionth of a core of any pod."""


class PodCapacity(msgspec.Struct, frozen=True):
    """The demand that one pod can carry.

    Attributes:
        ucores: in millionths of a core, above 0.
        basis: where the figure comes from, as a phrase such as `the CPU limit`.
    """

    ucores: int
    basis: str


def pod_capacity(
    workload: WorkloadModel, *, slo_ms: float | None = None, stated_milli: int | None = None
) -> PodCapacity:
    """The demand that one pod of a workload can carry.

    Args:
        slo_ms: the mean response time that is to be met; None if there is no SLO.
        stated_milli: the capacity of a pod in thousandths of a core, in place of its limit or request.

    Raises ValueError if `stated_milli` is not above 0, if it is None and the workload has neither limit nor request, if
    an SLO is stated for a load without requests, and if no utilization meets the SLO.
    """
    full_capacity = _full_capacity(workload, stated_milli)
    if slo_ms is None:
        return full_capacity
    if workload.requests is None:
        raise ValueError(f"{workload.key}: a response time needs a load of requests; this load is CPU alone")
    utilization = utilization_at_slo(workload.requests, full_capacity.ucores, slo_ms)
    ucores = math.floor(full_capacity.ucores * utilization)
    if ucores <= 0:
        alone_ms = workload.requests.latency_ms + load_serving.service_ms(workload.requests, full_capacity.ucores)
        raise ValueError(
            f"{workload.key}: no number of pods meets {slo_ms:g} ms: a request alone takes {alone_ms:g} ms"
        )
    return PodCapacity(
        ucores, f"{full_capacity.basis} at the utilization of {utilization:.0%} that meets {slo_ms:g} ms"
    )


def _full_capacity(workload: WorkloadModel, stated_milli: int | None) -> PodCapacity:
    """The demand of a pod at full utilization. Raises ValueError as `pod_capacity` does without an SLO."""
    if stated_milli is not None:
        if stated_milli <= 0:
            raise ValueError(f"{workload.key}: the capacity of a pod must be above 0")
        return PodCapacity(stated_milli * _UCORES_PER_MILLI, "the stated capacity")
    if workload.cpu_capacity_ucores:  # None without a limit; 0 if idle use takes all of it
        return PodCapacity(workload.cpu_capacity_ucores, "the CPU limit")
    request_milli = workload.pod.request_milli.get("cpu", 0)
    if request_milli:
        return PodCapacity(request_milli * _UCORES_PER_MILLI, "the CPU request")
    raise ValueError(
        f"{workload.key}: its pods have neither a CPU limit nor a CPU request; state the capacity of a pod"
    )


def utilization_at_slo(requests: RequestLoad, capacity_ucores: int, slo_ms: float) -> float:
    """The highest utilization at which the mean response time is at most `slo_ms`; 0 if there is none.

    For one core or less: rho = 1 - S / (SLO - latency). For more cores it is found by bisection in the response time of
    M/M/c, which rises with the utilization.
    """
    cpu_budget_ms = slo_ms - requests.latency_ms
    service_ms = load_serving.service_ms(requests, capacity_ucores)
    if cpu_budget_ms <= service_ms:
        return 0.0
    cores = load_serving.server_cores(capacity_ucores)
    if cores == 1:
        return 1 - service_ms / cpu_budget_ms
    feasible, infeasible = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (feasible + infeasible) / 2
        if service_ms + load_serving.waiting_ms(service_ms, cores, middle) <= cpu_budget_ms:
            feasible = middle
        else:
            infeasible = middle
    return feasible


def needed_pods(demand_ucores: int, capacity: PodCapacity) -> int:
    """The pods that a demand needs, at least 1."""
    return max(-(-demand_ucores // capacity.ucores), 1)  # rounded up


def needed_series(demand: StepSeries, capacity: PodCapacity) -> StepSeries:
    """The needed pods over time, for a demand in millionths of a core."""
    steps = zip(demand.at_ms, demand.values, strict=True)
    return step_series.from_steps((at_ms, needed_pods(value, capacity)) for at_ms, value in steps)


def cpu_demand(workload: WorkloadModel) -> StepSeries:
    """The demand for CPU over time, in millionths of a core.

    Raises ValueError if the workload has no load of requests or CPU.
    """
    requests = workload.requests
    if requests is not None:
        demands_ucores = [load_serving.request_demand_ucores(requests, rate) for rate in requests.rate.values]
        return StepSeries(requests.rate.at_ms, tuple(demands_ucores))
    for load in workload.demands:
        if load.resource == "cpu":
            return load.total
    raise ValueError(f"{workload.key}: it has no load of requests or CPU, so the pods that it needs are unknown")
