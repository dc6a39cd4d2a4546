"""The sentence of an explanation: one for each way in which a decision can end."""

import msgspec
import pytest

from podscaler.core import settle
from podscaler.core.decision import Decision
from podscaler.core.model.history import History, Recommendation, ScaleEvent
from podscaler.core.model.observation import Failure, Observation
from podscaler.explain import explained
from podscaler.explain.explanation_parts import TraceSource
from podscaler.testing.decisions import (
    DOWN,
    NOW,
    SECOND,
    Json,
    conditions,
    decided,
    external_metric,
    object_metric,
    observed,
    pods_metric,
    resource,
    rules,
    sampled,
    scaler,
    using,
    values,
)

QUEUE = external_metric(average="1")
"""A metric whose value is the proposal."""
QUEUE_IS_DOWN = (
    "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
    f"{DOWN.message}"
)


class Sharing:
    """A neighbour over the same pods."""

    def sharing(self, key: str, pods: object) -> set[str]:
        del key, pods
        return {"default/api"}


def past(*recommendations: tuple[int, int], ups: tuple[tuple[int, int], ...] = (), downs: object = ()) -> History:
    """What is remembered: (replicas or change, seconds ago)."""
    assert isinstance(downs, tuple)
    return History(
        tuple(Recommendation(replicas, NOW - ago * SECOND) for replicas, ago in recommendations),
        tuple(ScaleEvent(change, NOW - ago * SECOND) for change, ago in ups),
        tuple(ScaleEvent(change, NOW - ago * SECOND) for change, ago in downs),
    )


def wanting(
    wanted: int, current: int, history: History, *, least: int = 1, most: int = 10, behavior: Json | None = None
) -> str:
    """The sentence about an autoscaler whose metric wants so many."""
    spec = scaler(QUEUE, least=least, most=most, behavior=behavior)
    observation = observed(values(wanted * 1000), replicas=current)
    return explained.of_decision(decided(spec, observation, history)).summary


def both(up: Json | None = None, down: Json | None = None) -> Json:
    """A behavior."""
    return {"scaleUp": up, "scaleDown": down}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        pytest.param(
            wanting(3, 5, past((5, 250))),
            "stays at 5: its metrics ask for 3, but "
            "a recommendation of 5 from 4 min 10 s ago holds back scaling down for 5 min; "
            "earliest change in 50 s, to 3.",
            id="window",
        ),
        pytest.param(
            wanting(3, 10, past((10, 400), (8, 30), (5, 20))),
            "goes from 10 to 8: its metrics ask for 3, but "
            "a recommendation of 8 from 30 s ago holds back scaling down for 5 min; "
            "next step in 4 min 30 s, to 5.",
            id="window, partly",
        ),
        pytest.param(
            wanting(2, 4, past((6, 30))),
            "goes from 4 to 6: its metrics ask for 2, but "
            "a recommendation of 6 from 30 s ago still counts (scaling down looks back "
            "5 min); next step in 4 min 30 s, to 2.",
            id="window, back up",
        ),
        pytest.param(
            wanting(6, 4, past((4, 100), (4, 10)), behavior=both(up=rules(window=60))),
            "stays at 4: its metrics ask for 6, but "
            "a recommendation of 4 from 10 s ago holds back scaling up for 1 min; earliest "
            "change in 50 s, to 6.",
            id="window up",
        ),
        pytest.param(
            wanting(1, 2, past((2, 10)), least=2),
            "stays at 2: its metrics ask for 1, but "
            "a recommendation of 2 from 10 s ago holds back scaling down for 5 min, and "
            "minReplicas is 2.",
            id="window, and a bound behind it",
        ),
        pytest.param(
            wanting(2, 5, past((2, 10), downs=((1, 250),)), behavior=both(down=rules(("Pods", 1, 300), window=0))),
            "stays at 5: its metrics ask for 2, but "
            "a scale-down by 1 replica 4 min 10 s ago used up the policy of 1 pod each 5 min; "
            "earliest change in 50 s, to 4.",
            id="policy used up",
        ),
        pytest.param(
            wanting(9, 5, past(ups=((2, 40), (1, 20))), behavior=both(up=rules(("Pods", 3, 60)))),
            "stays at 5: its metrics ask for 9, but "
            "2 scale-ups by 3 replicas together, the last 20 s ago, used up the policy of 3 pods "
            "each 1 min; earliest change in 20 s, to 7.",
            id="policy used up twice",
        ),
        pytest.param(
            wanting(9, 2, past(), behavior=both(up=rules(("Pods", 2, 60), ("Percent", 50, 60), select="Min"))),
            "goes from 2 to 3: its metrics ask for 9, but "
            "the policy of 50 % each 1 min (the strictest of 2) allows 3; next step in "
            "1 min, to 5.",
            id="policy, a step",
        ),
        pytest.param(
            wanting(2, 5, past(), behavior=both(down=rules(window=0, select="Disabled"))),
            "stays at 5: its metrics ask for 2, but scaling down is disabled (selectPolicy: Disabled).",
            id="disabled",
        ),
        pytest.param(
            wanting(9, 3, past()),
            "goes from 3 to 6: its metrics ask for 9, but "
            "without a behavior one sync at most doubles the count (4 are always allowed); "
            "next step at the next sync, to 9.",
            id="doubling",
        ),
        pytest.param(
            wanting(20, 8, past()),
            "goes from 8 to 10: its metrics ask for 20, but maxReplicas is 10.",
            id="to the maximum",
        ),
        pytest.param(
            wanting(20, 10, past()), "stays at 10: its metrics ask for 20, but maxReplicas is 10.", id="at the maximum"
        ),
        pytest.param(
            wanting(1, 4, past((1, 10)), least=3),
            "goes from 4 to 3: its metrics ask for 1, but minReplicas is 3.",
            id="minimum",
        ),
        pytest.param(
            wanting(5, 12, past()), "goes from 12 to 10: maxReplicas is 10, whatever the metrics say.", id="above"
        ),
        pytest.param(
            wanting(5, 2, past(), least=4), "goes from 2 to 4: minReplicas is 4, whatever the metrics say.", id="below"
        ),
        pytest.param(
            wanting(5, 3, past()), "goes from 3 to 5: external metric queue is 5 in total, target 1 a pod.", id="scaled"
        ),
        pytest.param(
            wanting(3, 3, past()),
            "stays at 3: external metric queue is 3 in total, target 1 a pod, which is within tolerance.",
            id="steady",
        ),
    ],
)
def test_counts_that_are_held_back_or_not(sentence: str, expected: str) -> None:
    """Who, what happens to the count, why, until when."""
    assert sentence == f"default/web {expected}"


