"""Scalers beside the HPA, and the comparison of candidates in one world."""

import pytest
import simulated

from podscaler.simulation import scaler_runs
from podscaler.simulation.evaluation import candidates, comparison, demand, verdict
from podscaler.simulation.evaluation.candidates import FixedCount, Hindsight
from podscaler.simulation.evaluation.comparison import Candidate, CandidateComparison, Needs
from podscaler.simulation.evaluation.knative import Knative, KnativeConfig
from podscaler.simulation.evaluation.surges import ReactionSummary
from podscaler.simulation.model.results import WorkloadState
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.model.workloads import RequestLoad

CORE = 1_000_000


def surge(seconds: float = 900) -> SimulationScenario:
    """A load that needs 2 pods of one core, 6 from second 302 on, and 2 again from second 602 on."""
    workload = simulated.web(
        simulated.load({0: 2, 302: 6, 602: 2}), pod=simulated.pod(1000, limit=1000, startup_s=8), replicas=2
    )
    return simulated.scenario(workload, simulated.cpu_spec(50), seconds=seconds)


def needs(scenario: SimulationScenario, **more: float) -> Needs:
    """The needs of the scenario's load."""
    (workload,) = scenario.workloads
    capacity = demand.pod_capacity(workload, slo_ms=more.get("slo_ms"))
    return Needs(capacity=capacity, pods=demand.needed_series(demand.cpu_demand(workload), capacity), **more)


def hindsight(scenario: SimulationScenario) -> Candidate:
    """Perfect hindsight of the scenario."""
    (workload,) = scenario.workloads
    pods, lead_ms = needs(scenario).pods, candidates.lead_ms(workload, scenario)
    return Candidate(
        name="hindsight", policy=lambda: Hindsight(pods, lead_ms, scenario.sync_period_ms), is_attainable=False
    )


def results(scenario: SimulationScenario, *others: Candidate, **more: float) -> CandidateComparison:
    """The comparison of the scenario's autoscaler with others."""
    present = Candidate(name="present", policy=scenario.autoscalers[0].spec)
    return comparison.compare(scenario, [present, *others], needs(scenario, **more))


def test_hindsight_has_every_pod_in_time_and_releases_it_at_the_next_tick():
    """The pods are asked for 11 seconds and a tick ahead: 1 s actuation, 2 s launch, 8 s start."""
    stated = surge()
    _, found = results(stated, hindsight(stated)).results
    assert (found.elasticity.under_timeshare_pct, found.scale_changes) == (0.0, 2)
    assert found.reactions == ReactionSummary(1, 0, 0)
    surplus = [supply - need for need, supply in zip(results(stated).needed, found.run.ready, strict=True)]
    assert sum(each > 0 for each in surplus) <= 3


def test_a_load_that_meets_the_slo_exactly_does_not_miss_it():
    """4 pods of one core and 160 requests per second of 20 ms: 80 % utilization, 100 ms."""
    load = RequestLoad(rate=simulated.load({0: 160}, 1000), cpu_per_request_us=20_000)
    workload = simulated.web(requests=load, pod=simulated.pod(1000, limit=1000), replicas=4)
    stated = simulated.scenario(workload, simulated.cpu_spec(80), seconds=300)
    for found in results(stated, hindsight(stated), slo_ms=100).results:
        assert (found.slo_missed_pct, found.elasticity.over_timeshare_pct) == (0.0, 0.0)


def test_a_fixed_count_starts_and_stays():
    """Pod-hours are its pods times the syncs' periods, and nothing changes."""
    fixed = Candidate(name="fixed 6", policy=lambda: FixedCount(6), replicas=6)
    _, found = results(surge(), fixed).results
    assert (set(found.run.ready), found.scale_changes, found.pod_hours) == ({6}, 0, pytest.approx(6 * 61 * 15 / 3600))


def test_only_the_part_that_counts_is_measured():
    """From second 450 on there are 31 syncs."""
    found = results(surge(), from_ms=450_000)
    assert (found.at_ms[0], len(found.needed), len(found.results[0].run.ready)) == (450_000, 31, 31)


def test_the_present_spec_has_the_speedup_one():
    """A ratio to itself."""
    assert results(surge()).results[0].speedup == pytest.approx(1.0)


