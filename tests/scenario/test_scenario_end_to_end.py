"""The autoscaling scenarios of Kubernetes' own end-to-end tests, in virtual time with default settings.

Each state must come within 15 minutes (900 s). New pods are ready after 10 s, samples are averaged over 15 s.

Source: docs/spec/scenarios.md.
"""

from collections.abc import Mapping

import pytest
from scenario_builders import app, autoscaler, cpu, external, world
from scenario_examples import CONTAINER_CPU, CPU, DOWN, END_TO_END, Timeline, examples

from podscaler.base.clock import NANOSECONDS
from podscaler.testing.decisions import Json, container_resource, resource, rules
from podscaler.testing.scenario import START, Scenario
from podscaler.testing.scenario_meters import Amount, shared, values

USAGE = "cpu resource above target"
MEMORY = "memory resource utilization (percentage of request) above target"
MEMORY_USAGE = "memory resource above target"
CONTAINER_MEMORY = "memory container resource utilization (percentage of request) above target"
MB = 10**6 * 1000
"""A megabyte, in thousandths of a byte."""


def consumers(
    metric: Json,
    replicas: int,
    load: Amount,
    containers: Mapping[str, Mapping[str, int]],
    *,
    most: int = 5,
    kind: str = "Deployment",
) -> Scenario:
    """Pods of which all together are asked to use a load."""
    meter = shared(load, window_s=15)
    scaler = autoscaler(metric, most=most, kind=kind)
    return world(scaler, replicas, meter, containers=containers, ready_after_s=10)


RISING: dict[float, int] = {0: 250, 900: 700}
FALLING: dict[float, int] = {0: 325, 900: 10}


@examples(
    f"{END_TO_END}: scale up, CPU",
    "kind, metric",
    ("Deployment, 20 % of 500m, load 250m then 700m: 3, 5", "Deployment", cpu(20), [(0, 3, CPU), (900, 5, CPU)]),
    ("ReplicaSet, the same", "ReplicaSet", cpu(20), [(0, 3, CPU), (900, 5, CPU)]),
    ("ReplicationController, the same", "ReplicationController", cpu(20), [(0, 3, CPU), (900, 5, CPU)]),
    (
        "Deployment, AverageValue 100m: 3, 5",
        "Deployment",
        resource("cpu", average="100m"),
        [(0, 3, USAGE), (900, 5, USAGE)],
    ),
)
def test_scale_up(kind: str, metric: Json, timeline: Timeline) -> None:
    """1 to 5 pods with 500m each follow a rising load."""
    assert consumers(metric, 1, RISING, app(cpu=500), kind=kind).run(1800) == timeline


@examples(
    f"{END_TO_END}: scale down, CPU",
    "kind, load",
    ("Deployment, 30 % of 500m, load 325m then 10m: 3, 1", "Deployment", FALLING, [(315, 3, DOWN), (1200, 1, DOWN)]),
    ("ReplicaSet, the same", "ReplicaSet", FALLING, [(315, 3, DOWN), (1200, 1, DOWN)]),
    ("ReplicationController, the same", "ReplicationController", FALLING, [(315, 3, DOWN), (1200, 1, DOWN)]),
    (
        "Deployment, 375m at first as in older versions",
        "Deployment",
        FALLING | {0: 375},
        [(315, 3, DOWN), (1200, 1, DOWN)],
    ),
)
def test_scale_down(kind: str, load: Amount, timeline: Timeline) -> None:
    """5 pods with 500m each follow a falling load."""
    assert consumers(cpu(30), 5, load, app(cpu=500), kind=kind).run(1800) == timeline


@examples(
    f"{END_TO_END}: decision stability of a ReplicationController",
    "replicas, metric, load",
    ("up to 3", 1, cpu(20), 250, [(0, 3, CPU)]),
    ("down to 3", 5, cpu(30), 325, [(315, 3, DOWN)]),
)
def test_stability(replicas: int, metric: Json, load: Amount, timeline: Timeline) -> None:
    """After the first scale the desired count stays within 3 and 4 for 10 minutes."""
    found = consumers(metric, replicas, load, app(cpu=500), kind="ReplicationController")
    first_s = timeline[0][0]
    assert found.run(first_s + 600) == timeline
    desired = {sync.decision.status.desired_replicas for sync in found.syncs if sync.at_s >= first_s}
    assert desired <= {3, 4}


@examples(
    f"{END_TO_END}: light load",
    "kind, replicas, load",
    ("ReplicationController up, 150m on 50 % of 200m: 2", "ReplicationController", 1, 150, [(0, 2, CPU)]),
    ("a custom resource up: 2", "TestCRD", 1, 150, [(0, 2, CPU)]),
    ("ReplicationController down, 50m: 1", "ReplicationController", 2, 50, [(315, 1, DOWN)]),
)
def test_light_load(kind: str, replicas: int, load: Amount, timeline: Timeline) -> None:
    """1 to 2 pods with 200m each."""
    assert consumers(cpu(50), replicas, load, app(cpu=200), most=2, kind=kind).run(900) == timeline