def summary(spec_metrics: list[Json], observation: Observation) -> str:
    """The sentence about a sync without a past."""
    return explained.of_decision(decided(scaler(*spec_metrics), observation)).summary


UTILIZATION = resource(utilization=50)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        pytest.param(
            summary([UTILIZATION], observed(using(3, 800))),
            "goes from 3 to 5: cpu is at 80 % of requests, target 50 %.",
            id="utilization",
        ),
        pytest.param(
            summary([UTILIZATION], observed(sampled(1200, 1200, None))),
            "goes from 3 to 5: cpu is at 80 % of requests with all pods counted in (120 % without those that have no "
            "usable sample), target 50 %.",
            id="a missing sample",
        ),
        pytest.param(
            summary([resource(utilization=60)], observed(sampled(1000, None, None))),
            "stays at 3: cpu is at 33 % of requests with all pods counted in (100 % without those that have no usable "
            "sample), target 60 %, which turns the direction around, so nothing is done.",
            id="reversed",
        ),
        pytest.param(
            summary([resource("memory", average="100Mi")], observed(using(3, 157286400 * 1000))),
            "goes from 3 to 5: memory averages 150Mi a pod, target 100Mi a pod.",
            id="memory",
        ),
        pytest.param(
            summary([pods_metric("10"), UTILIZATION], observed(using(3, 12500), using(3, 100))),
            "goes from 3 to 4: pods metric rps averages 12.5 a pod, target 10 a pod (the highest of 2 metrics).",
            id="two metrics",
        ),
        pytest.param(
            summary([object_metric(value="4")], observed(values(6000))),
            "goes from 3 to 5: rps of Ingress/main is 6, target 4.",
            id="object",
        ),
        pytest.param(
            summary([object_metric(average="4")], observed(values(20000))),
            "goes from 3 to 5: rps of Ingress/main is 20 in total, target 4 a pod.",
            id="object, average",
        ),
        pytest.param(
            summary([UTILIZATION], observed(using(3, 440))),
            "stays at 3: cpu is at 44 % of requests, target 50 %, which comes to 3 again.",
            id="the same again",
        ),
        pytest.param(
            summary([UTILIZATION, QUEUE], observed(using(3, 800), DOWN)),
            "goes from 3 to 5: cpu is at 80 % of requests, target 50 %; 1 of its 2 metrics cannot be evaluated: "
            f"metrics[1]: {QUEUE_IS_DOWN}.",
            id="scaled in spite of a failure",
        ),
        pytest.param(
            summary([UTILIZATION, QUEUE], observed(using(3, 100), DOWN)),
            "stays at 3: its metrics ask for 1, but "
            "nothing is scaled down while 1 of its 2 metrics cannot be evaluated: "
            f"metrics[1]: {QUEUE_IS_DOWN}.",
            id="no scale-down on a failure",
        ),
        pytest.param(
            summary([QUEUE], observed(DOWN)),
            f"stays at 3: its metric cannot be evaluated: {QUEUE_IS_DOWN}.",
            id="the only metric fails",
        ),
        pytest.param(
            summary([QUEUE, QUEUE], observed(DOWN, DOWN)),
            f"stays at 3: none of its 2 metrics can be evaluated: metrics[0]: {QUEUE_IS_DOWN}.",
            id="all metrics fail",
        ),
        pytest.param(
            summary([QUEUE], observed(values(1), neighbours=Sharing())),
            "stays at 3: default/api and default/web scale the same pods (app=web), and none of them does so until "
            "that ends.",
            id="overlap",
        ),
        pytest.param(
            summary([QUEUE], observed(values(1), selector="")),
            "stays at 3: its pods cannot be told: selector is required.",
            id="no selector",
        ),
        pytest.param(
            summary([QUEUE], observed(replicas=0)),
            "is paused: its target has 0 replicas, and it was not this autoscaler that scaled it there.",
            id="paused",
        ),
        pytest.param(
            summary([QUEUE], msgspec.structs.replace(observed(), scale=Failure('deployments.apps "web" not found'))),
            'can do nothing: the scale of its target cannot be read: deployments.apps "web" not found.',
            id="no scale",
        ),
    ],
)
def test_metrics_and_failures(sentence: str, expected: str) -> None:
    """Where the metric stands, or what keeps it from being evaluated, in the words of the failure."""
    assert sentence == f"default/web {expected}"


