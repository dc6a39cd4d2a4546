"""The algorithm of Kubernetes v1.1: each sentence of the design document's section "Autoscaling Algorithm"."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.machinery import instants
from podscaler.core.algorithm_v1_1 import UNSUPPORTED_METRIC
from podscaler.core.decision import Decision
from podscaler.core.model.observation import Failure
from podscaler.core.model.settings import Settings
from podscaler.testing.decisions import (
    NOW,
    SECOND,
    condition_rows,
    conditions,
    container_resource,
    decided,
    event_rows,
    external_metric,
    messages,
    observed,
    pod,
    pods_metric,
    resource,
    rules,
    sampled,
    scaler,
    values,
)

NAMES = [f"p{number}" for number in range(10)]
V1_1 = Settings(algorithm="v1.1")
SPEC = scaler(resource(utilization=60), most=100)


def _decided(*used_milli: int | None, replicas: int | None = None, **changes: Any) -> Decision:
    """What is decided about pods that request 1000m each and use so much."""
    count = len(used_milli) if replicas is None else replicas
    listed = changes.pop("listed", [pod(name) for name in NAMES[: len(used_milli)]])
    spec, settings = changes.pop("spec", SPEC), changes.pop("settings", V1_1)
    observation = observed(sampled(*used_milli), replicas=count, listed=listed, **changes)
    return decided(spec, observation, settings=settings)


@pytest.mark.parametrize(
    ("used_milli", "replicas"),
    [
        ((900, 600, 1200), 5),
        ((601, 601, 601), None),
        ((660, 660, 660), None),
        ((661, 661, 661), 4),
        ((540, 540, 540), None),
        ((539, 539, 539), None),
        ((400, 390, 380), 2),
        ((0, 0, 0), 1),
        ((100_000,), 100),
    ],
    ids=[
        "the sum over the target, rounded up",
        "within tolerance",
        "10 % above",
        "a little more",
        "10 % below",
        "a little less, but rounded up to what there is",
        "a scale-down",
        "never fewer than the minimum",
        "never more than the maximum",
    ],
)
def test_target_number_of_pods(used_milli: tuple[int, ...], replicas: int | None) -> None:
    """ceil(sum of the utilizations / target), unless the mean is within 10 % of the target."""
    assert _decided(*used_milli).replicas == replicas


def test_each_pod_counts_by_its_own_request() -> None:
    """Utilizations are added up, not usages: a small pod at 100 % weighs as much as a large one."""
    listed = [pod("p0", cpu=4000), pod("p1", cpu=100)]
    decision = _decided(2400, 100, listed=listed)
    (status,) = decision.status.current_metrics or ()
    assert status.resource is not None
    assert (decision.replicas, status.resource.current.average_utilization) == (3, 80)


def test_the_sum_is_exact() -> None:
    """Three thirds are one: no rounding error asks for one more pod."""
    listed = [pod(name, cpu=3) for name in NAMES[:3]]
    spec = scaler(resource(utilization=25), most=100)
    assert _decided(1, 1, 1, listed=listed, spec=spec).replicas == 4


@pytest.mark.parametrize(
    "listed",
    [
        [pod("p0"), pod("p1"), pod("p2", phase="Pending")],
        [pod("p0"), pod("p1"), pod("p2", phase="Failed")],
        [pod("p0"), pod("p1"), pod("p2", deleting=True)],
    ],
    ids=["pending", "failed", "deleting"],
)
def test_pods_that_do_not_run(listed: list[Any]) -> None:
    """They do not count, with or without a sample."""
    found = [_decided(1200, 1200, sample, replicas=3, listed=listed).replicas for sample in (None, 5000)]
    assert found == [4, 4]


def test_a_running_pod_without_a_sample() -> None:
    """Nothing is concluded from a part of the pods."""
    decision = _decided(1200, 1200, None)
    assert (decision.replicas, messages(decision)["ScalingActive"]) == (
        None,
        "the HPA was unable to compute the replica count: failed to get cpu utilization: "
        "samples of 2 of 3 running pods only",
    )


def test_pods_that_start_are_not_special() -> None:
    """Readiness does not matter: the document waits after a rescale instead."""
    assert _decided(1200, listed=[pod("p0", ready="False", started=-5, changed=-5)]).replicas == 2


@pytest.mark.parametrize(
    ("values_milli", "replicas"),
    [
        pytest.param((15_000, 25_000), 4, id="the sum over the target"),
        pytest.param((10_999, 11_000), None, id="within tolerance"),
        pytest.param((11_001, 11_001), 3, id="a little more, rounded up"),
        pytest.param((4_000, 4_000), 1, id="fewer"),
        pytest.param((20_000, None), None, id="a pod without a value"),
    ],
)
def test_custom_metrics(values_milli: tuple[int | None, ...], replicas: int | None) -> None:
    """An average of 10 for each pod is computed as CPU is: with nothing known of a pod, nothing is scaled."""
    decision = _decided(*values_milli, spec=scaler(pods_metric("10"), most=100))
    assert decision.replicas == replicas


def test_the_highest_of_cpu_and_custom_metrics() -> None:
    """Every metric proposes, and the highest number counts."""
    spec = scaler(resource(utilization=60), pods_metric("10"), most=100)
    listed = [pod(name) for name in NAMES[:2]]
    observation = observed(sampled(600, 600), sampled(15_000, 25_000), replicas=2, listed=listed)
    assert decided(spec, observation, settings=V1_1).replicas == 4


@pytest.mark.parametrize(
    "metric",
    [
        resource("memory", utilization=60),
        resource(average="100m"),
        container_resource(utilization=60),
        external_metric(value="1"),
    ],
    ids=["memory", "an average", "a container", "external"],
)
def test_other_metrics(metric: Any) -> None:
    """The document knows CPU utilization, and 1.2 averages of custom metrics; others fail, and nothing is scaled."""
    answer = values(1000) if metric["type"] == "External" else sampled(900)
    decision = decided(scaler(metric), observed(answer, replicas=1), settings=V1_1)
    assert decision.replicas is None
    assert decision.error.endswith(UNSUPPORTED_METRIC)


def test_a_failing_query() -> None:
    """As today: an event, a condition, no change."""
    decision = decided(SPEC, observed(Failure("down"), replicas=3), settings=V1_1)
    assert (decision.replicas, [reason for _, reason, _ in event_rows(decision)]) == (
        None,
        ["FailedGetResourceMetric", "FailedComputeMetricsReplicas"],
    )


@pytest.mark.parametrize(
    ("seconds_ago", "used_milli", "replicas", "reason"),
    [
        (180, 900, None, "BackoffBoth"),
        (181, 900, 5, "SucceededRescale"),
        (181, 600, None, "BackoffDownscale"),
        (300, 300, None, "BackoffDownscale"),
        (301, 300, 2, "SucceededRescale"),
        (301, 600, None, "ReadyForNewScale"),
    ],
    ids=["up, too early", "up", "nothing to do", "down, too early", "down", "nothing to do, later"],
)
def test_waiting_after_a_rescale(seconds_ago: int, used_milli: int, replicas: int | None, reason: str) -> None:
    """No scale-up within 3 minutes of the last rescale, no scale-down within 5."""
    observation = observed(sampled(*[used_milli] * 3), replicas=3)
    last = msgspec.structs.replace(observation.status, last_scale_time=instants.text(NOW - seconds_ago * SECOND))
    decision = decided(SPEC, msgspec.structs.replace(observation, status=last), settings=V1_1)
    assert (decision.replicas, condition_rows(decision)[0][2]) == (replicas, reason)


def test_flags_set_the_waits() -> None:
    """The delays of the later releases change those of the document."""
    observation = observed(sampled(900, 900, 900), replicas=3)
    last = msgspec.structs.replace(observation.status, last_scale_time=instants.text(NOW - 61 * SECOND))
    settings = Settings(algorithm="v1.1", upscale_delay_ns=60 * SECOND)
    assert decided(SPEC, msgspec.structs.replace(observation, status=last), settings=settings).replicas == 5


@pytest.mark.parametrize(("least", "most", "expected"), [(1, 2, 2), (4, 9, 4)], ids=["above", "below"])
def test_bounds_do_not_wait(least: int, most: int, expected: int) -> None:
    """minReplicas <= replicas <= maxReplicas is preserved at once."""
    observation = observed(sampled(600, 600, 600), replicas=3)
    last = msgspec.structs.replace(observation.status, last_scale_time=instants.text(NOW))
    spec = scaler(resource(utilization=60), least=least, most=most)
    assert decided(spec, msgspec.structs.replace(observation, status=last), settings=V1_1).replicas == expected


def test_windows_and_policies_do_not_matter() -> None:
    """The document knows no behavior: nothing stabilizes, nothing limits the rate, nothing is recommended."""
    behavior = {"scaleUp": rules(("Pods", 1, 60), window=300), "scaleDown": rules(tolerance="0.9")}
    spec = scaler(resource(utilization=60), most=100, behavior=behavior)
    decision = _decided(6000, spec=spec)
    assert (decision.replicas, len(decision.history.recommendations)) == (10, 1)
    assert _decided(300, 300, 300, spec=spec).replicas == 2


def test_nothing_goes_to_zero() -> None:
    """The least is one pod, and a target without pods stays as it is, whoever scaled it there."""
    spec = scaler(resource(utilization=60), least=0)
    asleep = observed(sampled(), replicas=0, listed=[], before=conditions(ScaledToZero="True"))
    paused = decided(spec, asleep, settings=V1_1)
    assert (_decided(0, spec=spec).replicas, paused.replicas, condition_rows(paused)[-1][2]) == (
        None,
        None,
        "ScalingDisabled",
    )


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 4000)), min_size=1, max_size=10),
    st.integers(1, 200),
)
def test_the_formula_recomputed_from_the_trace(pods: list[tuple[int, int]], target: int) -> None:
    """What the trace says about each pod gives the proposal again."""
    listed = [pod(name, cpu=request) for name, (_, request) in zip(NAMES, pods, strict=False)]
    spec = scaler(resource(utilization=target), most=2**31 - 1)
    used = [milli for milli, _ in pods]
    decision = _decided(*used, listed=listed, spec=spec)
    (step,) = decision.trace.metrics
    assert step.calculation is not None
    samples = step.calculation.pods  # type: ignore[union-attr]  # this algorithm makes no other
    total = sum(Fraction(100 * each.value_milli, each.request_milli) for each in samples)
    ratio = float(total / len(samples) / target)
    expected = len(pods) if 0.9 <= ratio <= 1.1 else -(-total // target)
    assert (step.proposal, decision.trace.algorithm) == (expected, "v1.1")
