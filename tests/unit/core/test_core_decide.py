"""One sync from start to end: branches, conditions, events, errors, history.

Source: docs/spec/decision.md 2 (Reconcile in order), 3 (Combining the metrics), 11 (Status), 14 (Test vectors).
"""

from typing import Any

import msgspec
import pytest

from podscaler.api.machinery import selectors
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.core.decision import Action, ErrorKind
from podscaler.core.model.history import EMPTY, History, Recommendation, ScaleEvent
from podscaler.core.model.observation import NO_KIND_MATCH, Failure
from podscaler.core.model.selector_store import SelectorStore
from podscaler.core.model.settings import Gates, Settings
from podscaler.core.model.trace import Branch
from podscaler.testing.decisions import (
    DOWN,
    NOW,
    NOW_TEXT,
    SECOND,
    Json,
    condition_rows,
    conditions,
    decided,
    event_rows,
    external_metric,
    messages,
    object_metric,
    observed,
    pods_metric,
    resource,
    rules,
    scaler,
    using,
    values,
)

ZERO_ON = conditions(ScaledToZero="True")
GATE_OFF = Settings(gates=Gates(scale_to_zero=False))
ABOVE = "Current number of replicas above Spec.MaxReplicas"
BELOW = "Current number of replicas below Spec.MinReplicas"
SUCCEEDED_GET = ("AbleToScale", "True", "SucceededGetScale")
READY = ("AbleToScale", "True", "ReadyForNewScale")
RESCALED = ("AbleToScale", "True", "SucceededRescale")
VALID = ("ScalingActive", "True", "ValidMetricFound")
WITHIN = ("ScalingLimited", "False", "DesiredWithinRange")
NOT_ZERO = ("ScaledToZero", "False", "NotScaledToZero")
DISABLED = ("ScalingActive", "False", "ScalingDisabled")


@pytest.mark.parametrize(
    ("target_ref", "scale", "message", "prefix", "kind"),
    [
        (
            {"kind": "Deployment", "name": "web", "apiVersion": "a/b/c"},
            Failure("not looked at"),
            "unexpected GroupVersion string: a/b/c",
            "invalid API version in scale target reference: ",
            ErrorKind.SPEC,
        ),
        (
            None,
            Failure('no matches for kind "X" in group ""', NO_KIND_MATCH),
            'no matches for kind "X" in group ""',
            "unable to determine resource for scale target reference: ",
            ErrorKind.INTERNAL,
        ),
        (
            None,
            Failure('deployments.apps "web" not found', "NotFound", 404),
            'deployments.apps "web" not found',
            "failed to query scale subresource for Deployment/default/web: ",
            ErrorKind.INTERNAL,
        ),
    ],
    ids=["apiVersion", "kind", "scale"],
)
def test_no_scale(target_ref: Json | None, scale: Failure, message: str, prefix: str, kind: ErrorKind) -> None:
    """Without a scale only AbleToScale changes, and history is left alone."""
    before = HorizontalPodAutoscalerStatus(3, NOW_TEXT, 5, 6, conditions=conditions(ScalingActive="True"))
    observation = msgspec.structs.replace(observed(), scale=scale, status=before)
    decision = decided(scaler(target_ref=target_ref), observation)
    assert msgspec.structs.replace(decision.status, conditions=before.conditions) == before
    assert condition_rows(decision)[1:] == [("AbleToScale", "False", "FailedGetScale")]
    assert messages(decision)["AbleToScale"] == (
        f"the HPA controller was unable to get the target's current scale: {message}"
    )
    assert event_rows(decision) == [("Warning", "FailedGetScale", message)]
    assert (decision.error, decision.error_kind, decision.history) == (f"{prefix}{message}", kind, EMPTY)


