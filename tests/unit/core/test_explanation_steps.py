"""The steps of an explanation: every number of the way, however many pods there are."""

import pytest

from podscaler.core.decision import Decision
from podscaler.core.model.history import History, Recommendation, ScaleEvent
from podscaler.core.model.observation import Sample, Values
from podscaler.explain import explained
from podscaler.explain.explanation_parts import Line, Section, TraceSource
from podscaler.testing.decisions import (
    DOWN,
    NOW,
    SECOND,
    conditions,
    decided,
    external_metric,
    observed,
    pod,
    pods,
    resource,
    rules,
    sampled,
    scaler,
    using,
    values,
)

QUEUE = external_metric(average="1")


def section(decision: Decision, number: int, source: TraceSource = TraceSource.RECORDING) -> list[tuple[str, str]]:
    """The lines of one section."""
    steps = explained.of_decision(decision, source).steps
    return [(line.label, line.text) for line in steps[number].lines]


def test_the_query_of_a_metric_that_is_read_directly() -> None:
    """What was asked of which system, and the response."""
    answer = Values((42_000,), "redis list jobs at 127.0.0.1:6379/0")
    lines = section(decided(scaler(QUEUE), observed(answer, replicas=6)), 1)
    assert lines[:2] == [("query", "redis list jobs at 127.0.0.1:6379/0: 42"), ("value", "42")]


def test_pods_are_grouped_by_rule() -> None:
    """Used, ignored, not ready and missing pods, each with the rule and what was assumed."""
    listed = [
        pod("used"),
        pod("gone", deleting=True),
        pod("failed", phase="Failed"),
        pod("pending", phase="Pending"),
        pod("starting", ready="False", started=-10, changed=-10),
        pod("silent"),
    ]
    answer = sampled(used=900, starting=100, stranger=5)
    spec = scaler(resource(utilization=50))
    assert section(decided(spec, observed(answer, listed=listed, replicas=6)), 1) == [
        ("used", "1 pod: used 900m of 1000m"),
        ("ignored", "1 pod (being deleted): gone"),
        ("ignored", "1 pod (failed): failed"),
        ("not ready", "1 pod (pending): pending; counted in as 0m"),
        ("not ready", "1 pod (still starting): starting 100m of 1000m; counted in as 0m"),
        ("missing", "1 pod (no sample): silent; counted in as 0m"),
        ("unlisted", "1 sample of pods that are not there: stranger 5m"),
        ("sum", "900m of 1000m requested by 1 pod = 90 %"),
        ("ratio", "90 % / 50 % = 1.8, outside tolerance (0.9 to 1.1)"),
        ("again", "with the pods counted in: 900m of 4000m requested by 4 pods = 22 %"),
        ("ratio", "22 % / 50 % = 0.44, outside tolerance (0.9 to 1.1)"),
        ("proposal", "6: no change, because counting the pods in turns the direction around"),
    ]


def test_many_pods_take_one_line() -> None:
    """A thousand pods are a range and a few names."""
    answer = sampled(*[100 + index % 7 for index in range(1000)])
    spec = scaler(resource(utilization=50), most=2000)
    lines = section(decided(spec, observed(answer, listed=pods(1000), replicas=1000)), 1)
    assert lines[0] == (
        "used",
        "1000 pods from 100m to 106m: p0 100m of 1000m, p1 101m of 1000m, p2 102m of 1000m, p3 103m of 1000m, "
        "p4 104m of 1000m and 995 more",
    )
    assert len(lines) == 4


def test_windows_and_policies() -> None:
    """What a window holds with ages, which recommendation wins, each policy's budget and what is left of it."""
    behavior = {
        "scaleUp": rules(("Pods", 4, 60), ("Percent", 100, 60), window=30),
        "scaleDown": rules(("Percent", 10, 60)),
    }
    past = History(
        tuple(Recommendation(replicas, NOW - ago * SECOND) for replicas, ago in ((9, 400), (9, 28), (9, 14))),
        scale_ups=(ScaleEvent(3, NOW - 20 * SECOND),),
    )
    spec = scaler(QUEUE, most=20, behavior=behavior)
    assert section(decided(spec, observed(values(12000), replicas=6), past), 2) == [
        ("metrics", "12 by metrics[0]"),
        ("window up", "30 s: 9 (2 times, 28 s to 14 s ago), 1 older; lowest 9 (14 s ago)"),
        ("window down", "5 min: 9 (2 times, 28 s to 14 s ago), 1 older; highest 12 (the proposal itself)"),
        ("stabilized", "9, recommended 14 s ago, instead of 12"),
        ("policy", "4 pods each 1 min: added 3 (20 s ago) in that time, so it began at 3; allows 7, 1 left"),
        ("policy", "100 % each 1 min: added 3 (20 s ago) in that time, so it began at 3; allows 6, 0 left"),
        ("rate", "the policy that allows most: to 7 at most"),
        ("bounds", "1 to 20: 7 instead of 9 (ScaleUpLimit)"),
        ("result", "7 instead of 6"),
        ("scale", "7 written at 00:00:00Z (external metric queue(nil) above target)"),
    ]


