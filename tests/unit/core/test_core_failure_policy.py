"""Reading failure policies from annotations and from `spec.onMetricFailure`."""

import msgspec
import pytest

from podscaler.api.typed.autoscaling import FallbackReplicasSpec, MetricSpec, OnMetricFailureSpec
from podscaler.core.model import failure_policy, spec
from podscaler.core.model.failure_policy import NO_POLICY, FailurePolicy, FallbackReplicas
from podscaler.core.model.settings import SECOND_NS
from podscaler.testing.decisions import Json, external_metric, scaler

MINUTE_NS = 60 * SECOND_NS
PREFIX = "podscaler.dev/on-metric-failure-"
Annotations = dict[str, str]


def annotated(**texts: str) -> Annotations:
    """Annotations by what follows the prefix, with underscores for hyphens."""
    return {f"{PREFIX}{name.replace('_', '-')}": text for name, text in texts.items()}


def read(annotations: Annotations, stated: OnMetricFailureSpec | None = None) -> FailurePolicy:
    """The policy of an autoscaler without metrics."""
    return failure_policy.parse(stated, annotations, ())


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [
        ({}, NO_POLICY),
        ({"podscaler.dev/migrated-from": "hpa/web/1"}, NO_POLICY),
        (annotated(keep_last_for="5m"), FailurePolicy(keep_last_ns=5 * MINUTE_NS)),
        (annotated(keep_last_for="24h"), FailurePolicy(keep_last_ns=24 * 60 * MINUTE_NS)),
        (annotated(ignore_failed="true"), FailurePolicy(ignores_failed=True)),
        (annotated(ignore_failed="false"), NO_POLICY),
        (annotated(fallback_replicas="3"), FailurePolicy(fallback=FallbackReplicas(3, 5 * MINUTE_NS))),
        (
            annotated(fallback_replicas="0", fallback_after="0s"),
            FailurePolicy(fallback=FallbackReplicas(0, 0)),
        ),
    ],
    ids=["none", "others", "keep", "longest", "ignore", "do not ignore", "after the default", "at once, none"],
)
def test_annotations(annotations: Annotations, policy: FailurePolicy) -> None:
    """Each annotation is optional."""
    assert read(annotations) == policy


@pytest.mark.parametrize(
    ("annotations", "fault"),
    [
        (annotated(keep_last_for="5"), 'keep-last-for: "5" is not a duration such as 90s or 5m'),
        (annotated(keep_last_for=""), 'keep-last-for: "" is not a duration such as 90s or 5m'),
        (annotated(keep_last_for="0s"), "keep-last-for: must be longer than 0s"),
        (annotated(keep_last_for="-5m"), 'keep-last-for: "-5m" is not between 0s and 24h'),
        (annotated(keep_last_for="24h1ns"), 'keep-last-for: "24h1ns" is not between 0s and 24h'),
        (annotated(ignore_failed="yes"), 'ignore-failed: "yes" is neither "true" nor "false"'),
        (annotated(fallback_replicas="three"), 'fallback-replicas: "three" is not a number of replicas'),
        (annotated(fallback_replicas="-1"), 'fallback-replicas: "-1" is not a number of replicas'),
        (annotated(fallback_replicas="2147483648"), 'fallback-replicas: "2147483648" is not a number of replicas'),
        (
            annotated(fallback_after="5m"),
            "fallback-after: has no effect without podscaler.dev/on-metric-failure-fallback-replicas",
        ),
        (
            annotated(fallback_replicas="3", fallback_after="soon"),
            'fallback-after: "soon" is not a duration such as 90s or 5m',
        ),
        (
            annotated(keep_last_for="5m", keep="5m"),
            "keep: is none of podscaler.dev/on-metric-failure-keep-last-for, "
            "podscaler.dev/on-metric-failure-ignore-failed, podscaler.dev/on-metric-failure-fallback-replicas, "
            "podscaler.dev/on-metric-failure-fallback-after",
        ),
    ],
)
def test_invalid_annotations(annotations: Annotations, fault: str) -> None:
    """One invalid annotation is the fault, and none of them counts."""
    assert read(annotations) == FailurePolicy(fault=f"{PREFIX}{fault}")


@pytest.mark.parametrize(
    ("stated", "fault"),
    [
        (OnMetricFailureSpec("soon"), 'spec.onMetricFailure.keepLastFor: "soon" is not a duration such as 90s or 5m'),
        (
            OnMetricFailureSpec(fallback=FallbackReplicasSpec(-1)),
            "spec.onMetricFailure.fallback.replicas: must be 0 or more",
        ),
        (
            OnMetricFailureSpec(fallback=FallbackReplicasSpec(1, "25h")),
            'spec.onMetricFailure.fallback.after: "25h" is not between 0s and 24h',
        ),
    ],
    ids=["span", "replicas", "after"],
)
def test_an_invalid_field(stated: OnMetricFailureSpec, fault: str) -> None:
    """What an API server without validation rules lets pass is found here."""
    assert read({}, stated) == FailurePolicy(fault=fault)


def test_the_field_counts_before_annotations() -> None:
    """Annotations of a PodAutoscaler that states a policy in its spec are not read."""
    assert read(annotated(keep_last_for="soon"), OnMetricFailureSpec(ignore_failed=True)) == FailurePolicy(
        ignores_failed=True
    )


def test_annotations_and_field_state_the_same() -> None:
    """A migration from one kind to the other keeps the policy."""
    stated = OnMetricFailureSpec("5m", True, FallbackReplicasSpec(3, "10m"))
    assert failure_policy.parse_annotations(failure_policy.as_annotations(stated)) == stated


def test_identities_tell_edited_metrics_apart() -> None:
    """Equal entries have one identity; another target is another metric."""

    def identities(*metrics: Json) -> tuple[str, ...]:
        wire = [msgspec.convert(each, MetricSpec) for each in metrics]
        return failure_policy.parse(OnMetricFailureSpec("5m"), {}, wire).identities

    first, second, again = identities(
        external_metric(average="1"), external_metric(average="2"), external_metric(average="1")
    )
    assert (first == again, first == second, len(first)) == (True, False, 16)


def test_a_spec_has_the_policy_of_its_annotations() -> None:
    """`spec.parse` takes the annotations of the object."""
    wire = msgspec.convert({"maxReplicas": 3}, spec.autoscaling.HorizontalPodAutoscalerSpec)
    found = spec.parse("default", "web", wire, annotations=annotated(ignore_failed="true"))
    assert found.failure_policy == FailurePolicy(ignores_failed=True)


def test_a_spec_without_a_policy() -> None:
    """By default there is none."""
    assert scaler().failure_policy == NO_POLICY