@pytest.mark.parametrize(
    ("replicas", "least", "before", "metric", "branch"),
    [
        (0, 1, (), external_metric(value="1"), Branch.DISABLED),
        (0, 0, (), external_metric(value="1"), Branch.DISABLED),
        (0, 1, ZERO_ON, resource(utilization=50), Branch.METRICS),
        (0, 0, ZERO_ON, resource(utilization=50), Branch.DISABLED),
        (0, 0, ZERO_ON, external_metric(value="1"), Branch.METRICS),
        (0, 0, ZERO_ON, object_metric(value="1"), Branch.METRICS),
        (0, 0, conditions(ScaledToZero="False"), external_metric(value="1"), Branch.DISABLED),
        (11, 1, (), resource(utilization=50), Branch.ABOVE_MAXIMUM),
        (10, 1, (), resource(utilization=50), Branch.METRICS),
        (1, 2, (), resource(utilization=50), Branch.BELOW_MINIMUM),
        (2, 2, (), resource(utilization=50), Branch.METRICS),
    ],
)
def test_branches(replicas: int, least: int, before: Any, metric: Json, branch: Branch) -> None:
    """Zero replicas pause unless this autoscaler put them there; out of bounds goes straight to the bound."""
    answer = values(0) if metric["type"] in {"External", "Object"} else using(replicas, 500)
    decision = decided(scaler(metric, least=least), observed(answer, replicas=replicas, before=before))
    assert decision.trace.branch == branch


def test_no_waking_without_the_gate() -> None:
    """With HPAScaleToZero off, zero replicas always pause and the condition disappears."""
    observation = observed(values(5000), replicas=0, before=ZERO_ON)
    decision = decided(scaler(external_metric(value="1"), least=0), observation, settings=GATE_OFF)
    assert condition_rows(decision) == [SUCCEEDED_GET, DISABLED]


def test_paused() -> None:
    """A target at zero by hand is left alone, with currentMetrics emptied."""
    decision = decided(scaler(), observed(replicas=0))
    assert decision.status == HorizontalPodAutoscalerStatus(1, conditions=decision.status.conditions)
    assert (condition_rows(decision), decision.events, decision.replicas, decision.reached_end) == (
        [SUCCEEDED_GET, DISABLED],
        (),
        None,
        True,
    )
    assert decision.history == History((Recommendation(0, NOW),))


@pytest.mark.parametrize(
    ("replicas", "least", "desired", "reason", "action"),
    [(13, 1, 10, ABOVE, Action.SCALE_DOWN), (2, 3, 3, BELOW, Action.SCALE_UP)],
)
def test_clamped(replicas: int, least: int, desired: int, reason: str, action: Action) -> None:
    """A count out of bounds is written at once: no metrics, no stabilization, ScalingActive and -Limited untouched."""
    decision = decided(scaler(least=least), observed(replicas=replicas))
    assert (decision.replicas, decision.status.desired_replicas, decision.status.current_replicas) == (
        desired,
        desired,
        replicas,
    )
    assert event_rows(decision) == [("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {reason}")]
    assert condition_rows(decision) == [RESCALED, NOT_ZERO]
    assert (decision.status.current_metrics, decision.status.last_scale_time, decision.action) == (
        None,
        NOW_TEXT,
        action,
    )


def test_no_change() -> None:
    """On target nothing is written, and the conditions stand in upstream's order."""
    decision = decided(scaler(), observed(using(3, 500)))
    assert (decision.replicas, decision.events, decision.error, decision.draft) == (None, (), "", None)
    assert condition_rows(decision) == [READY, VALID, WITHIN]
    assert decision.status.desired_replicas == 3
    assert decision.selector == selectors.parse("app=web")


def test_scale_up() -> None:
    """Above target the scale is raised, with the winner's name in condition and event."""
    decision = decided(scaler(), observed(using(3, 800)))
    name = "cpu resource utilization (percentage of request)"
    assert event_rows(decision) == [
        ("Normal", "SuccessfulRescale", f"New size: 5; reason: {name} above target"),
    ]
    assert condition_rows(decision) == [RESCALED, VALID, WITHIN, NOT_ZERO]
    assert messages(decision) == {
        "AbleToScale": "the HPA controller was able to update the target scale to 5",
        "ScalingActive": f"the HPA was able to successfully calculate a replica count from {name}",
        "ScalingLimited": "the desired count is within the acceptable range",
        "ScaledToZero": "the HPA controller did not scale the workload to zero",
    }
    assert decision.history.recommendations == (Recommendation(3, NOW), Recommendation(5, NOW))


def test_scale_down() -> None:
    """Below target, once the window has passed, the scale is lowered."""
    past = History((Recommendation(3, NOW - 301 * SECOND),))
    decision = decided(scaler(), observed(using(3, 300)), past)
    assert event_rows(decision) == [
        ("Normal", "SuccessfulRescale", "New size: 2; reason: All metrics below target"),
    ]
    assert (decision.replicas, decision.action) == (2, Action.SCALE_DOWN)


