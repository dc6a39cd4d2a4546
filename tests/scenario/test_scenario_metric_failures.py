"""Timelines of metrics that fail, without a failure policy and with each of its parts."""

import msgspec
from scenario_builders import autoscaler, cpu, external, world

from podscaler.api.typed.autoscaling import FallbackReplicasSpec, OnMetricFailureSpec
from podscaler.core.model import failure_policy
from podscaler.core.model.spec import Spec
from podscaler.testing.decisions import Json
from podscaler.testing.scenario_meters import failing, in_turn, shared, values

CPU = "cpu resource utilization (percentage of request) above target"
QUEUE = "external metric queue(nil) above target"
DOWN = "All metrics below target"
FALLBACK = "no metric could be read, fallback replicas"
KEEP = OnMetricFailureSpec(keep_last_for="10m")
IGNORE = OnMetricFailureSpec(ignore_failed=True)
OUTAGE = in_turn({0: values(8000), 60: failing("gone"), 1200: values(2000)})


def scaler(policy: OnMetricFailureSpec, *metrics: Json, least: int = 1) -> Spec:
    """An autoscaler of up to 10 replicas with a failure policy, without waits before a scale-down."""
    calm = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    spec = autoscaler(*metrics, least=least, behavior=calm)
    identities = tuple([str(index) for index in range(len(metrics))]) if policy.keep_last_for else ()
    found = failure_policy.parse(policy, {}, ())
    return msgspec.structs.replace(spec, failure_policy=msgspec.structs.replace(found, identities=identities))


def fallback(replicas: int, after: str) -> OnMetricFailureSpec:
    """A policy with fallback replicas alone."""
    return OnMetricFailureSpec(fallback=FallbackReplicasSpec(replicas, after))


def test_without_a_policy_the_target_stays() -> None:
    """As upstream: 8 messages for 8 workers, no value for 19 minutes, then 2."""
    found = world(scaler(OnMetricFailureSpec(), external("queue", average="1")), 1, OUTAGE)
    assert found.run(1200) == [(0, 5, QUEUE), (15, 8, QUEUE), (1200, 2, DOWN)]
    assert found.condition_changes("ScalingActive") == [
        (0, "True", "ValidMetricFound"),
        (60, "False", "FailedGetExternalMetric"),
        (1200, "True", "ValidMetricFound"),
    ]


def test_the_last_value_of_a_growing_target() -> None:
    """A scale-up that had begun goes on to what the last value asked for, and no further."""
    meter = in_turn({0: values(9000), 15: failing("gone")})
    found = world(scaler(KEEP, external("queue", average="1")), 1, meter)
    assert found.run(900) == [(0, 5, QUEUE), (15, 9, QUEUE)]


def test_a_ratio_does_not_compound_while_it_is_old() -> None:
    """10 pods at half of their target became 5; the same ratio would make 3 of them, then 2, then 1."""
    meter = in_turn({0: shared(2500), 15: failing("gone")})
    found = world(scaler(KEEP, cpu(50)), 10, meter)
    assert found.run(900) == [(0, 5, DOWN)]


def test_the_last_value_for_its_time() -> None:
    """For ten minutes it counts, and a hand that scales meanwhile is overruled; afterwards nothing is done."""
    found = world(scaler(KEEP, external("queue", average="1")), 8, OUTAGE)
    found.run(300)
    found.scale_by_hand(4)
    found.run(600)
    found.run(645)
    found.scale_by_hand(6)
    assert found.run(1199) == [(315, 8, QUEUE)]
    assert found.condition_changes("ScalingActive") == [
        (0, "True", "ValidMetricFound"),
        (60, "True", "LastMetricValueKept"),
        (660, "False", "FailedGetExternalMetric"),
    ]


def test_ignoring_a_failed_metric() -> None:
    """The other metric scales down at once, not only after the failure."""
    meters = (in_turn({0: values(1000), 60: failing("gone")}), in_turn({0: shared(4000), 120: shared(500)}))
    metrics = (external("queue", average="1"), cpu(50))
    assert world(scaler(OnMetricFailureSpec(), *metrics), 8, *meters).run(600) == []
    found = world(scaler(IGNORE, *metrics), 8, *meters)
    assert found.run(600) == [(120, 1, DOWN)]
    assert found.condition_changes("ScalingActive") == [
        (0, "True", "ValidMetricFound"),
        (120, "True", "FailedMetricIgnored"),
        (135, "True", "ValidMetricFound"),
    ]


def test_fallback_replicas() -> None:
    """After five minutes without a value there are three workers, and after the outage what the queue asks for."""
    meter = in_turn({0: values(1000), 60: failing("gone"), 600: values(9000)})
    found = world(scaler(fallback(3, "5m"), external("queue", average="1")), 1, meter)
    assert found.run(900) == [(360, 3, FALLBACK), (600, 7, QUEUE), (615, 9, QUEUE)]
    assert found.condition_changes("ScalingActive") == [
        (0, "True", "ValidMetricFound"),
        (60, "False", "FailedGetExternalMetric"),
        (360, "True", "FallbackReplicasApplied"),
        (600, "True", "ValidMetricFound"),
    ]


def test_an_outage_that_ends_in_time() -> None:
    """Each value begins the time anew: two outages of four minutes are none of five."""
    meter = in_turn({0: values(1000), 60: failing("gone"), 300: values(1000), 315: failing("gone"), 555: values(1000)})
    found = world(scaler(fallback(3, "5m"), external("queue", average="1")), 1, meter)
    assert found.run(900) == []


def test_all_parts_in_order() -> None:
    """Last values for ten minutes, and the fallback once they are too old."""
    policy = OnMetricFailureSpec("10m", True, FallbackReplicasSpec(3, "5m"))
    found = world(scaler(policy, external("queue", average="1")), 1, OUTAGE)
    assert found.run(1200) == [(0, 5, QUEUE), (15, 8, QUEUE), (660, 3, FALLBACK), (1200, 2, DOWN)]


def test_a_queue_that_is_down_while_the_workers_sleep() -> None:
    """The target was scaled to zero; without a value for a minute, two workers are started."""
    meter = in_turn({0: values(0), 60: failing("gone"), 300: values(0)})
    found = world(scaler(fallback(2, "1m"), external("queue", average="1"), least=0), 1, meter)
    assert found.run(400) == [(0, 0, DOWN), (120, 2, FALLBACK), (300, 0, DOWN)]
