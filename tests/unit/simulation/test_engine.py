"""A scenario's syncs: what the documentation's examples lead to, in time order, for one seed always the same."""

import msgspec
import pytest
import simulated

from podscaler.api.typed import autoscaling
from podscaler.core.model.settings import Settings
from podscaler.simulation import engine
from podscaler.simulation.model.distributions import DurationDistribution
from podscaler.simulation.model.results import row
from podscaler.simulation.model.scenario import (
    OUTAGE_MESSAGE,
    ClusterModel,
    ManualScale,
    MetricFeed,
    MetricsOutage,
    MetricsServerModel,
    RolloutStart,
    SpecEdit,
)
from podscaler.simulation.model.step_series import constant

IMMEDIATE = MetricsServerModel(lag_ms=0)


def external(value: str = "20", average: bool = False) -> autoscaling.MetricSpec:
    """An External metric `jobs` with a Value or an AverageValue target."""
    target = (
        autoscaling.MetricTarget(type="AverageValue", average_value=value)
        if average
        else autoscaling.MetricTarget(type="Value", value=value)
    )
    identifier = autoscaling.MetricIdentifier(name="jobs")
    return autoscaling.MetricSpec(
        type="External", external=autoscaling.ExternalMetricSource(metric=identifier, target=target)
    )


def test_305_percent_of_50_is_seven_pods():
    """The walkthrough: ceil(1 * 305 / 50) = 7, in two steps of the default rates, and back after five minutes."""
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 0, 60: 0.61, 600: 0})), simulated.cpu_spec(50), seconds=1000
    )
    assert simulated.rescales(stated) == [(90, 4), (105, 7), (930, 1)]


def test_every_sync_is_yielded_in_order():
    """One sync each period, from the start to the end, both included."""
    stated = simulated.scenario(simulated.web(simulated.load({0: 0.1})), simulated.cpu_spec(), seconds=60)
    assert [sync.at_ms for sync in engine.simulate(stated)] == [0, 15_000, 30_000, 45_000, 60_000]


def test_one_seed_has_one_result():
    """Draws of start-up times, crashes and failed measurements depend on the seed alone."""
    pod = simulated.pod(200, crashes_per_hour=20, launch=DurationDistribution("lognormal", 2_000, 9_000), startup_s=8)
    workload = simulated.web(simulated.load({0: 0.3, 100: 1.2, 700: 0.2}), pod=pod)
    lossy = MetricsServerModel(dropout_ratio=0.2)

    def rows(seed: int) -> list[bytes]:
        stated = simulated.scenario(workload, simulated.cpu_spec(), seconds=1800, seed=seed, metrics_server=lossy)
        return [msgspec.json.encode(row(sync)) for sync in engine.simulate(stated)]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_a_window_holds_the_highest_recommendation():
    """KEP-853: with a down window of ten minutes and a sync a minute the 10 holds until it has left the window."""
    wanted = [10, 9, 8, 9, 9, 8, 9, 8, 9, 8, 7]
    feed = MetricFeed(metric="jobs", values=simulated.load({60 * i: n for i, n in enumerate(wanted)}, 1000))
    down = autoscaling.HPAScalingRules(stabilization_window_seconds=600)
    behavior = autoscaling.HorizontalPodAutoscalerBehavior(scale_down=down)
    stated = simulated.scenario(
        simulated.web(replicas=10),
        simulated.metric_spec(external("1", average=True), behavior=behavior, maximum=20),
        seconds=600,
        sync_period_ms=60_000,
        feeds=(feed,),
        settings=Settings(tolerance=0),
    )
    assert simulated.rescales(stated) == [(600, 9)]


def test_rates_allow_one_pod_in_five_minutes():
    """KEP-853: 1 pod in 300 s goes 1, 2, 3, 4."""
    policy = autoscaling.HPAScalingPolicy("Pods", 1, 300)
    behavior = autoscaling.HorizontalPodAutoscalerBehavior(scale_up=autoscaling.HPAScalingRules(policies=(policy,)))
    stated = simulated.scenario(
        simulated.web(),
        simulated.metric_spec(external("1"), behavior=behavior, maximum=50),
        seconds=899,
        feeds=(MetricFeed(metric="jobs", values=constant(50_000)),),
    )
    assert simulated.rescales(stated) == [(0, 2), (300, 3), (600, 4)]


def test_a_metric_shows_after_its_lag():
    """A value of second 60 with a lag of 20 s is read at second 90."""
    feed = MetricFeed(metric="jobs", values=simulated.load({0: 20, 60: 60}, 1000), lag_ms=20_000)
    stated = simulated.scenario(simulated.web(), simulated.metric_spec(external("20")), seconds=120, feeds=(feed,))
    assert simulated.rescales(stated)[0] == (90, 3)


