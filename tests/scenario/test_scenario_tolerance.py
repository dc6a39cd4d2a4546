"""Tolerance: how far a metric may be from its target without a change."""

from scenario_builders import app, autoscaler, cpu, world
from scenario_examples import BLOG, DOCUMENTATION, DOWN, Timeline, examples

from podscaler.core.model.settings import Settings
from podscaler.testing.decisions import Json, pods_metric, resource, rules
from podscaler.testing.scenario_meters import alike, shared

MB = 10**6 * 1000
MEMORY = "memory resource above target"
REQUESTS = "pods metric requests above target"


@examples(
    f"{DOCUMENTATION}: tolerance, 100 MB with 5 % on the way up",
    "usage_milli",
    ("105 MB on 100 MB with 5 %: nothing", 105 * MB, []),
    ("106 MB: up", 106 * MB, [(0, 11, MEMORY)]),
    ("90 MB: the default of 10 % still holds on the way down, nothing", 90 * MB, []),
    ("89 MB: down", 89 * MB, [(300, 9, DOWN)]),
)
def test_memory_example(usage_milli: int, timeline: Timeline) -> None:
    """Only more than 105 MB count as too much; the other direction keeps the cluster's tolerance."""
    scaler = autoscaler(resource("memory", average="100M"), most=20, behavior={"scaleUp": {"tolerance": "0.05"}})
    assert world(scaler, 10, shared(10 * usage_milli), containers=app(memory=1)).run(300) == timeline


@examples(
    f"{DOCUMENTATION}: tolerance, the cluster's default of 10 %",
    "behavior, usage_milli",
    ("110 on 100", None, 110_000, []),
    ("110.001 on 100", None, 110_001, [(0, 12, REQUESTS)]),
    ("90 on 100", None, 90_000, []),
    ("89.999 on 100", None, 89_999, [(315, 9, DOWN)]),
    ("no tolerance: 101 on 100", {"scaleUp": {"tolerance": "0"}}, 101_000, [(0, 11, REQUESTS)]),
    ("no tolerance for less: 99 on 100 is rounded up to what there is", {"scaleDown": {"tolerance": "0"}}, 99_000, []),
    ("30 % for less: 71 on 100", {"scaleDown": {"tolerance": "300m"}}, 71_000, []),
    ("30 % for less: 69 on 100", {"scaleDown": {"tolerance": "300m"}}, 69_000, [(300, 7, DOWN)]),
)
def test_ends_of_the_tolerance(behavior: Json | None, usage_milli: int, timeline: Timeline) -> None:
    """Both ends are within; each direction may have its own."""
    scaler = autoscaler(pods_metric("100", name="requests"), most=20, behavior=behavior)
    assert world(scaler, 10, shared(10 * usage_milli)).run(315) == timeline


@examples(
    f"{BLOG}: what happens under the hood, the tolerance flag",
    "tolerance, usage_milli",
    ("flag 0.1, 550m on half of 1000m", 0.1, 550, []),
    (
        "flag 0.05, 550m on half of 1000m",
        0.05,
        550,
        [(0, 11, "cpu resource utilization (percentage of request) above target")],
    ),
    (
        "flag 0.1, 560m on half of 1000m",
        0.1,
        560,
        [(0, 12, "cpu resource utilization (percentage of request) above target")],
    ),
    ("flag 0.1, 559m: 55.9 % are cut to 55 %, which is within", 0.1, 559, []),
)
def test_flag(tolerance: float, usage_milli: int, timeline: Timeline) -> None:
    """A ratio close enough to 1 is not followed, so that small peaks do not matter."""
    found = world(autoscaler(cpu(50), most=20), 10, alike(usage_milli), settings=Settings(tolerance=tolerance))
    assert found.run(0) == timeline


@examples(
    f"{DOCUMENTATION}: tolerance in both directions at once",
    "",
    ("20 % for more, 5 % for less: 119 stays, 121 does not", [(60, 13, REQUESTS)]),
)
def test_both_directions(timeline: Timeline) -> None:
    """The directions are independent."""
    behavior = {"scaleUp": rules(tolerance="0.2"), "scaleDown": rules(tolerance="0.05")}
    scaler = autoscaler(pods_metric("100", name="requests"), most=13, behavior=behavior)
    found = world(scaler, 10, alike({0: 119_000, 30: 96_000, 60: 121_000, 75: 100_000}))
    assert found.run(360) == timeline
