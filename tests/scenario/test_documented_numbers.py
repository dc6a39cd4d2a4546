"""The worked numbers of the Kubernetes documentation, of KEP-853 and of upstream's end-to-end tests, decided again.

Each test is a small world in virtual time: a target whose pods share a load, synced every 15 s.

Sources: the HorizontalPodAutoscaler page and walkthrough of the Kubernetes documentation, KEP-853, test/e2e/autoscaling
of Kubernetes (collected in spec/scenarios.md).
"""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from podscaler.core import decide, history
from podscaler.core.model import Answer, ContainerRequests, Observation, Pod, PodSamples, Sample, Scale, Values
from podscaler.core.spec import Spec
from podscaler.testing.decisions import (
    NOW,
    SECOND,
    Json,
    container_resource,
    external_metric,
    resource,
    rules,
    scaler,
)

PERIOD_S = 15
GIB = 1024**3

Load = Callable[[int], Sequence[Answer]]
"""What the metrics APIs answer when there are that many replicas."""


class World:
    """A target and its autoscaler.

    Args:
        spec: the autoscaler.
        replicas: how many there are at first.
        requests_milli: what each container of each pod requests.
    """

    def __init__(self, spec: Spec, replicas: int, requests_milli: dict[str, dict[str, int]]) -> None:
        self.spec = spec
        self.replicas = replicas
        self.now = NOW
        self._containers = tuple(ContainerRequests(name, each) for name, each in requests_milli.items())
        self._sums = {
            name: sum(each[name] for each in requests_milli.values()) for name in next(iter(requests_milli.values()))
        }
        self._past = history.EMPTY
        self._status = Observation(Scale(0)).status

    def sync(self, load: Load) -> int:
        """One sync, then a period passes. The replicas after it."""
        observation = Observation(
            scale=Scale(self.replicas, self.replicas, "app=web"),
            status=self._status,
            pods=[self._pod(index) for index in range(self.replicas)],
            metrics=load(self.replicas),
        )
        decision = decide.decide(self.spec, observation, self._past, self.now)
        self._past, self._status = decision.history, decision.status
        self.replicas = decision.status.desired_replicas
        self.now += PERIOD_S * SECOND
        return self.replicas

    def run(self, load: Load, minutes: float = 15) -> list[int]:
        """Syncs for some minutes; the replicas after each."""
        return [self.sync(load) for _ in range(round(minutes * 60 / PERIOD_S))]

    def _pod(self, index: int) -> Pod:
        long_ago = NOW - 3600 * SECOND
        return Pod(
            f"p{index}",
            {"app": "web"},
            started_at=long_ago,
            ready="True",
            ready_changed_at=long_ago,
            containers=self._containers,
            requests_milli=self._sums,
        )