def test_first_sync_holds_a_scale_down() -> None:
    """What the target had when it was first seen counts as a recommendation."""
    decision = decided(scaler(), observed(using(3, 300)))
    assert (decision.replicas, condition_rows(decision)[0]) == (None, ("AbleToScale", "True", "ScaleDownStabilized"))


def test_metrics_fail() -> None:
    """If all metrics fail, nothing changes but status and conditions; the summary event follows the status."""
    decision = decided(scaler(pods_metric()), observed(DOWN))
    bare = f"unable to get metric rps: unable to fetch metrics from custom metrics API: {DOWN.message}"
    error = f"invalid metrics (1 invalid out of 1), first error is: failed to get pods metric value: {bare}"
    assert event_rows(decision) == [
        ("Warning", "FailedGetPodsMetric", bare),
        ("Warning", "FailedComputeMetricsReplicas", error),
    ]
    assert [event.follows_status for event in decision.events] == [False, True]
    assert condition_rows(decision) == [SUCCEEDED_GET, ("ScalingActive", "False", "FailedGetPodsMetric")]
    assert messages(decision)["ScalingActive"] == f"the HPA was unable to compute the replica count: {bare}"
    assert decision.error == (
        "failed to compute desired number of replicas based on listed metrics for Deployment/default/web: " + error
    )
    assert (decision.error_kind, decision.reached_end) == (ErrorKind.INTERNAL, False)
    assert (decision.status.desired_replicas, decision.history.recommendations) == (3, (Recommendation(3, NOW),))


def test_metrics_fail_keeps_the_previous_desired_count() -> None:
    """A failure leaves desiredReplicas as status had it, not as the scale has it."""
    observation = observed(DOWN)
    status = msgspec.structs.replace(observation.status, desired_replicas=7)
    decision = decided(scaler(pods_metric()), msgspec.structs.replace(observation, status=status))
    assert decision.status.desired_replicas == 7


def test_partial_failure_scales_up() -> None:
    """With one metric failing another may still scale up; the sync ends in the error all the same."""
    spec = scaler(resource(utilization=50), external_metric(average="1"))
    decision = decided(spec, observed(DOWN, values(8000), replicas=5))
    assert (decision.replicas, condition_rows(decision)[:2]) == (8, [RESCALED, VALID])
    assert decision.error.startswith("invalid metrics (1 invalid out of 2), first error is: failed to get cpu")
    assert (decision.error_kind, decision.action) == (ErrorKind.INTERNAL, Action.SCALE_UP)
    assert [event.reason for event in decision.events] == ["FailedGetResourceMetric", "SuccessfulRescale"]


def test_partial_failure_never_scales_down() -> None:
    """With one metric failing another may not scale down: the condition is the failing one's."""
    spec = scaler(resource(utilization=50), external_metric(average="1"))
    decision = decided(spec, observed(DOWN, values(3000), replicas=5))
    assert (decision.replicas, condition_rows(decision)[1]) == (
        None,
        ("ScalingActive", "False", "FailedGetResourceMetric"),
    )


def test_first_metric_fails_second_reports() -> None:
    """CPU without pods, External 4 at target 1 with 3 replicas: 4, reported 1334m, and an empty first entry."""
    spec = scaler(resource(utilization=50), external_metric(average="1"))
    decision = decided(spec, observed(using(0, 0), values(4000), listed=[]))
    written = msgspec.json.decode(msgspec.json.encode(decision.status))
    assert (decision.replicas, written["currentMetrics"][0]) == (4, {"type": ""})
    assert written["currentMetrics"][1]["external"]["current"] == {"averageValue": "1334m"}


def test_unknown_type() -> None:
    """An unknown metric type is the user's mistake."""
    decision = decided(scaler({"type": "Magic"}), observed())
    assert (decision.error_kind, condition_rows(decision)[1]) == (
        ErrorKind.SPEC,
        ("ScalingActive", "False", "InvalidMetricSourceType"),
    )


