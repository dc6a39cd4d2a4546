"""The formula, its worked numbers, and the walkthrough that everybody does first.

Numbers: docs/spec/scenarios.md (The documentation's numbers).
"""

from typing import Any

from scenario_builders import app, autoscaler, cpu, world
from scenario_examples import BLOG, CPU, DESIGN_V1, DOCUMENTATION, DOWN, WALKTHROUGH, Timeline, examples

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model import spec
from podscaler.core.model.settings import DEFAULT
from podscaler.testing.decisions import resource
from podscaler.testing.scenario_meters import Amount, shared

USAGE = "cpu resource above target"


@examples(
    f"{WALKTHROUGH}: php-apache with 200m requested and a target of 50 %",
    "",
    ("php-apache: 305 % makes 7 of 1, no load makes 1 of 7", [(30, 4, CPU), (45, 7, CPU), (585, 1, DOWN)]),
)
def test_walkthrough(timeline: Timeline) -> None:
    """One pod at 305 % grows to 7, not past 4 in the first step; 5 minutes after the load's end it is one again."""
    php_apache = world(autoscaler(cpu(50)), 1, shared({0: 0, 30: 610, 285: 0}), containers=app(cpu=200))
    assert php_apache.run(900) == timeline
    assert (php_apache.status.current_replicas, php_apache.status.desired_replicas) == (1, 1)


def test_nothing_changes_while_nothing_happens() -> None:
    """Status carries over from sync to sync: on target it is the same after a day as after a minute."""
    steady = world(autoscaler(cpu(50)), 3, shared(1500))
    steady.run(60)
    status = steady.status
    assert (steady.run(86_400), steady.status) == ([], status)


def test_walkthrough_shows_305_percent() -> None:
    """What `kubectl get hpa` shows under load is 305 %/50 % while there is one pod."""
    php_apache = world(autoscaler(cpu(50)), 1, shared(610), containers=app(cpu=200))
    php_apache.run(0)
    (shown,) = php_apache.status.current_metrics or ()
    assert shown.resource is not None
    assert (shown.resource.current.average_utilization, shown.resource.current.average_value) == (305, "610m")


@examples(
    f"{DOCUMENTATION}: the algorithm, what 200m, 50m and values close to 100m do to a target of 100m",
    "replicas, total_milli, behavior",
    ("200m on 100m doubles", 2, 400, None, [(0, 4, USAGE)]),
    ("50m on 100m halves, 5 minutes later", 4, 200, None, [(315, 2, DOWN)]),
    ("50m on 100m halves with an empty behavior, one sync earlier", 4, 200, {}, [(300, 2, DOWN)]),
    ("105m on 100m is close enough", 2, 210, None, []),
    ("110m on 100m is close enough", 10, 1100, None, []),
    ("90m on 100m is close enough", 10, 900, None, []),
    ("111m on 100m is not", 10, 1110, None, [(0, 12, USAGE)]),
    ("89m on 100m is not", 10, 890, None, [(315, 9, DOWN)]),
)
def test_formula(replicas: int, total_milli: int, behavior: Any, timeline: Timeline) -> None:
    """Replicas times current over desired, rounded up, and nothing within a tenth of 1.0."""
    scaler = autoscaler(resource("cpu", average="100m"), most=20, behavior=behavior)
    assert world(scaler, replicas, shared(total_milli)).run(330) == timeline


@examples(
    f"{BLOG}: the first example, 8 pods at 70 % of a target of 60 %",
    "",
    ("8 pods at 70 % with a target of 60 % are 10", [(0, 10, CPU)]),
)
def test_blog_formula(timeline: Timeline) -> None:
    """ceil(8 x 70/60) = ceil(9.33) = 10, between 5 and 14."""
    assert world(autoscaler(cpu(60), least=5, most=14), 8, shared(5600)).run(330) == timeline