def test_no_time_that_counts():
    """A sentence says so."""
    with pytest.raises(ValueError, match="no sync is in the time that counts"):
        results(surge(), from_ms=10_000_000)


def test_a_candidate_that_starts_at_zero_starts_there():
    """0 replicas at the start are not those of the scenario: its autoscaler is off at 0, and all load is lost."""
    stated = surge(60)
    present, off = results(stated, Candidate(name="off", policy=stated.autoscalers[0].spec, replicas=0)).results
    assert (present.run.ready[0], max(off.run.ready), off.lost_pct) == (2, 0, 100.0)


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param({0: 50, 300: 220, 600: 40}, id="surge"),
        pytest.param({0: 50, 300: 320, 314: 0}, id="end-of-requests-between-syncs"),
    ],
)
def test_batch_and_exact_engine_measure_the_same(rates: dict[float, float], monkeypatch: pytest.MonkeyPatch):
    """The results of both engines are equal but for the engine's name."""
    load = RequestLoad(rate=simulated.load(rates, 1000), cpu_per_request_us=20_000, timeout_ms=2_000)
    workload = simulated.web(requests=load, pod=simulated.pod(1000, limit=1000), replicas=2)
    stated = simulated.scenario(workload, simulated.cpu_spec(60), seconds=900)
    fast = results(stated, slo_ms=80).results[0]
    monkeypatch.setattr(comparison, "_run_in_batch", lambda *_: ())
    slow = results(stated, slo_ms=80).results[0]
    assert (fast.run.engine, slow.run.engine) == ("batch", "exact")
    fast.run.engine = "exact"
    assert fast == slow
    assert (slow.slo_missed_pct or 0) > 0


def test_a_workload_that_is_not_there():
    """A sentence names it."""
    with pytest.raises(ValueError, match="no workload default/other"):
        scaler_runs.run_scaler(surge(), "default/other", FixedCount(1))


# Knative


def state(ready: int, used: float, backlog: float = 0) -> WorkloadState:
    """A workload with pods that used this many cores, and waiting work of core-seconds."""
    return WorkloadState(
        replicas=ready,
        pods=ready,
        ready=ready,
        used_ucores=round(used * CORE),
        backlog_ucores_ms=round(backlog * CORE * 1000),
    )


def knative(**more: int) -> Knative:
    """Knative's algorithm for pods of one core."""
    return Knative(KnativeConfig(target_ucores=CORE, **({"max_replicas": 100} | more)))


def ticks(scaler: Knative, *states: WorkloadState, start_ms: int = 2_000) -> list[int]:
    """The replicas at successive ticks."""
    return [scaler.replicas(start_ms + 2_000 * index, each) for index, each in enumerate(states)]


def test_knative_wants_seventy_percent_of_each_pod():
    """ceil(8 cores / 0.7) = 12."""
    assert ticks(knative(), state(10, 8.0)) == [12]


def test_knative_counts_waiting_work():
    """10 cores in use and a backlog of 6 core-seconds: ceil(16 / 0.7) = 23, above 200 % of 10: panic."""
    assert ticks(knative(), state(10, 10, 6)) == [23]


def test_knative_panics_at_twice_the_ready_pods_and_does_not_scale_down_for_a_window():
    """The panic average wants 20 of 10; later averages want less, and 20 stay until 60 seconds are over."""
    scaler = knative()
    assert ticks(scaler, *[state(10, 14.0)] * 3) == [20, 20, 20]
    later = ticks(scaler, *[state(20, 2.0)] * 40, start_ms=8_000)
    assert later[:29] == [20] * 29
    assert later[30:] == [10] * 10


@pytest.mark.parametrize(
    ("scaler", "given", "replicas"),
    [
        pytest.param(knative(), state(9, 0.1), 4, id="half-of-nine-rounded-down"),
        pytest.param(knative(min_replicas=6), state(9, 0.1), 6, id="minimum"),
        pytest.param(knative(max_replicas=11), state(10, 8.0), 11, id="maximum"),
        pytest.param(knative(), state(0, 0.0), 1, id="one-at-least"),
    ],
)
def test_limits_of_knative(scaler: Knative, given: WorkloadState, replicas: int):
    """Rates and bounds."""
    assert ticks(scaler, given) == [replicas]


def test_knative_keeps_the_replicas_before_its_first_measurement():
    """Nothing is known at the first tick."""
    assert knative().replicas(0, state(3, 0)) == 3