@pytest.mark.parametrize(
    ("selector", "condition", "message", "reasons"),
    [
        (
            "",
            ("ScalingActive", "False", "InvalidSelector"),
            "the HPA target's scale is missing a selector",
            ["SelectorRequired", "FailedComputeMetricsReplicas"],
        ),
        (
            "a,",
            ("ScalingActive", "False", "InvalidSelector"),
            "couldn't convert selector into a corresponding internal selector object:"
            " found '', expected: identifier after ','",
            ["InvalidSelector", "FailedComputeMetricsReplicas"],
        ),
    ],
)
def test_unusable_selector(selector: str, condition: tuple[str, str, str], message: str, reasons: list[str]) -> None:
    """Without a usable selector no metric is asked, and currentMetrics becomes empty."""
    decision = decided(scaler(), observed(selector=selector))
    assert (condition_rows(decision)[1], messages(decision)["ScalingActive"]) == (condition, message)
    assert ([event.reason for event in decision.events], decision.status.current_metrics, decision.selector) == (
        reasons,
        None,
        None,
    )


def test_overlap() -> None:
    """Two autoscalers over the same pods stop, but the bounds still act."""
    store = SelectorStore()
    store.store("default/other", selectors.parse("app"))
    neighbours = store.namespace("default")
    stopped = decided(scaler(), observed(using(3, 800), neighbours=neighbours))
    clamped = decided(scaler(), observed(replicas=13, neighbours=neighbours))
    text = "pods by selector app=web are controlled by more than one HPA (e.g. [default/other default/web])"
    assert event_rows(stopped) == [
        ("Warning", "AmbiguousSelector", text),
        ("Warning", "FailedComputeMetricsReplicas", text),
    ]
    assert (stopped.replicas, messages(stopped)["ScalingActive"], clamped.replicas) == (None, text, 10)


def test_gone_autoscaler() -> None:
    """An autoscaler that is deleted meanwhile ends in an error without a condition and an event of its own."""
    decision = decided(scaler(), observed(is_registered=False))
    assert (condition_rows(decision), [event.reason for event in decision.events], decision.selector) == (
        [SUCCEEDED_GET],
        ["FailedComputeMetricsReplicas"],
        None,
    )


LONG_AGO = History((Recommendation(0, NOW - 3600 * SECOND),))


def test_scale_to_zero_and_wake() -> None:
    """Down to zero is recorded in ScaledToZero; from there the metric wakes the target, value rule without pods."""
    spec = scaler(external_metric(value="10"), least=0)
    down = decided(spec, observed(values(0), replicas=1), LONG_AGO)
    asleep = observed(values(25_000), replicas=0, before=down.status.conditions or ())
    up = decided(spec, asleep, down.history, NOW + 15 * SECOND)
    assert (down.replicas, condition_rows(down)[-1]) == (0, ("ScaledToZero", "True", "ScaledToZero"))
    assert (up.replicas, condition_rows(up)[-1]) == (3, NOT_ZERO)


def test_zero_without_the_gate_leaves_no_condition() -> None:
    """With the gate off scaling to zero still happens, but is not recorded."""
    spec = scaler(external_metric(value="10"), least=0)
    decision = decided(spec, observed(values(0), replicas=1, before=ZERO_ON), LONG_AGO, settings=GATE_OFF)
    assert (decision.replicas, "ScaledToZero" in messages(decision)) == (0, False)


@pytest.mark.parametrize(
    ("behavior", "event", "limited"),
    [
        (None, "New size: 1; reason: ", ("ScalingLimited", "True", "TooFewReplicas")),
        ({}, f"New size: 1; reason: {BELOW}", WITHIN),
    ],
    ids=["without behavior", "with behavior"],
)
def test_minimum_raised_at_zero(behavior: Json | None, event: str, limited: tuple[str, str, str]) -> None:
    """At zero of its own making with a minimum of 1 and nothing to do, the target comes back to 1."""
    spec = scaler(external_metric(average="1"), least=1, behavior=behavior)
    decision = decided(spec, observed(values(0), replicas=0, before=ZERO_ON), LONG_AGO)
    assert (decision.replicas, [each.message for each in decision.events]) == (1, [event])
    assert limited in condition_rows(decision)


def test_all_metrics_failing_at_zero_stays_there() -> None:
    """At zero of its own making, a failing metric does not lift the target to the minimum."""
    spec = scaler(external_metric(average="1"), least=1)
    assert decided(spec, observed(DOWN, replicas=0, before=ZERO_ON)).replicas is None