def test_without_behavior() -> None:
    """The flag's window, the doubling, the bounds."""
    past = History((Recommendation(2, NOW - 300 * SECOND),))
    assert section(decided(scaler(QUEUE, most=20), observed(values(9000), replicas=2), past), 2) == [
        ("metrics", "9 by metrics[0]"),
        ("window down", "5 min: 2 (5 min ago); highest 9 (the proposal itself)"),
        ("stabilized", "9, as proposed"),
        ("rate", "twice the current count, but 4 at least: to 4 at most"),
        ("bounds", "1 to 20: 4 instead of 9 (ScaleUpLimit)"),
        ("result", "4 instead of 2"),
        ("scale", "4 written at 00:00:00Z (external metric queue(nil) above target)"),
    ]


def test_a_failed_metric_among_others() -> None:
    """The failing metric's error and reason, and what the others were good for."""
    spec = scaler(resource(utilization=50), QUEUE)
    decision = decided(spec, observed(using(3, 100), DOWN))
    assert section(decision, 2) == [
        (
            "failed",
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
            f"{DOWN.message}",
        ),
        ("reason", "FailedGetExternalMetric"),
    ]
    assert section(decision, 3)[0] == (
        "metrics",
        "1 by metrics[0]; failed: metrics[1]: nothing is scaled down while metrics fail",
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (TraceSource.RECORDING, "5 written at 00:00:00Z (external metric queue(nil) above target)"),
        (TraceSource.WHAT_IF, "5 would have been written (external metric queue(nil) above target)"),
        (
            TraceSource.CLUSTER,
            "nothing is written by this command; the controller acts at its next sync (external metric queue(nil) "
            "above target)",
        ),
    ],
)
def test_who_writes(source: TraceSource, expected: str) -> None:
    """Only what was recorded has been written."""
    assert section(decided(scaler(QUEUE), observed(values(5000))), 2, source)[-1] == ("scale", expected)


def test_unknown_history() -> None:
    """Nothing is told of windows and budgets that are not known."""
    spec = scaler(QUEUE, behavior={"scaleUp": rules(("Pods", 4, 60))})
    lines = section(decided(spec, observed(values(5000))), 2, TraceSource.CLUSTER_WITHOUT_HISTORY)
    assert lines[1:3] == [
        ("window", "not known: the controller's recommendations are not"),
        ("policies", "not known how much of them is used up: the controller's changes are not"),
    ]


def test_what_was_said() -> None:
    """Conditions with their age, events, and the error."""
    decision = decided(scaler(QUEUE), observed(DOWN, before=conditions(AbleToScale="True")))
    prefix = "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
    bare = f"{prefix}{DOWN.message}"
    assert section(decision, 3)[:3] == [
        (
            "AbleToScale",
            "True, since 2025-12-31T23:00:00Z: SucceededGetScale, the HPA controller was able to get the target's "
            "current scale",
        ),
        (
            "ScalingActive",
            "False, from now on: FailedGetExternalMetric, the HPA was unable to compute the replica count: " + bare,
        ),
        ("event", f"Warning FailedGetExternalMetric: {bare}"),
    ]


def test_the_way_at_zero() -> None:
    """Who scaled to zero, and whether something can wake the target."""
    asleep = observed(values(3000), replicas=0, listed=[], before=conditions(ScaledToZero="True"))
    steps = explained.of_decision(decided(scaler(QUEUE, least=0), asleep)).steps
    assert steps[0].lines[2] == Line(
        "zero",
        "scaled there by this autoscaler; it has a metric of type Object or External, which could wake the target",
    )
    assert steps[1].lines[1] == Line("ratio", "3 / (1 x 0 replicas) = infinite, outside tolerance (0.9 to 1.1)")


def test_text_aligns_labels() -> None:
    """The text form: sentence, advice, then sections with aligned labels."""
    decision = decided(scaler(QUEUE), observed(replicas=0))
    assert explained.text(explained.of_decision(decision)).splitlines()[:9] == [
        "default/web is paused: its target has 0 replicas, and it was not this autoscaler that scaled it there.",
        "To do: scale the target to 1 or more by hand to hand it back: an autoscaler leaves a target alone that others "
        "scaled to 0.",
        "",
        "Seen at 2026-01-01T00:00:00Z, by the rules of Kubernetes 1.37",
        "  scale    0 wanted, 0 there",
        "  bounds   minReplicas 1, maxReplicas 10",
        "  zero     not scaled there by this autoscaler; it has a metric of type Object or External, which could wake "
        "the target",
        "  metrics  not looked at",
        "",
    ]


def test_a_sample_from_before_ready() -> None:
    """A starting pod whose sample is too old to count is told so."""
    listed = [pod("old"), pod("young", started=-60, changed=-20)]
    answer = sampled(old=500, young=500)
    samples = dict(answer.samples) | {"young": Sample(500, NOW - 10 * SECOND, 30 * SECOND)}
    observation = observed(type(answer)(samples), listed=listed, replicas=2)
    assert section(decided(scaler(resource(utilization=50)), observation), 1)[1] == (
        "not ready",
        "1 pod (sample from before it was ready): young 500m of 1000m",
    )


def test_a_cluster_has_said_nothing_yet() -> None:
    """A decision that nobody has carried out shows the status as it is, and no events."""
    decision = decided(scaler(QUEUE), observed(values(5000), before=conditions(AbleToScale="True")))
    explanation = explained.of_decision(decision, TraceSource.CLUSTER)
    assert (explanation.conditions, explanation.events) == (conditions(AbleToScale="True"), ())
    assert explanation.steps[-1] == Section(
        "Status as it is", (Line("AbleToScale", "True, since 2025-12-31T23:00:00Z: Old, old"),)
    )