def test_knative_follows_a_surge_in_the_world():
    """While CPU use is limited it grows by 1 / 0.7 for each start of pods: 2, 3, 5 and 8 pods, a minute in all."""
    stated = surge()
    config = KnativeConfig(target_ucores=CORE, max_replicas=20)
    _, found = results(stated, Candidate(name="knative", policy=lambda: Knative(config))).results
    assert (max(found.run.ready), found.reactions) == (9, ReactionSummary(1, 60_000, 60_000))


def serving(ready: int, rate: float, latency_ms: float | None) -> WorkloadState:
    """A workload with requests a second that take this long."""
    return WorkloadState(
        replicas=ready, pods=ready, ready=ready, rate_milli=round(rate * 1000), latency_ms=latency_ms, used_ucores=CORE
    )


def test_knative_counts_requests_by_little_s_law():
    """100 requests/s that take 520 ms are 52 at once: ceil(52 / (0.7 * 10)) = 8."""
    assert ticks(knative(target_concurrency=10), serving(6, 100, 520)) == [8]


def test_knative_averages_concurrency_over_its_window():
    """(52 + 18) / 2 = 35 at once, of which 7 are a pod's target."""
    assert ticks(knative(target_concurrency=10), serving(6, 100, 520), serving(8, 100, 180)) == [8, 5]


def test_knative_measures_no_concurrency_without_a_ready_pod():
    """The readings before count, here 7 at once, and half of the ready pods at least."""
    scaler = knative(target_concurrency=10)
    assert ticks(scaler, serving(1, 10, 700), serving(0, 50, None)) == [1, 1]


def test_knative_follows_concurrency_in_the_world():
    """20 ms of CPU and 480 ms of other services: pods are needed for requests that wait elsewhere, not for CPU."""
    requests = RequestLoad(rate=simulated.load({0: 20, 300: 100}, 1000), cpu_per_request_us=20_000, latency_ms=480)
    workload = simulated.web(requests=requests, pod=simulated.pod(1000, limit=1000), replicas=2)
    stated = simulated.scenario(workload, simulated.cpu_spec(50), seconds=600)
    config = KnativeConfig(target_ucores=CORE, target_concurrency=10, max_replicas=20)
    _, found = results(stated, Candidate(name="knative", policy=lambda: Knative(config))).results
    assert (found.run.ready[10], found.run.ready[-1]) == (2, 8)


# The sentence


def compared(needed: list[int], **ready: list[int]) -> CandidateComparison:
    """The comparison of these supplies, with a common period of an hour."""
    stated = surge()
    (template,) = results(stated).results
    found = []
    for name, supplied in ready.items():
        run = comparison.Run(ready=supplied)
        found.append(
            comparison.CandidateResult(
                **{field: getattr(template, field) for field in template.__struct_fields__}
                | {"name": name, "run": run, "pod_hours": float(sum(supplied))}
            )
        )
    return CandidateComparison(at_ms=range(len(needed)), needed=needed, sync_period_ms=3_600_000, results=tuple(found))


@pytest.mark.parametrize(
    ("needed", "present", "other", "expected"),
    [
        pytest.param(
            [4] * 20, [8] * 20, [6] * 20, "other is better than the present spec: 25% fewer pod-hours", id="cheaper"
        ),
        pytest.param([4] * 20, [2] * 20, [2] * 20, "within the noise", id="equal"),
        pytest.param([4] * 20, [4] * 20, [5] * 20, "each has more pod-hours or more missing pods", id="worse"),
        pytest.param([4] * 20, [2] * 20, [4] * 20, "other has 100% more pod-hours and no missing pods", id="trade-off"),
        pytest.param(
            [4] * 20, [4, 6] * 10, [4, 6] * 8 + [1, 12] + [4, 6], "within the noise", id="one-part-differs-alone"
        ),
    ],
)
def test_the_sentence(needed: list[int], present: list[int], other: list[int], expected: str):
    """Better in one measure and not worse in the other, beyond the noise."""
    assert expected in verdict.sentence(compared(needed, present=present, other=other))


def test_hindsight_is_no_candidate():
    """Nobody can use it."""
    stated = surge()
    assert verdict.sentence(results(stated, hindsight(stated))) == "There is no candidate besides the present spec."
