"""Several metrics, and metrics of other things than pods."""

from scenario_builders import app, autoscaler, cpu, external, of_object, world
from scenario_examples import (
    BLOG,
    CONTAINER_CPU,
    CPU,
    DESIGN_V1,
    DESIGN_V2,
    DOCUMENTATION,
    DOCUMENTATION_V1_18,
    DOWN,
    Timeline,
    examples,
)

from podscaler.core.decision import AutoscalerEvent
from podscaler.core.model.selector_store import SelectorStore
from podscaler.testing.decisions import Json, container_resource, pods_metric, resource
from podscaler.testing.scenario import Scenario
from podscaler.testing.scenario_meters import Meter, alike, each, failing, in_turn, shared, values

HITS = "Service metric hits-per-second above target"
PACKETS = "pods metric packets-per-second above target"
REQUESTS = "Ingress metric requests-per-second above target"
JOBS = "external metric jobs(nil) above target"
GPU = "example.com/gpu resource above target"
QUEUE = "external metric queue(nil) above target"


@examples(
    f"{DOCUMENTATION}: algorithm details, several metrics of which one fails",
    "other",
    ("one metric fails, the other wants 6 of 3: up", shared(3000), [(0, 6, CPU)]),
    ("one metric fails, the other wants 3 of 3: nothing", shared(1500), []),
    ("one metric fails, the other wants 1 of 3: nothing", shared(300), []),
)
def test_one_metric_fails(other: Meter, timeline: Timeline) -> None:
    """A failing metric forbids a scale-down, not a scale-up."""
    found = world(autoscaler(external("queue", average="1"), cpu(50)), 3, failing("gone"), other)
    assert found.run(600) == timeline


@examples(
    f"{DOCUMENTATION_V1_18}: algorithm details, several metrics of which one fails",
    "",
    ("a failing metric beside one at 100 % on 50 %: up to 6", [(0, 6, CPU)]),
    differs="If any metric fails, this scaling is skipped. What holds: only a scale-down is.",
)
def test_one_metric_fails_in_older_words(timeline: Timeline) -> None:
    """The scale-up happens, and the sync still ends in an error."""
    found = world(autoscaler(external("queue", average="1"), cpu(50)), 3, failing("gone"), shared(3000))
    assert found.run(0) == timeline
    assert found.last.error == (
        "invalid metrics (1 invalid out of 2), first error is: failed to get queue external metric value: failed to get"
        " queue external metric: unable to get external metric default/queue/nil: unable to fetch metrics from external"
        " metrics API: gone"
    )


@examples(
    f"{DOCUMENTATION}: algorithm details, a metric that cannot be had",
    "",
    ("a metric fails for 10 minutes: nothing; then 1 of 3", [(600, 1, DOWN)]),
)
def test_the_only_metric_fails(timeline: Timeline) -> None:
    """While its metric fails a target stays as it is; failures leave no recommendations behind."""
    found = world(autoscaler(cpu(50)), 3, in_turn({0: failing("gone"), 600: shared(300)}))
    assert found.run(900) == timeline
    assert found.condition_changes("ScalingActive") == [
        (0, "False", "FailedGetResourceMetric"),
        (600, "True", "ValidMetricFound"),
    ]


@examples(
    f"{DESIGN_V2}: the example, 80 % CPU and 1k hits per second on a service, 2 to 10 replicas",
    "cpu_milli, hits_milli",
    ("40 % CPU, 900 hits: nothing", 400, 900_000, []),
    (
        "100 % CPU, 900 hits: CPU wins with 5 of 4",
        1000,
        900_000,
        [(0, 5, CPU), (15, 7, CPU), (30, 9, CPU), (45, 10, CPU)],
    ),
    ("40 % CPU, 2k hits: hits win with 8 of 4, then as many again", 400, 2_000_000, [(0, 8, HITS), (15, 10, HITS)]),
    ("20 % CPU, 200 hits: down to the minimum", 200, 200_000, [(315, 2, DOWN)]),
)
def test_proposal_of_v2(cpu_milli: int, hits_milli: int, timeline: Timeline) -> None:
    """The larger proposal wins; a metric that does not fall as pods are added grows without end."""
    hits = of_object("hits-per-second", value="1k", kind="Service")
    scaler = autoscaler(cpu(80), hits, least=2, kind="ReplicationController")
    assert world(scaler, 4, alike(cpu_milli), values(hits_milli)).run(315) == timeline


