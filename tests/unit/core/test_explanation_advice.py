"""What an explanation advises: a sentence for each failure that users meet, nothing where nothing is known."""

import pytest

from podscaler.core import settle
from podscaler.core.decision import Decision
from podscaler.core.model.observation import Failure, Observation, PodSamples
from podscaler.explain import explained
from podscaler.testing.decisions import (
    DOWN,
    NOW,
    Json,
    container_resource,
    decided,
    external_metric,
    object_metric,
    observed,
    pod,
    pods_metric,
    resource,
    sampled,
    scaler,
    using,
    values,
)

CPU = resource(utilization=50)
QUEUE = external_metric(average="1")


def advice(decision: Decision) -> tuple[str, ...]:
    """What is advised."""
    return explained.of_decision(decision).advice


@pytest.mark.parametrize(
    ("metric", "observation", "beginning"),
    [
        pytest.param(CPU, observed(DOWN), "the resource metrics API did not answer", id="no metrics-server"),
        pytest.param(pods_metric(), observed(DOWN), "the custom metrics API did not answer", id="no adapter"),
        pytest.param(QUEUE, observed(DOWN), "the external metrics API did not answer", id="no external adapter"),
        pytest.param(
            QUEUE,
            observed(Failure("the server could not find the metric queue for namespace default")),
            "the adapter answers, and knows no such metric: compare its name",
            id="an unknown external metric",
        ),
        pytest.param(
            QUEUE, observed(Failure("out of memory")), "the external metrics API answered with an error", id="an error"
        ),
        pytest.param(CPU, observed(Failure("pods is forbidden: User")), "grant the controller's user", id="forbidden"),
        pytest.param(CPU, observed(PodSamples({}, is_empty=True)), "metrics-server has no samples", id="no samples"),
        pytest.param(CPU, observed(sampled(stranger=1), listed=[]), "no pod matches", id="no pods"),
        pytest.param(
            CPU,
            observed(using(1, 100), listed=[pod("p0", phase="Pending")]),
            "no pod has a sample that counts yet",
            id="pods not ready",
        ),
        pytest.param(
            CPU, observed(using(1, 1), listed=[pod("p0", memory=1)]), "set resources.requests", id="no request"
        ),
        pytest.param(
            CPU, observed(using(1, 1), listed=[pod("p0", cpu=0)]), "the pods that have samples request nothing", id="0"
        ),
        pytest.param(
            container_resource(container="api", utilization=50),
            observed(using(1, 1), listed=[pod("p0")]),
            "correct the container's name",
            id="no such container",
        ),
        pytest.param(object_metric(value="1"), observed(values(1, 2)), "narrow the metric's selector", id="two series"),
        pytest.param(
            pods_metric(),
            observed(Failure("no custom metrics API (custom.metrics.k8s.io) registered")),
            "install an adapter",
            id="no custom metrics",
        ),
        pytest.param(QUEUE, observed(values()), "the adapter has no series", id="no series"),
        pytest.param(QUEUE, observed(selector=""), "the target's scale names no selector", id="no selector"),
        pytest.param(QUEUE, observed(selector="a=b=c"), "correct the selector", id="bad selector"),
        pytest.param(QUEUE, observed(replicas=0), "scale the target to 1 or more by hand", id="paused"),
    ],
)
def test_failures(metric: Json, observation: Observation, beginning: str) -> None:
    """The advice follows from the text of the error."""
    (only,) = advice(decided(scaler(metric), observation))
    assert only.startswith(beginning)


@pytest.mark.parametrize(
    ("failure", "beginning"),
    [
        ('deployments.apps "web" not found', "create the target"),
        ('no matches for kind "Deploymnt" in group "apps"', "correct kind and apiVersion"),
        ("Internal error occurred", None),
    ],
)
def test_scales_that_cannot_be_read(failure: str, beginning: str | None) -> None:
    """The target is at fault; an error that nobody foresaw gets no advice rather than a wrong one."""
    observation = Observation(scale=Failure(failure))
    found = advice(decided(scaler(QUEUE), observation))
    assert [each.startswith(beginning or "") for each in found] == ([True] if beginning else [])


def test_a_scale_that_cannot_be_written() -> None:
    """The error of a write counts too."""
    decision = decided(scaler(QUEUE), observed(values(5000)))
    assert decision.draft is not None
    refused = settle.refused(decision.draft, NOW, 'deployments.apps "web" is forbidden: User "x" cannot update')
    assert advice(refused) == ("grant the controller's user what the error names, in a ClusterRole",)


def test_the_same_advice_is_given_once() -> None:
    """Two metrics that fail alike need one remedy."""
    assert len(advice(decided(scaler(QUEUE, QUEUE), observed(DOWN, DOWN)))) == 1


def test_nothing_wrong() -> None:
    """No advice without a failure."""
    assert advice(decided(scaler(QUEUE), observed(values(5000)))) == ()