@examples(
    f"{DESIGN_V1}: the autoscaling algorithm, the sum of utilizations over the target",
    "total_milli",
    ("a sum of 159 % over 40 % is 4 pods", 1590, [(0, 4, CPU)]),
    ("a sum of 161 % over 40 % is 4 pods too", 1610, [(0, 4, CPU)]),
    differs="The sum of the pods' percentages over the target is rounded up: 161/40 is 5. What holds: the mean is cut"
    " to whole percents first, so that 161 % over 3 pods are 53 %, and ceil(3 x 53/40) is 4.",
)
def test_sum_of_utilizations(total_milli: int, timeline: Timeline) -> None:
    """The sum of utilizations over the target and the mean's ratio agree but for the cut to whole percents."""
    assert world(autoscaler(cpu(40)), 3, shared(total_milli)).run(0) == timeline


@examples(
    f"{DESIGN_V1}: the waits after a rescale",
    "",
    ("two scale-ups 15 s apart, then a scale-down", [(0, 4, CPU), (15, 8, CPU), (345, 4, DOWN)]),
    differs="No scale-up within 3 minutes of the last rescale, no scale-down within 5. What holds: a scale-up waits for"
    " nothing, and a scale-down for the highest recommendation of the last 5 minutes, whenever the last rescale was.",
)
def test_no_waits_after_a_rescale(timeline: Timeline) -> None:
    """A scale-up follows a scale-up at the next sync."""
    rising = world(autoscaler(cpu(50)), 2, shared({0: 2000, 15: 4000, 45: 2000}))
    assert rising.run(400) == timeline


@examples(
    f"{DOCUMENTATION}: the algorithm, containers without the request",
    "",
    ("a sidecar without a CPU request keeps the target as it is", []),
)
def test_missing_request(timeline: Timeline) -> None:
    """Where a container has no request, utilization is undefined and nothing is done for that metric."""
    pods = {"app": {"cpu": 500}, "log": {"memory": 1}}
    unclear = world(autoscaler(cpu(50)), 1, shared(5000), containers=pods)
    assert unclear.run(60) == timeline
    assert unclear.condition_changes("ScalingActive") == [(0, "False", "FailedGetResourceMetric")]


@examples(
    f"{DESIGN_V1}: CPUUtilization, its default of 80 %",
    "",
    ("no metric given: 80 % of the requested CPU, 3 pods at 96 % make 4", [(0, 4, CPU)]),
)
def test_default_metric(timeline: Timeline) -> None:
    """An autoscaler without metrics aims at 80 % of the requested CPU."""
    scaler = spec.parse("default", "web", HorizontalPodAutoscalerSpec(max_replicas=10))
    assert world(scaler, 3, shared(2880)).run(60) == timeline


def test_documented_defaults() -> None:
    """Sync period, downscale stabilization, initial readiness delay, CPU initialization period, tolerance."""
    spans_ns = (
        ControllerSettings().sync_period_ns,
        DEFAULT.downscale_stabilization_ns,
        DEFAULT.initial_readiness_delay_ns,
        DEFAULT.cpu_initialization_period_ns,
    )
    assert ([span_ns // NANOSECONDS for span_ns in spans_ns], DEFAULT.tolerance) == ([15, 300, 30, 300], 0.1)


@examples(
    f"{DOCUMENTATION}: the kubectl section, `--min=2 --max=5 --cpu-percent=80`",
    "load",
    (
        "80 % with 2 to 5 replicas: up to 5, down to 2",
        {0: 2400, 120: 8000, 300: 0},
        [(0, 3, CPU), (120, 5, CPU), (600, 2, DOWN)],
    ),
)
def test_autoscale_command(load: Amount, timeline: Timeline) -> None:
    """What `kubectl autoscale rs foo` makes stays between its bounds."""
    foo = world(autoscaler(cpu(80), least=2, most=5, kind="ReplicaSet"), 2, shared(load))
    assert foo.run(900) == timeline
