"""Scaling policies: how fast a target may change.

Where a title says what the load asks for, the metric is the CPU each pod may use (500m), and the load a total.
"""

from typing import Any

from scenario_builders import autoscaler, cpu, world
from scenario_examples import BLOG, CPU, DOCUMENTATION, DOWN, KEP_853, RULES, Timeline, examples

from podscaler.testing.decisions import Json, resource, rules
from podscaler.testing.scenario import Scenario
from podscaler.testing.scenario_meters import Amount, alike, shared

POLICIES = f"{DOCUMENTATION}: scaling policies"
USAGE = "cpu resource above target"


def falling(replicas: int, down: Json, wanted: int, *, least: int = 1) -> Scenario:
    """So many replicas whose load asks for `wanted` of them."""
    scaler = autoscaler(resource("cpu", average="500m"), least=least, most=1000, behavior={"scaleDown": down})
    return world(scaler, replicas, shared(wanted * 500))


def rows(*at_and_replicas: tuple[float, int]) -> list[tuple[float, int, str]]:
    """A timeline of scale-downs."""
    return [(at_s, replicas, DOWN) for at_s, replicas in at_and_replicas]


def ups(*at_and_replicas: tuple[float, int], reason: str = CPU) -> list[tuple[float, int, str]]:
    """A timeline of scale-ups."""
    return [(at_s, replicas, reason) for at_s, replicas in at_and_replicas]


@examples(
    f"{POLICIES}, 4 pods and 10 % a minute from 80 replicas to 10",
    "",
    (
        "80 replicas, 10 wanted: 8 pods at first, 4 a minute below 40",
        rows(
            *[(0, 72), (60, 64), (120, 57), (180, 51), (240, 45), (300, 40), (360, 36)],
            *[(420, 32), (480, 28), (540, 24), (600, 20), (660, 16), (720, 12), (780, 10)],
        ),
    ),
)
def test_policy_example(timeline: Timeline) -> None:
    """The policy that allows more counts: 10 % (7.2 of 72 are 8) above 40 replicas, 4 pods below."""
    down = rules(("Pods", 4, 60), ("Percent", 10, 60), window=0)
    assert falling(80, down, 10).run(900) == timeline


@examples(
    f"{DOCUMENTATION}: example, limit the scale-down rate",
    "down",
    (
        "10 % a minute from 100",
        rules(("Percent", 10, 60)),
        rows((300, 90), (360, 81), (420, 72), (480, 64), (540, 57), (600, 51)),
    ),
    (
        "10 % or 5 pods a minute, whichever is less",
        rules(("Percent", 10, 60), ("Pods", 5, 60), select="Min"),
        rows((300, 95), (360, 90), (420, 85), (480, 80), (540, 75), (600, 70)),
    ),
)
def test_limited_rate(down: Json, timeline: Timeline) -> None:
    """After the window the rate applies once a minute, never more than the policy (Min: the strictest) allows."""
    assert falling(100, down, 40).run(640) == timeline


@examples(
    f"{DOCUMENTATION}: example, limit the scale-down rate, the smaller policy below 50 replicas",
    "",
    (
        "10 % or 5 pods a minute, whichever is less, from 50: 10 % are less",
        rows((300, 45), (360, 40), (420, 36), (480, 32), (540, 28), (600, 25)),
    ),
)
def test_limited_rate_of_few(timeline: Timeline) -> None:
    """10 % of less than 50 are less than 5 pods, rounded up."""
    down = rules(("Percent", 10, 60), ("Pods", 5, 60), select="Min")
    assert falling(50, down, 10).run(640) == timeline


@examples(
    f"{DOCUMENTATION}: example, disable scale-down; {KEP_853}: story of a target that never shrinks",
    "",
    ("scale-down disabled: up to 8, never down", [(15, 8, CPU)]),
)
def test_disabled(timeline: Timeline) -> None:
    """A direction that is disabled stays as it is however low the load; the limit is shown."""
    scaler = autoscaler(cpu(50), behavior={"scaleDown": {"selectPolicy": "Disabled"}})
    found = world(scaler, 4, shared({0: 2000, 15: 4000, 60: 0}))
    assert found.run(1000) == timeline
    assert found.condition_changes("ScalingLimited")[-1] == (345, "True", "ScaleDownLimit")


@examples(
    f"{DOCUMENTATION}: default behavior, scaling up",
    "behavior",
    (
        "4 pods or 100 % in 15 s, whichever is more, from 1 to 60",
        {},
        ups((0, 5), (15, 10), (30, 20), (45, 40), (60, 60)),
    ),
    ("no behavior: twice as many, at least 4", None, ups((0, 4), (15, 8), (30, 16), (45, 32), (60, 60))),
    (
        "only a scale-down window set: the defaults are merged in",
        {"scaleDown": {"stabilizationWindowSeconds": 60}},
        ups((0, 5), (15, 10), (30, 20), (45, 40), (60, 60)),
    ),
    differs="The defaults are those of the algorithm without behavior. What holds: without any behavior the rate is"
    " twice the current count, at least 4; with an empty one it is 4 more, or twice the count.",
)
def test_default_scale_up(behavior: Any, timeline: Timeline) -> None:
    """Without policies of its own a target grows by the default ones, at once and at every sync."""
    assert world(autoscaler(cpu(50), most=100, behavior=behavior), 1, shared(30_000)).run(300) == timeline