def shared(total_milli: int) -> Load:
    """All pods together use this much."""
    return lambda replicas: [each_uses(total_milli // replicas, replicas)]


def each_uses(milli: int, replicas: int) -> PodSamples:
    """Every pod uses the same."""
    return PodSamples({f"p{index}": Sample(milli, NOW + 10**6 * SECOND) for index in range(replicas)})


def external(*values: int) -> Load:
    """External metrics, one for each value."""
    return lambda _replicas: [Values((value * 1000,)) for value in values]


APP = {"app": {"cpu": 500, "memory": 500 * 10**9}}
QUARTER = {"app": {"cpu": 250}, "sidecar": {"cpu": 250}}
BOTH = {"app": {"cpu": 500}, "sidecar": {"cpu": 500}}
FIFTH = {"app": {"cpu": 200}}
MB = 10**9


@pytest.mark.parametrize(
    ("metric", "requests", "pods", "most", "steps"),
    [
        (resource(utilization=20), APP, 1, 5, [(250, 3), (700, 5)]),
        (resource(average="100m"), APP, 1, 5, [(250, 3), (700, 5)]),
        (resource(utilization=30), APP, 5, 5, [(325, 3), (10, 1)]),
        (resource(utilization=50), FIFTH, 1, 2, [(150, 2)]),
        (resource(utilization=50), FIFTH, 2, 2, [(50, 1)]),
        (container_resource(utilization=20), APP, 1, 5, [(250, 3), (700, 5)]),
        (container_resource(average="100m"), APP, 1, 5, [(250, 3), (700, 5)]),
        (container_resource(utilization=20), QUARTER, 1, 5, [(125, 3), (500, 5)]),
        (container_resource(utilization=20), BOTH, 1, 5, [(0, 1)]),
        (resource("memory", utilization=20), APP, 1, 5, [(250 * MB, 3), (700 * MB, 5)]),
        (resource("memory", average="100M"), APP, 1, 5, [(250 * MB, 3), (700 * MB, 5)]),
    ],
    ids=[
        "up, CPU",
        "up, CPU average",
        "down, CPU",
        "light up",
        "light down",
        "up, container",
        "up, container average",
        "idle sidecar",
        "busy sidecar, idle app",
        "up, memory",
        "up, memory average",
    ],
)
def test_end_to_end_resources(
    metric: Json, requests: dict[str, dict[str, int]], pods: int, most: int, steps: list[tuple[int, int]]
) -> None:
    """Each load leads to the documented number of pods within 15 minutes, and it stays there."""
    world = World(scaler(metric, most=most), pods, requests)
    for total_milli, expected in steps:
        replicas = world.run(shared(total_milli))
        assert replicas[-8:] == [expected] * 8


def test_decision_stability() -> None:
    """After the first scale-down, the count stays at 3 or 4 for ten minutes."""
    world = World(scaler(resource(utilization=30), most=5), 5, APP)
    world.run(shared(325))
    assert set(world.run(shared(325), minutes=10)) <= {3, 4}


def test_php_apache() -> None:
    """The walkthrough: 305 % of a target of 50 % makes 7 of 1 (in two steps), no load makes 1 again after 5 minutes."""
    world = World(scaler(resource(utilization=50)), 1, {"php-apache": {"cpu": 200}})
    idle = world.run(lambda replicas: [each_uses(0, replicas)], minutes=1)
    loaded = world.run(shared(610), minutes=2)
    after = world.run(lambda replicas: [each_uses(0, replicas)], minutes=6)
    assert (idle, loaded) == ([1] * 4, [4, 7, 7, 7, 7, 7, 7, 7])
    assert after == [7] * 20 + [1] * 4


@pytest.mark.parametrize(("used", "expected"), [(200, 6), (100, 3), (50, 2), (110, 3), (111, 4), (90, 3)])
def test_formula(used: int, expected: int) -> None:
    """desired = ceil(current x metric / target): 200m on 100m doubles, 50m halves (3 pods), a tenth is tolerated."""
    world = World(scaler(resource(average="100m"), behavior={"scaleDown": rules(window=0)}), 3, APP)
    assert world.sync(lambda replicas: [each_uses(used, replicas)]) == expected


NO_WINDOWS = {"scaleUp": rules(window=0), "scaleDown": rules(window=0)}


@pytest.mark.parametrize(
    ("metrics", "most", "steps"),
    [
        ([external_metric(value="50")], 3, [((100,), 3), ((0,), 1)]),
        ([external_metric(value="50"), external_metric(value="100")], 5, [((200, 0), 5), ((0, 0), 1)]),
        (
            [external_metric(average="50"), external_metric(average="200")],
            5,
            [((100, 500), 3), ((100, 100), 2), ((0, 100), 1)],
        ),
    ],
    ids=["up and down", "one of two at zero", "in between"],
)
def test_end_to_end_external(metrics: list[Json], most: int, steps: list[tuple[tuple[int, ...], int]]) -> None:
    """External metrics lead to the documented counts in under 210 s, and they are held for 90 s."""
    world = World(scaler(*metrics, most=most, behavior=NO_WINDOWS), 1, APP)
    for values, expected in steps:
        replicas = world.run(external(*values), minutes=5)
        assert replicas[210 // PERIOD_S :] == [expected] * len(replicas[210 // PERIOD_S :])


def test_external_with_a_down_window() -> None:
    """With a scale-down window of 60 s, 5 pods become 1 only after more than 60 s, and before 270 s."""
    spec = scaler(external_metric(value="20"), most=5, behavior={"scaleDown": rules(window=60)})
    world = World(spec, 1, APP)
    assert world.run(external(100), minutes=3)[-1] == 5
    assert world.run(external(0), minutes=2) == [5, 5, 5, 1, 1, 1, 1, 1]


def test_external_with_one_pod_a_minute() -> None:
    """With 1 pod per 60 s upwards: 2, and 3 only after more than 60 s."""
    spec = scaler(external_metric(value="20"), most=5, behavior={"scaleUp": rules(("Pods", 1, 60))})
    assert World(spec, 1, APP).run(external(100), minutes=2) == [2, 2, 2, 2, 3, 3, 3, 3]


def every_minute(spec: Spec, replicas: int, load: Load, minutes: int) -> list[int]:
    """The replicas at the end of each minute."""
    return World(spec, replicas, APP).run(load, minutes)[3::4]


def test_documented_policies_down() -> None:
    """4 pods or 10 % a minute, from 80: 10 % while that is more, 4 pods below 40."""
    spec = scaler(
        external_metric(average="1"),
        least=10,
        most=100,
        behavior={"scaleDown": rules(("Pods", 4, 60), ("Percent", 10, 60), window=0)},
    )
    counts = every_minute(spec, 80, external(10), 17)
    assert counts == [72, 64, 57, 51, 45, 40, 36, 32, 28, 24, 20, 16, 12, 10, 10, 10, 10]


def test_kep_853_fast_up() -> None:
    """900 % a minute: 1, 10, 100, 1000."""
    spec = scaler(external_metric(average="1"), most=1000, behavior={"scaleUp": rules(("Percent", 900, 60))})
    assert every_minute(spec, 1, external(10_000), 3) == [10, 100, 1000]


def test_kep_853_slow_up() -> None:
    """1 pod in 5 minutes: 1, 2, 3, 4."""
    spec = scaler(external_metric(average="1"), behavior={"scaleUp": rules(("Pods", 1, 300))})
    assert every_minute(spec, 1, external(10), 15)[::5] == [2, 3, 4]


def test_kep_853_slow_down() -> None:
    """1 pod in 10 minutes, down from 1000: 999 after ten minutes."""
    down = rules(("Pods", 1, 600), window=0)
    spec = scaler(external_metric(average="1"), most=1000, behavior={"scaleDown": down})
    assert every_minute(spec, 1000, external(1), 11) == [999] * 10 + [998]


def test_default_behavior_up() -> None:
    """The default policies: at most 4 pods or twice as many each 15 s."""
    spec = scaler(external_metric(average="1"), most=100, behavior={})
    assert World(spec, 1, APP).run(external(100), minutes=1.5) == [5, 10, 20, 40, 80, 100]


def test_status_is_kept_between_syncs() -> None:
    """What one sync wrote is what the next one reads: transition times stay while nothing changes."""
    world = World(scaler(resource(utilization=50)), 3, APP)
    world.run(lambda replicas: [each_uses(250, replicas)], minutes=5)
    times = {each.last_transition_time for each in world._status.conditions or ()}
    assert (times, msgspec.json.decode(msgspec.json.encode(world._status))["desiredReplicas"]) == (
        {"2026-01-01T00:00:00Z"},
        3,
    )
