"""The needed pods of a load, and the reactions to its surges."""

import pytest
import simulated
from hypothesis import given
from hypothesis import strategies as st

from podscaler.simulation.evaluation import demand, surges
from podscaler.simulation.evaluation.demand import PodCapacity
from podscaler.simulation.evaluation.surges import Reaction, ReactionSummary
from podscaler.simulation.model.step_series import StepSeries, constant
from podscaler.simulation.model.workloads import RequestLoad, ResourceLoad, WorkloadModel
from podscaler.simulation.world import load_serving

MINUTE_MS = 60_000


def requests(*, cpu_ms: float = 20, latency_ms: int = 0) -> RequestLoad:
    """100 requests per second."""
    return RequestLoad(rate=constant(100_000), cpu_per_request_us=round(cpu_ms * 1000), latency_ms=latency_ms)


def web(limit: int | None = 1000, request: int = 500, load: RequestLoad | None = None) -> WorkloadModel:
    """A workload whose pods have this limit and request, with requests."""
    return simulated.web(requests=load or requests(), pod=simulated.pod(request, limit=limit))


@pytest.mark.parametrize(
    ("workload", "stated_milli", "slo_ms", "expected"),
    [
        pytest.param(web(), None, None, PodCapacity(1_000_000, "the CPU limit"), id="limit"),
        pytest.param(web(None), None, None, PodCapacity(500_000, "the CPU request"), id="request"),
        pytest.param(web(), 250, None, PodCapacity(250_000, "the stated capacity"), id="stated"),
        pytest.param(
            web(),
            None,
            100,
            PodCapacity(800_000, "the CPU limit at the utilization of 80% that meets 100 ms"),
            id="slo-of-five-service-times-leaves-a-fifth",
        ),
        pytest.param(
            web(500),
            None,
            80,
            PodCapacity(250_000, "the CPU limit at the utilization of 50% that meets 80 ms"),
            id="half-a-core-takes-twice-as-long",
        ),
    ],
)
def test_capacity_of_a_pod(
    workload: WorkloadModel, stated_milli: int | None, slo_ms: float | None, expected: PodCapacity
):
    """rho = 1 - S / SLO of the limit, or else of the request."""
    assert demand.pod_capacity(workload, slo_ms=slo_ms, stated_milli=stated_milli) == expected


@pytest.mark.parametrize(
    ("workload", "stated_milli", "slo_ms", "sentence"),
    [
        pytest.param(web(None, 0), None, None, "neither a CPU limit nor a CPU request", id="no-capacity"),
        pytest.param(web(), 0, None, "must be above 0", id="stated-zero"),
        pytest.param(web(), None, 20, "no number of pods meets 20 ms: a request alone takes 20 ms", id="slo-too-short"),
        pytest.param(
            simulated.web(constant(1), pod=simulated.pod(500)), None, 20, "needs a load of requests", id="cpu"
        ),
    ],
)
def test_impossible_capacities(workload: WorkloadModel, stated_milli: int | None, slo_ms: float | None, sentence: str):
    """A sentence says what is needed."""
    with pytest.raises(ValueError, match=sentence):
        demand.pod_capacity(workload, slo_ms=slo_ms, stated_milli=stated_milli)


@given(st.integers(1, 8), st.floats(1.1, 50))
def test_the_utilization_meets_the_slo_and_hardly_less_than_it(cores: int, factor: float):
    """In the formula of the engine, for any number of cores."""
    load, capacity_ucores = requests(latency_ms=3), cores * 1_000_000
    slo_ms = 3 + 20 * factor
    utilization = demand.utilization_at_slo(load, capacity_ucores, slo_ms)
    if utilization < 0.99:
        latency_ms = load_serving.response_time_ms(load, capacity_ucores, utilization * capacity_ucores, 0)
        assert latency_ms == pytest.approx(slo_ms, rel=1e-6)


def test_needed_pods_round_up_and_are_at_least_one():
    """At -1, 0 and +1 of a full capacity."""
    capacity = PodCapacity(1_000, "")
    assert [demand.needed_pods(value, capacity) for value in (0, 999, 1000, 1001, 2000)] == [1, 1, 1, 2, 2]


def test_needed_series_has_steps_where_pods_change():
    """A change of the demand within a pod is no step."""
    series = StepSeries((0, 10, 20, 30), (500, 900, 2_500, 100))
    assert demand.needed_series(series, PodCapacity(1_000, "")) == StepSeries((0, 20, 30), (1, 3, 1))


def test_the_demand_of_requests_is_rate_times_cpu():
    """100 requests per second of 20 ms need 2 cores."""
    assert demand.cpu_demand(web()) == constant(2_000_000)


def test_memory_alone_has_no_needed_pods():
    """A sentence says so."""
    memory = WorkloadModel(
        key="default/web", pod=simulated.pod(), demands=(ResourceLoad(resource="memory", total=constant(1)),)
    )
    with pytest.raises(ValueError, match="the pods that it needs are unknown"):
        demand.cpu_demand(memory)


def test_reactions_to_two_surges():
    """2 to 3 is a surge (1.5 times); 3 to 4 within it is none; 4 to 8 later is one that never ends."""
    at_ms = [minute * MINUTE_MS for minute in range(8)]
    needed, supplied = [2, 3, 4, 4, 4, 8, 8, 8], [2, 2, 3, 4, 4, 4, 6, 7]
    found = surges.reactions(at_ms, needed, supplied)
    assert found == (Reaction(1 * MINUTE_MS, 2, 3, 2 * MINUTE_MS), Reaction(5 * MINUTE_MS, 3, 8, None))
    assert surges.summary(found, at_ms[-1]) == ReactionSummary(2, 2 * MINUTE_MS, 2 * MINUTE_MS, 1)


def test_a_slow_rise_is_no_surge():
    """1.5 times in six minutes is too slow."""
    at_ms = [0, 3 * MINUTE_MS, 6 * MINUTE_MS]
    assert surges.reactions(at_ms, [10, 12, 15], [0, 0, 0]) == ()
    assert surges.summary((), 0) == ReactionSummary(0, None, None)


def test_a_supply_that_suffices_reacts_at_once():
    """0 milliseconds."""
    assert surges.reactions([0, 1], [1, 4], [5, 5]) == (Reaction(1, 1, 4, 0),)