def _overlapping() -> tuple[Scenario, Scenario]:
    selectors = SelectorStore()
    on_cpu = world(autoscaler(cpu(50), name="on-cpu"), 3, shared(3000), selectors=selectors)
    on_queue = Scenario(
        autoscaler(external("queue", average="1"), name="on-queue"), on_cpu.target, values(9000), selectors=selectors
    )
    return on_cpu, on_queue


@examples(
    f"{DESIGN_V2}: requirements, one autoscaler with several metrics instead of several autoscalers",
    "",
    ("two autoscalers on one target: the first scales until the second is seen, then neither does", [(0, 6, CPU)]),
)
def test_two_autoscalers_do_not_fight(timeline: Timeline) -> None:
    """Two autoscalers over the same pods both stop."""
    on_cpu, on_queue = _overlapping()
    for second in range(0, 75, 15):
        on_cpu.run(second)
        on_queue.run(second)
    assert on_cpu.timeline + on_queue.timeline == timeline
    text = "pods by selector app=web are controlled by more than one HPA (e.g. [default/on-cpu default/on-queue])"
    assert on_queue.last.events[0] == AutoscalerEvent("Warning", "AmbiguousSelector", text)
    assert on_cpu.condition_changes("ScalingActive") == [
        (0, "True", "ValidMetricFound"),
        (15, "False", "AmbiguousSelector"),
    ]


@examples(
    f"{BLOG}: the detailed example of metrics, 50 % CPU, 1k packets per pod, 10k requests on main-route",
    "cpu_milli, packets_milli, requests_milli",
    ("CPU asks for most", 900, 1_200_000, 12_000_000, [(0, 8, CPU)]),
    ("packets ask for most", 500, 1_900_000, 12_000_000, [(0, 8, PACKETS)]),
    ("requests ask for most", 500, 1_200_000, 19_000_000, [(0, 8, REQUESTS)]),
    ("all on target", 500, 1_000_000, 10_000_000, []),
)
def test_blog_metrics(cpu_milli: int, packets_milli: int, requests_milli: int, timeline: Timeline) -> None:
    """Of three kinds of metrics the highest proposal is used."""
    scaler = autoscaler(
        cpu(50), pods_metric("1k", name="packets-per-second"), of_object("requests-per-second", value="10k"), most=20
    )
    found = world(scaler, 4, alike(cpu_milli), alike(packets_milli), values(requests_milli))
    assert found.run(0) == timeline


@examples(
    f"{DESIGN_V1}: next steps, an aggregate metric with a target for each pod",
    "metric, qps",
    (
        "100 queries/s at the load balancer, 20 for each pod: 5",
        of_object("qps", average="20", kind="Service"),
        100,
        [(0, 4, "external metric qps(nil) above target"), (15, 5, "external metric qps(nil) above target")],
    ),
    (
        "as an external metric: 5",
        external("qps", average="20"),
        100,
        [(0, 4, "external metric qps(nil) above target"), (15, 5, "external metric qps(nil) above target")],
    ),
)
def test_aggregate_metric(metric: Json, qps: int, timeline: Timeline) -> None:
    """The total is divided over the pods before it is compared; it makes 5 pods whatever there were."""
    assert world(autoscaler(metric), 1, values(qps * 1000)).run(60) == timeline


@examples(
    f"{BLOG}: the detailed example of metrics, what each type can do",
    "metric, meter",
    (
        "an object's value for each pod: 90 on 30 makes 3 of 2",
        of_object("jobs", average="30"),
        values(90_000),
        [(0, 3, JOBS)],
    ),
    (
        "a resource of another name: 3 on 2 for each pod makes 3 of 2",
        resource("example.com/gpu", average="2"),
        alike(3000),
        [(0, 3, GPU)],
    ),
    differs="Resources are cpu and memory only, and Object metrics are never divided over the pods. What holds: any"
    " resource that the metrics API reports, and Object metrics may have an AverageValue target.",
)
def test_types_and_targets(metric: Json, meter: Meter, timeline: Timeline) -> None:
    """Resources of any name can be used, and an object's metric may be divided over the pods."""
    assert world(autoscaler(metric), 2, meter).run(0) == timeline