def test_a_queue_is_worked_off_and_left():
    """An autoscaler over the number of waiting requests scales a worker up from one pod and back."""
    requests = simulated.RequestLoad(
        rate=simulated.load({0: 0, 30: 20, 330: 0}, 1000),
        cpu_per_request_us=500_000,
        timeout_ms=None,
        queue_metric="jobs",
    )
    workload = simulated.web(requests=requests, pod=simulated.pod(limit=1000))
    stated = simulated.scenario(workload, simulated.metric_spec(external("30", average=True), maximum=20), seconds=1800)
    rows = [row(sync) for sync in engine.simulate(stated)]
    assert max(each.replicas for each in rows) > 5
    assert (rows[-1].replicas, rows[-1].backlog_core_s) == (1, 0)
    assert all(each.lost_ratio == 0 for each in rows)


def test_an_outage_is_an_error_of_the_metrics_api():
    """While the API does not respond the replicas stay, and the sync says why."""
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 0.3})),
        simulated.cpu_spec(),
        seconds=60,
        outages=(MetricsOutage(30_000, 60_000, "cpu"),),
    )
    errors = [row(sync).error for sync in engine.simulate(stated)]
    assert [OUTAGE_MESSAGE in error for error in errors] == [False, False, True, True, False]


def test_scaled_by_hand_and_back():
    """A user's count lasts until the metrics ask for another one."""
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 0.1})),
        simulated.cpu_spec(),
        seconds=400,
        events=(ManualScale(20_000, "default/web", 6),),
    )
    replicas = {sync.at_ms: sync.workload.replicas for sync in engine.simulate(stated)}
    assert (replicas[15_000], replicas[30_000]) == (1, 6)
    assert simulated.rescales(stated)[-1][1] == 1


def test_zero_replicas_pause_the_autoscaler():
    """Maintenance mode: a target that is scaled to zero by hand stays there."""
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 1})),
        simulated.cpu_spec(),
        seconds=600,
        events=(ManualScale(200_000, "default/web", 0),),
    )
    assert list(engine.simulate(stated))[-1].workload.replicas == 0


def test_an_edited_spec_applies_at_once():
    """A higher minimum is reached at the next sync."""
    edited = simulated.cpu_spec(min_replicas=4)
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 0.1})), simulated.cpu_spec(), seconds=60, events=(SpecEdit(20_000, edited),)
    )
    assert simulated.rescales(stated) == [(30, 4)]


def test_a_rollout_keeps_the_replicas():
    """During a rolling update the count of ready pods stays above the limit, and the scale as it is."""
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 0.4}), replicas=4),
        simulated.cpu_spec(),
        seconds=300,
        events=(RolloutStart(20_000, "default/web"),),
    )
    states = [sync.workload for sync in engine.simulate(stated)]
    assert {state.replicas for state in states} == {4}
    assert min(state.ready for state in states) >= 3
    assert max(state.pods for state in states) == 5


def test_pods_wait_for_a_node():
    """With one node full, more pods become ready only after the provisioning delay."""
    cluster = ClusterModel(nodes=1, max_nodes=3, cpu_milli=400, memory_bytes=1 << 30)
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 0.1, 60: 0.6})), simulated.cpu_spec(), seconds=300, cluster=cluster
    )
    syncs = list(engine.simulate(stated))
    waiting = [sync for sync in syncs if sync.workload.unscheduled]
    assert waiting[0].nodes == 1
    assert syncs[-1].nodes == 3
    assert syncs[-1].workload.ready == 6


def test_two_autoscalers_over_one_target():
    """As upstream: both report that their selector is ambiguous, and nothing is scaled."""
    stated = simulated.scenario(
        simulated.web(simulated.load({0: 1})), simulated.cpu_spec(), simulated.cpu_spec(name="second"), seconds=60
    )
    reasons = {
        condition.reason
        for sync in list(engine.simulate(stated))[-2:]
        for condition in sync.decision.status.conditions or ()
    }
    assert "AmbiguousSelector" in reasons


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        pytest.param(
            simulated.scenario(simulated.web(), simulated.metric_spec(external()), seconds=60),
            "default/web: the scenario has no values of the metric jobs",
            id="no values",
        ),
        pytest.param(
            simulated.scenario(
                simulated.web(constant(1), requests=simulated.RequestLoad(rate=constant(1), cpu_per_request_us=1)),
                simulated.cpu_spec(),
                seconds=60,
            ),
            "default/web: requests are a demand for CPU already; state one of both",
            id="two demands for CPU",
        ),
        pytest.param(
            simulated.scenario(
                simulated.web(constant(1)),
                simulated.cpu_spec(),
                seconds=60,
                cluster=ClusterModel(nodes=1, max_nodes=1, cpu_milli=100, memory_bytes=1),
            ),
            "pod web-0 requests more than a whole node has",
            id="a pod larger than a node",
        ),
    ],
)
def test_a_scenario_that_contradicts_itself(stated, message):
    """One sentence says what is wrong."""
    with pytest.raises(ValueError, match=message):
        list(engine.simulate(stated))