@examples(
    f"{END_TO_END}: container resource, CPU",
    "metric, request_milli, load",
    (
        "20 % of 500m",
        container_resource("cpu", "app", utilization=20),
        500,
        RISING,
        [(0, 3, CONTAINER_CPU), (900, 5, CONTAINER_CPU)],
    ),
    (
        "AverageValue 100m",
        container_resource("cpu", "app", average="100m"),
        500,
        RISING,
        [(0, 3, USAGE), (900, 5, USAGE)],
    ),
    (
        "idle sidecar, busy application: 20 % of 250m, load 125m then 500m",
        container_resource("cpu", "app", utilization=20),
        250,
        {0: 125, 900: 500},
        [(0, 3, CONTAINER_CPU), (900, 5, CONTAINER_CPU)],
    ),
    ("busy sidecar, idle application: stays 1", container_resource("cpu", "app", utilization=20), 500, 0, []),
)
def test_container_resource(metric: Json, request_milli: int, load: Amount, timeline: Timeline) -> None:
    """What one container uses decides, whatever the sidecar does."""
    pods = {"app": {"cpu": request_milli}, "sidecar": {"cpu": request_milli}}
    assert consumers(metric, 1, load, pods).run(1800) == timeline


@examples(
    f"{END_TO_END}: memory",
    "metric",
    (
        "pod, 20 % of 500 MB: 3, 5",
        resource("memory", utilization=20),
        [(0, 3, MEMORY), (900, 5, MEMORY)],
    ),
    (
        "pod, AverageValue 100 MB: 3, 5",
        resource("memory", average="100M"),
        [(0, 3, MEMORY_USAGE), (900, 5, MEMORY_USAGE)],
    ),
    (
        "container, 20 % of 500 MB: 3, 5",
        container_resource("memory", "app", utilization=20),
        [(0, 3, CONTAINER_MEMORY), (900, 5, CONTAINER_MEMORY)],
    ),
    (
        "container, AverageValue 100 MB: 3, 5",
        container_resource("memory", "app", average="100M"),
        [(0, 3, MEMORY_USAGE), (900, 5, MEMORY_USAGE)],
    ),
)
def test_memory(metric: Json, timeline: Timeline) -> None:
    """1 to 5 pods with 500 MB each follow a load of 250 MB and then 700 MB."""
    pods = app(memory=500 * MB)
    assert consumers(metric, 1, {0: 250 * MB, 900: 700 * MB}, pods).run(1800) == timeline


def queue(name: str) -> str:
    """The reason that an external metric gives."""
    return f"external metric {name}(nil) above target"


def immediately(window_s: int = 0, **up: object) -> Json:
    """Behavior without a window for scale-ups, and with one of some seconds for scale-downs."""
    return {"scaleUp": rules(window=0) | up, "scaleDown": rules(window=window_s)}


ONE_A_MINUTE = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}


@examples(
    f"{END_TO_END}: external metrics",
    "most, metrics, behavior, amounts",
    (
        "value 50, 1 to 3 pods, windows of 0: 100 makes 3, 0 makes 1",
        3,
        [external("queue", value="50")],
        immediately(),
        [{0: 100_000, 300: 0}],
        [(0, 2, queue("queue")), (15, 3, queue("queue")), (300, 1, DOWN)],
    ),
    (
        "values 50 and 100 of two metrics, one of them 0: 5, both 0: 1",
        5,
        [external("queue", value="50"), external("http", value="100")],
        immediately(),
        [{0: 100_000, 300: 0}, 0],
        [(0, 2, queue("queue")), (15, 4, queue("queue")), (30, 5, queue("queue")), (300, 1, DOWN)],
    ),
    (
        "averages 50 and 200: 3; http = 100: 2, held; queue = 0: 1",
        5,
        [external("queue", average="50"), external("http", average="200")],
        immediately(),
        [{0: 100_000, 600: 0}, {0: 500_000, 300: 100_000}],
        [(0, 3, queue("http")), (300, 2, DOWN), (600, 1, DOWN)],
    ),
    (
        "down window of 60 s: 5, then 1 more than 60 s after the fall",
        5,
        [external("queue", value="20")],
        immediately(60),
        [{0: 100_000, 300: 0}],
        [(0, 5, queue("queue")), (345, 1, DOWN)],
    ),
    (
        "1 pod a minute: 2, and 60 s later 3",
        5,
        [external("queue", value="20")],
        immediately(0, **ONE_A_MINUTE),
        [{0: 100_000, 90: 20_000}],
        [(0, 2, queue("queue")), (60, 3, queue("queue"))],
    ),
)
def test_external(most: int, metrics: list[Json], behavior: Json, amounts: list[Amount], timeline: Timeline) -> None:
    """Pods follow metrics that do not come from them, each state within 210 s (270 s with windows of a minute)."""
    found = world(autoscaler(*metrics, most=most, behavior=behavior), 1, *[values(amount) for amount in amounts])
    assert found.run(700) == timeline


@examples(
    f"{END_TO_END}: the longest reaction with default settings",
    "",
    ("75 s until a metric shows the load, 15 s until the next sync", [(90, 4, CPU)]),
)
def test_longest_reaction(timeline: Timeline) -> None:
    """A load that begins just after a sync has new pods at work 100 s later."""
    load = {0: 500, 0.001: 2000}
    found = world(autoscaler(cpu(50)), 1, shared(load, window_s=15, lag_s=75), ready_after_s=10)
    assert found.run(90) == timeline
    assert [len(found.target.serving(START + second * NANOSECONDS)) for second in (99, 100)] == [1, 4]


@pytest.mark.parametrize("window_s", [0, 60, 300])
def test_down_windows_are_waited_for(window_s: int) -> None:
    """A scale-down comes after more than its window since the last higher recommendation, and within a sync of it."""
    scaler = autoscaler(external("queue", value="20"), most=5, behavior=immediately(window_s))
    found = world(scaler, 1, values({0: 100_000, 300: 0}))
    *_, (at_s, replicas, _) = found.run(900)
    assert (replicas, 285 + window_s <= at_s <= 300 + window_s) == (1, True)