@examples(
    f"{DOCUMENTATION}: container resource metrics, an application with a logging sidecar",
    "metric, usage_milli",
    (
        "60 % of the application's own CPU: 90 % makes 3 of 2",
        container_resource("cpu", "application", utilization=60),
        450,
        [(0, 3, CONTAINER_CPU)],
    ),
    ("60 % of the whole pod's CPU: the same usage is 45 %, 2 stay", cpu(60), 900, []),
)
def test_container_metric(metric: Json, usage_milli: int, timeline: Timeline) -> None:
    """One busy container can scale a target whose pods as a whole are within their share."""
    pods = {"application": {"cpu": 500}, "logging": {"cpu": 1500}}
    assert world(autoscaler(metric), 2, alike(usage_milli), containers=pods).run(0) == timeline


@examples(
    f"{DOCUMENTATION}: container resource metrics, a container that only some pods have",
    "",
    ("the container is missing in one of 3 pods: nothing", []),
    differs="Pods without the named container are ignored and the recommendation is computed from the others. What"
    " holds: with a utilization target such a pod fails the metric, with a raw one it is a pod without a sample.",
)
def test_container_in_some_pods(timeline: Timeline) -> None:
    """One pod without the container is enough for the metric to fail."""
    found = world(
        autoscaler(container_resource("cpu", "application", utilization=60)),
        3,
        each(900, 900),
        containers={"application": {"cpu": 1000}},
    )
    found.target.pods[2].containers = {"other": {"cpu": 1000}}
    assert found.run(60) == timeline
    assert found.last.events[0].message == "failed to get cpu utilization: container application not found in Pod web-2"


@examples(
    f"{DOCUMENTATION}: container resource metrics, a container that only some pods have, with a raw target",
    "",
    (
        "the container is missing in one of 3 pods, 1200m in the others on 500m: 5",
        [(0, 5, "cpu resource above target")],
    ),
)
def test_container_in_some_pods_with_a_raw_target(timeline: Timeline) -> None:
    """For a raw target a pod without the container is one without a metric: (2 x 1200 + 0)/3 on 500 makes 5 of 3."""
    scaler = autoscaler(container_resource("cpu", "application", average="500m"), most=20)
    assert world(scaler, 3, each(1200, 1200)).run(0) == timeline


@examples(
    f"{DOCUMENTATION}: container resource metrics, renaming a container",
    "",
    ("half of 4 pods renamed: nothing; all renamed: the new name decides", [(300, 8, CONTAINER_CPU)]),
    differs="With both names in the metrics a recommendation can be computed throughout. What holds: with utilization"
    " targets not while pods with either name exist, since each metric fails on the other's pods.",
)
def test_renaming_a_container(timeline: Timeline) -> None:
    """During the rolling update both metrics fail; after it the new name's decides for scale-ups."""
    new = in_turn({0: each(1000, 1000), 300: alike(1000)})
    found = world(
        autoscaler(container_resource("cpu", "old", utilization=50), container_resource("cpu", "new", utilization=50)),
        4,
        each(1000, 1000, 1000, 1000),
        new,
    )
    for pod, name in zip(found.target.pods, ("new", "new", "old", "old"), strict=True):
        pod.containers = {name: {"cpu": 1000}}
    during = found.run(285)
    for pod in found.target.pods:
        pod.containers = {"new": {"cpu": 1000}}
    assert (during, found.run(300)) == ([], timeline)


@examples(
    f"{DOCUMENTATION}: how it works, raw values and utilization",
    "metric",
    ("1.2 CPUs on 50 % of 2: 60 %, 5 of 4", cpu(50), [(0, 5, CPU)]),
    ("1.2 CPUs on a raw 1: 5 of 4", resource("cpu", average="1"), [(0, 5, "cpu resource above target")]),
)
def test_raw_values(metric: Json, timeline: Timeline) -> None:
    """A raw target compares usage itself, a percentage compares it with the requests."""
    assert world(autoscaler(metric), 4, alike(1200), containers=app(cpu=2000)).run(0) == timeline


@examples(
    f"{DOCUMENTATION}: how it works, object and external metrics",
    "metric",
    (
        "a queue of 90 on a value of 30: 3 times as many, up to the maximum",
        external("queue", value="30"),
        [(0, 6, QUEUE), (15, 10, QUEUE)],
    ),
    ("a queue of 90 on 30 for each pod: 3", external("queue", average="30"), [(0, 3, QUEUE)]),
)
def test_external_value_or_average(metric: Json, timeline: Timeline) -> None:
    """A value target multiplies the ready pods; an average target divides the value over them first."""
    assert world(autoscaler(metric, behavior={}), 2, values(90_000)).run(30) == timeline