def test_to_zero_and_back() -> None:
    """Zero is a count as any other; on the way back the minimum counts."""
    from_two = decided(scaler(QUEUE, least=0), observed(values(0), replicas=2), past((0, 10)))
    assert explained.of_decision(from_two).summary == (
        "default/web goes from 2 to 0: external metric queue is 0 in total, target 1 a pod."
    )
    asleep = observed(values(0), replicas=0, before=conditions(ScaledToZero="True"))
    lifted = decided(scaler(QUEUE, least=2, behavior=both()), asleep, past((0, 10)))
    assert (
        explained.of_decision(lifted).summary == "default/web goes from 0 to 2: its metrics ask for 0, but "
        "minReplicas is 2."
    )


def refused() -> Decision:
    """A scale-up whose scale could not be written."""
    decision = decided(scaler(QUEUE), observed(values(5000)))
    assert decision.draft is not None
    return settle.refused(decision.draft, NOW, "quota")


def test_a_scale_that_could_not_be_written() -> None:
    """What should have happened, and why it did not."""
    assert explained.of_decision(refused()).summary == (
        "default/web wants to go from 3 to 5 but stays at 3: the scale could not be written: quota."
    )


def test_a_status_that_could_not_be_written() -> None:
    """That is added to what happened to the count."""
    observation = observed(values(5000))
    decision = decided(scaler(QUEUE), observation)
    unreported = settle.unreported(decision, observation.status, "web", "conflict")
    assert explained.of_decision(unreported).summary == (
        "default/web goes from 3 to 5: external metric queue is 5 in total, target 1 a pod; the status could not be "
        "written: conflict."
    )


@pytest.mark.parametrize(
    ("before", "said"),
    [
        pytest.param((), "", id="nothing"),
        pytest.param(conditions(AbleToScale="True"), "", id="not held"),
    ],
)
def test_live_without_history(before: tuple[object, ...], said: str) -> None:
    """Where history is unknown no window and no time are told."""
    decision = decided(scaler(QUEUE), observed(values(5000), before=before), past((0, 10**9)))
    explanation = explained.of_decision(decision, TraceSource.CLUSTER_WITHOUT_HISTORY)
    assert explanation.summary == (
        f"default/web has 3, and its metrics ask for 5{said}; how long something holds it back is not known, because "
        "its history is not."
    )
    assert explanation.next_change is None


def test_live_with_history() -> None:
    """What a cluster shows is about to happen."""
    decision = decided(scaler(QUEUE), observed(values(5000)))
    assert explained.of_decision(decision, TraceSource.CLUSTER).summary == (
        "default/web goes from 3 to 5 at its next sync: external metric queue is 5 in total, target 1 a pod."
    )