@examples(
    f"{DOCUMENTATION}: default behavior, scaling down",
    "behavior",
    ("100 % in 15 s, after 300 s: from 60 to 1 at once", {}, [(315, 1, DOWN)]),
    ("the same written out", {"scaleDown": rules(("Percent", 100, 15), window=300)}, [(315, 1, DOWN)]),
    ("no behavior: one sync later", None, [(330, 1, DOWN)]),
)
def test_default_scale_down(behavior: Any, timeline: Timeline) -> None:
    """All replicas down to the minimum may go at once when the window is over."""
    scaler = autoscaler(cpu(50), most=100, behavior=behavior)
    assert world(scaler, 60, shared({0: 30_000, 30: 0})).run(600) == timeline


@examples(
    f"{BLOG}: the example of the behavior fields, 30 % or 7 pods a minute from 18 pods",
    "",
    ("18, then 25 (7 pods), then 33 (30 % are 8)", ups((120, 25), (180, 33), (240, 43))),
)
def test_blog_policies(timeline: Timeline) -> None:
    """7 pods are more than 6, 8 more than 7; the window of 120 s comes first, and nothing ever shrinks."""
    up = rules(("Percent", 30, 60), ("Pods", 7, 60), window=120, select="Max")
    scaler = autoscaler(cpu(50), most=100, behavior={"scaleUp": up, "scaleDown": {"selectPolicy": "Disabled"}})
    found = world(scaler, 18, shared({0: 9000, 15: 60_000}))
    assert found.run(290) == timeline


@examples(
    f"{BLOG}: the example of the behavior fields, periodSeconds",
    "",
    ("7 pods a minute: 3 at once, 4 more 15 s later, the next after a minute", ups((0, 21), (15, 25), (60, 28))),
    differs="After a scale-up 60 seconds must pass before any other. What holds: the policy says how much may be added"
    " within any 60 seconds; what is left of it can be used at once.",
)
def test_periods_are_budgets(timeline: Timeline) -> None:
    """Two scale-ups within one period share its budget."""
    up = rules(("Pods", 7, 60), window=0)
    scaler = autoscaler(cpu(50), most=100, behavior={"scaleUp": up})
    found = world(scaler, 18, shared({0: 10_500, 15: 14_000}))
    assert found.run(70) == timeline


@examples(
    f"{BLOG}: the full manifest, 1 to 10 replicas, 10 % or 4 pods a minute after 120 s",
    "",
    ("1, then 4 more a minute: 5, 9, 10, and never down", ups((120, 5), (180, 9), (240, 10))),
)
def test_blog_manifest(timeline: Timeline) -> None:
    """For few replicas the policy in pods counts; when the load is gone the ten stay."""
    up = rules(("Percent", 10, 60), ("Pods", 4, 60), window=120, select="Max")
    behavior = {"scaleUp": up, "scaleDown": {"selectPolicy": "Disabled"}}
    assert world(autoscaler(cpu(50), behavior=behavior), 1, shared({0: 500, 15: 20_000, 600: 0})).run(1200) == timeline


@examples(
    f"{RULES} 9.3: float traps",
    "",
    ("10 % or 4 pods a minute up from 50: 6, since 50 x 1.1 is a little more than 55", ups((0, 56), (60, 62))),
)
def test_float_of_ten_percent(timeline: Timeline) -> None:
    """1.1 is a little more than 1.1 in binary: 10 % more than 50 are 56."""
    scaler = autoscaler(cpu(50), most=1000, behavior={"scaleUp": rules(("Percent", 10, 60), ("Pods", 4, 60))})
    assert world(scaler, 50, alike(1000)).run(70) == timeline


STORIES = f"{KEP_853}: user stories"


@examples(
    STORIES,
    "up, down, load, until_s",
    (
        "grow as fast as possible, 900 % a minute: 1, 10, 100, 1000",
        rules(("Percent", 900, 60)),
        None,
        10**6,
        200,
        ups((0, 10), (60, 100), (120, 1000)),
    ),
    (
        "grow fast, shrink slowly: 1000, then one less every 10 minutes",
        rules(("Percent", 900, 60)),
        rules(("Pods", 1, 600)),
        {0: 10**6, 780: 0},
        1700,
        [*ups((0, 10), (60, 100), (120, 1000)), *rows((1065, 999), (1665, 998))],
    ),
    (
        "the load ends within those 10 minutes: what was added is taken away at once",
        rules(("Percent", 900, 60)),
        rules(("Pods", 1, 600)),
        {0: 10**6, 180: 0},
        1065,
        [*ups((0, 10), (60, 100), (120, 1000)), *rows((465, 9), (1065, 8))],
    ),
    (
        "grow slowly, 1 pod in 5 minutes, shrink as usual: 1, 2, 3, 4, then 1",
        rules(("Pods", 1, 300)),
        None,
        {0: 10**6, 900: 0},
        1300,
        [*ups((0, 2), (300, 3), (600, 4)), *rows((1185, 1))],
    ),
)
def test_kep_853_stories(up: Json | None, down: Json | None, load: Amount, until_s: float, timeline: Timeline) -> None:
    """Each story's policies give the counts that it names."""
    scaler = autoscaler(cpu(50), most=1000, behavior={"scaleUp": up, "scaleDown": down})
    assert world(scaler, 1, shared(load)).run(until_s) == timeline


@examples(
    f"{KEP_853}: the default policies",
    "",
    ("nothing stated: 1, 5, 10, 20, 40 within 45 s", ups((0, 5), (15, 10), (30, 20), (45, 40))),
    differs="The default policies have periods of 60 s. What holds: 15 s.",
)
def test_kep_853_defaults(timeline: Timeline) -> None:
    """The default policies allow 4 pods or 100 % in 15 seconds."""
    assert world(autoscaler(cpu(50), most=1000, behavior={}), 1, shared(10**6)).run(50) == timeline