@pytest.mark.parametrize(
    ("metric", "past", "replicas", "reason"),
    [
        (external_metric(average="1m"), EMPTY, 6, "external metric queue(nil) above target"),
        (object_metric(average="1m"), LONG_AGO, 1, "All metrics below target"),
        (object_metric(average="1m"), EMPTY, None, None),
    ],
    ids=["saturates", "overflows to a scale-down", "which stabilization holds back"],
)
def test_huge_values(metric: Json, past: History, replicas: int | None, reason: str | None) -> None:
    """10^17 thousandths over a target of one thousandth: External saturates, Object overflows like upstream."""
    decision = decided(scaler(metric), observed(values(10**17)), past)
    assert (decision.replicas, [event.message.partition("reason: ")[2] for event in decision.events]) == (
        replicas,
        [reason] if reason else [],
    )


def test_average_over_no_replicas() -> None:
    """Object AverageValue with no replicas in status: 5, and the reported average is the smallest int64."""
    observation = observed(values(5000), status_replicas=0)
    decision = decided(scaler(object_metric(average="1")), observation)
    written = msgspec.json.decode(msgspec.json.encode(decision.status))
    assert decision.replicas == 5
    assert written["currentMetrics"][0]["object"]["current"] == {"averageValue": "-9223372036854775808m"}


def test_limits_without_behavior() -> None:
    """From 1, a proposal of 10 becomes 4; from 10, a proposal of 50 becomes 20; both are ScaleUpLimit."""
    small = decided(scaler(external_metric(average="1"), most=20), observed(values(10_000), replicas=1))
    large = decided(scaler(external_metric(average="1"), most=100), observed(values(50_000), replicas=10))
    limited = ("ScalingLimited", "True", "ScaleUpLimit")
    assert (small.replicas, large.replicas, condition_rows(small)[2], condition_rows(large)[2]) == (
        4,
        20,
        limited,
        limited,
    )


def test_behavior_limits_by_what_was_changed() -> None:
    """With behavior a rescale is remembered, and the next sync may only use what is left of the period."""
    spec = scaler(external_metric(average="1"), behavior={"scaleUp": rules(("Pods", 2, 60))})
    first = decided(spec, observed(values(9000), replicas=3))
    again = decided(spec, observed(values(9000), replicas=5), first.history, NOW + 30 * SECOND)
    later = decided(spec, observed(values(9000), replicas=5), first.history, NOW + 60 * SECOND)
    assert first.history.scale_ups == (ScaleEvent(2, NOW),)
    assert (first.replicas, again.replicas, later.replicas) == (5, None, 7)
    assert condition_rows(again)[2] == ("ScalingLimited", "True", "ScaleUpLimit")


def test_nothing_is_remembered_of_changes_without_behavior() -> None:
    """Without behavior no scale events are kept."""
    decision = decided(scaler(), observed(using(3, 800)))
    assert (decision.history.scale_ups, decision.history.scale_downs) == ((), ())


def test_generation() -> None:
    """observedGeneration is the object's generation; with the gate off it is dropped."""
    observation = msgspec.structs.replace(observed(using(3, 500)), generation=0)
    off = decided(scaler(), observation, settings=Settings(gates=Gates(generation=False)))
    assert (decided(scaler(), observation).status.observed_generation, off.status.observed_generation) == (0, None)


def test_transition_times() -> None:
    """A condition written several times in a sync keeps its time as long as its status stays."""
    before = conditions(AbleToScale="True", ScalingActive="False")
    decision = decided(scaler(), observed(using(3, 800), before=before))
    times = {each.type: each.last_transition_time for each in decision.status.conditions or ()}
    assert times == {
        "AbleToScale": "2025-12-31T23:00:00Z",
        "ScalingActive": NOW_TEXT,
        "ScalingLimited": NOW_TEXT,
        "ScaledToZero": NOW_TEXT,
    }


def test_inputs_are_not_changed() -> None:
    """The same arguments give the same decision, and are as they were afterwards."""
    observation, past = observed(using(3, 800), before=conditions(AbleToScale="False")), EMPTY
    copy = msgspec.json.encode((observation.status, past))
    first = decided(scaler(), observation, past)
    second = decided(scaler(), observation, past)
    assert msgspec.json.encode((observation.status, past)) == copy
    assert (first.status, first.events, first.history, first.trace) == (
        second.status,
        second.events,
        second.history,
        second.trace,
    )
