"""Pods without metrics, not ready yet, failed or on their way out: how they damp a change.

Pods request 1000m of CPU; percentages in titles are of that.
"""

from scenario_builders import app, autoscaler, cpu, world
from scenario_examples import BLOG, CPU, DOCUMENTATION, DOWN, Timeline, examples

from podscaler.base.clock import NANOSECONDS
from podscaler.core.model.observation import Measurement, PodSamples, Sample
from podscaler.core.model.settings import Settings
from podscaler.core.model.trace import PerPod
from podscaler.testing.decisions import resource
from podscaler.testing.scenario import START, Scenario
from podscaler.testing.scenario_meters import Meter, ScenarioMoment, alike, each

DETAILS = f"{DOCUMENTATION}: algorithm details"


def damped(
    scaler_pct: int, meter: Meter, *, replicas: int, missing: int = 0, pending: int = 0, gone: tuple[int, int] = (0, 0)
) -> Scenario:
    """A world whose last pods are missing from the metrics, pending, failed or being deleted, in that order."""
    found = world(autoscaler(cpu(scaler_pct), most=20), replicas, meter)
    failed, deleted = gone
    kinds = ["missing"] * missing + ["pending"] * pending + ["failed"] * failed + ["deleted"] * deleted
    for pod, kind in zip(found.target.pods[replicas - len(kinds) :], kinds, strict=True):
        pod.reports = kind != "missing"
        pod.phase = {"pending": "Pending", "failed": "Failed"}.get(kind, "Running")
        pod.is_deleting = kind == "deleted"
    return found


def shown_pct(found: Scenario) -> int | None:
    """The utilization that status shows."""
    (status,) = found.status.current_metrics or ()
    assert status.resource is not None
    return status.resource.current.average_utilization


@examples(
    f"{DETAILS}, missing metrics and pods that are not ready when there is too much load",
    "replicas, missing, pending",
    ("all 3 pods at 100 % on 50 %: 6", 3, 0, 0, [(0, 6, CPU)]),
    ("2 pods at 100 %, the third is missing and taken as idle: 4 instead of 6", 3, 1, 0, [(0, 4, CPU)]),
    ("2 pods at 100 %, the third is not ready and taken as idle: 4 instead of 6", 3, 0, 1, [(0, 4, CPU)]),
    ("2 pods at 100 %, 2 that are missing or not ready: ratio 1, nothing", 4, 1, 1, []),
    ("2 pods at 100 %, 3 that are missing or not ready: turned around, nothing", 5, 2, 1, []),
)
def test_scale_up_is_damped(replicas: int, missing: int, pending: int, timeline: Timeline) -> None:
    """On the way up pods without a usable sample count as idle; status still shows the 100 % that were measured."""
    found = damped(50, alike(1000), replicas=replicas, missing=missing, pending=pending)
    assert found.run(0) == timeline
    assert shown_pct(found) == 100


@examples(
    f"{DETAILS}, missing metrics when there is too little load",
    "replicas, missing",
    ("all 4 pods at 10 % on 50 %: 1, after the window", 4, 0, [(315, 1, DOWN)]),
    ("3 pods at 10 %, the fourth is missing and taken as busy: 3", 4, 1, [(315, 3, DOWN)]),
    ("2 pods at 10 %, 2 missing: within tolerance, nothing", 4, 2, []),
    ("1 pod at 10 %, 3 missing: turned around, nothing", 4, 3, []),
    differs="A missing pod is assumed to use 100 % of the desired value (50 % of its request here: 2 of the 4). What"
    " holds: it is assumed to use 100 % of its request, or the target where that is higher.",
)
def test_scale_down_is_damped(replicas: int, missing: int, timeline: Timeline) -> None:
    """On the way down pods without a sample count as using all they request; status shows the 10 %."""
    found = damped(50, alike(100), replicas=replicas, missing=missing)
    assert found.run(315) == timeline
    assert shown_pct(found) == 10


@examples(
    f"{DETAILS}, a raw target when there is too little load",
    "",
    ("3 pods at 100m on 500m, the fourth is missing and taken as on target: 2", [(315, 2, DOWN)]),
)
def test_missing_on_an_average_target(timeline: Timeline) -> None:
    """For a raw target a missing pod counts as being on target: (300 + 500)/4 = 200m, ceil(4 x 0.4) = 2."""
    found = world(autoscaler(resource("cpu", average="500m")), 4, alike(100))
    found.target.pods[0].reports = False
    assert found.run(315) == timeline


@examples(
    f"{DETAILS}, pods that are shut down or have failed",
    "",
    ("3 pods at 100 % on 50 %, one failed and one being deleted: 6", [(0, 6, CPU)]),
)
def test_failed_and_deleted_pods_are_discarded(timeline: Timeline) -> None:
    """Failed pods and those with a deletion timestamp count for nothing."""
    assert damped(50, alike(1000), replicas=5, gone=(1, 1)).run(0) == timeline


@examples(
    f"{BLOG}: the second example, 14 pods with a target of 60 %",
    "",
    ("10 of 14 pods at 85 % on 60 %, 2 failed, 2 without metrics: nothing", []),
    differs="Failed pods enter the mean with 0 %, and pods without metrics with 100 % of the target when scaling up:"
    " (850 + 0 + 120)/14 = 69.28 %, so 17, cut to the maximum of 16. What holds: failed pods are left out altogether,"
    " pods without metrics count as idle when scaling up: 850/12 = 70 %, and ceil(12 x 70/60) = 14 is what there is.",
)
def test_blog_missing(timeline: Timeline) -> None:
    """Ten busy pods of 14 do not ask for more when the others are damped in; 85 % is what status shows."""
    found = world(autoscaler(cpu(60), least=12, most=16), 14, alike(850))
    for pod in found.target.pods[10:12]:
        pod.phase = "Failed"
    for pod in found.target.pods[12:]:
        pod.reports = False
    assert found.run(0) == timeline
    assert shown_pct(found) == 85


@examples(
    f"{BLOG}: uncommon cases, pods that are not ready",
    "",
    ("5 of 10 pods at 25 % on 50 %, 5 pending: 3", [(315, 3, DOWN)]),
    differs="A pod that is not ready always counts with 0 %. What holds: only when scaling up; with too little load"
    " such pods vanish from the sum: ceil(5 x 0.5) = 3.",
)
def test_unready_pods_on_the_way_down(timeline: Timeline) -> None:
    """With too little load only the ready pods are multiplied."""
    assert damped(50, alike(250), replicas=10, pending=5).run(315) == timeline


@examples(
    f"{DOCUMENTATION}: pod readiness, the initial readiness delay",
    "ready_after_s",
    ("ready after 5 s and sampled since: counted, 6", 5, [(15, 6, CPU)]),
    ("ready after 8 s, sampled over 10 s: not counted yet, 4", 8, [(15, 4, CPU), (30, 6, CPU)]),
    ("not ready yet: not counted, 4", 16, [(15, 4, CPU), (30, 6, CPU)]),
    differs="A pod that is ready within the initial readiness delay (30 s) counts as still initializing. What holds: a"
    " ready pod counts as soon as a sample covers only time in which it was ready; the delay is about pods that are not"
    " ready after the CPU initialization period.",
)
def test_readiness(ready_after_s: float, timeline: Timeline) -> None:
    """A young pod's sample counts once all of it was taken after the pod got ready."""
    found = world(autoscaler(cpu(50), most=6), 3, alike({0: 500, 15: 1000}, window_s=10))
    young = found.target.pods[2]
    young.started_at, young.ready_at = START, START + round(ready_after_s * NANOSECONDS)
    assert found.run(30) == timeline


def rule_of(found: Scenario, pod: str) -> str:
    """The rule that the last sync applied to a pod's sample."""
    (step,) = found.last.trace.metrics
    assert isinstance(step.calculation, PerPod)
    return next(each.rule.value for each in step.calculation.pods if each.pod == pod)


@examples(
    f"{DOCUMENTATION}: pod readiness, pods that change between ready and not ready",
    "",
    ("a young pod is ready after 1 s, not ready at 30 s, ready again at 38 s: counted at 15 s and 60 s", []),
)
def test_flapping_readiness(timeline: Timeline) -> None:
    """Each time a young pod gets ready, its samples count only once they cover time since then."""
    found = world(autoscaler(cpu(50), most=3), 3, alike(500, window_s=10))
    young, rules = found.target.pods[2], []
    for at_s, since_s in ((0, 1), (15, 1), (30, None), (45, 38), (60, 38)):
        young.started_at = START
        young.ready_at = None if since_s is None else START + since_s * NANOSECONDS
        found.run(at_s)
        rules.append(rule_of(found, young.name))
    assert rules == [
        "UnreadyWhileStarting",
        "HasSample",
        "UnreadyWhileStarting",
        "SampledBeforeReady",
        "HasSample",
    ]
    assert found.timeline == timeline


def starting(look: ScenarioMoment) -> Measurement:
    """Each pod burns 4 CPUs in its first 35 seconds; then it shares a load of 600m with the others."""
    burning = {pod.name for pod in look.target.pods if look.now - pod.started_at < 35 * NANOSECONDS}
    share = 600 // max(len(look.target.pods) - len(burning), 1)
    usage = {pod.name: 4000 if pod.name in burning else share for pod in look.target.pods}
    return PodSamples({name: Sample(milli, look.now, 15 * NANOSECONDS) for name, milli in usage.items()})


@examples(
    f"{DOCUMENTATION}: pod readiness, good practices for slow starters",
    "ready_after_s, settings",
    ("a probe that passes after a burst of CPU, default settings: 2 pods", 40, Settings(), [(0, 2, CPU)]),
    (
        "no probe, an initialization period of 0: the burst asks for more",
        0,
        Settings(cpu_initialization_period_ns=0),
        [(0, 2, CPU), (15, 4, CPU), (30, 8, CPU), (45, 10, CPU), (390, 2, DOWN)],
    ),
)
def test_bursts_at_the_start(ready_after_s: float, settings: Settings, timeline: Timeline) -> None:
    """Behind a probe and the initialization period a start-up burst does not count; without them it multiplies."""
    found = world(autoscaler(cpu(50)), 1, starting, ready_after_s=ready_after_s, settings=settings)
    assert found.run(390) == timeline


def test_looks_at_given_pods() -> None:
    """Usage may be given pod by pod: the mean of 300m, 500m and 700m on a target of 30 % makes 5 of 3."""
    found = world(autoscaler(cpu(30)), 3, each(300, 500, 700), containers=app(cpu=1000))
    assert found.run(0) == [(0, 5, CPU)]
