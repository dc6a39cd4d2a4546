"""Parses an autoscaler's failure policy: what happens when its metrics cannot be read.

Called by `podscaler.core.model.spec`; `podscaler.core.failure_responses` applies the policy. A PodAutoscaler states it
in `spec.onMetricFailure`, an autoscaler of either kind in annotations; the field counts where both are there. Example:
`podscaler.dev/on-metric-failure-keep-last-for: 5m` gives FailurePolicy(keep_last_ns=300 s). An autoscaler that states
nothing, or something invalid, has the policy that changes nothing. A new setting: add a constant, a field of
FailurePolicy and a check in `_checked_policy`.

Source: docs/metric-failures.md. Differs: Kubernetes has no such policy.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from podscaler.api.kinds.autoscaling import hpa_defaults
from podscaler.api.machinery import duration, numbers
from podscaler.api.typed.autoscaling import (
    FallbackReplicasSpec,
    HorizontalPodAutoscalerSpec,
    MetricSpec,
    OnMetricFailureSpec,
)
from podscaler.core.model.observation import Fact

PREFIX = "podscaler.dev/on-metric-failure-"
"""The prefix of the annotations."""
KEEP_LAST_FOR = f"{PREFIX}keep-last-for"
IGNORE_FAILED = f"{PREFIX}ignore-failed"
FALLBACK_REPLICAS = f"{PREFIX}fallback-replicas"
FALLBACK_AFTER = f"{PREFIX}fallback-after"
ANNOTATIONS = (KEEP_LAST_FOR, IGNORE_FAILED, FALLBACK_REPLICAS, FALLBACK_AFTER)

LONGEST_SPAN = "24h"
"""The longest duration that a policy can state."""
_LONGEST_SPAN_NS = duration.parse(LONGEST_SPAN)
_BOOLEANS = {"true": True, "false": False}
_ENCODER = msgspec.json.Encoder(order="sorted")


class FallbackReplicas(Fact, frozen=True, gc=False):
    """The replicas of a target none of whose metrics could be read for `after_ns`."""

    replicas: int
    after_ns: int


class FailurePolicy(Fact, frozen=True, gc=False):
    """What happens when metrics of one autoscaler cannot be read.

    Attributes:
        keep_last_ns: for how long the last proposal of such a metric counts; 0: not at all.
        ignores_failed: whether the other metrics scale down without those that cannot be read.
        fallback: None if there are no fallback replicas.
        identities: hashes of the metrics of the spec, in order, for `History.last_proposals`; empty if none are kept.
        fault: why the stated policy is invalid and does not count; empty for a valid policy, and where none is stated.
    """

    keep_last_ns: int = 0
    ignores_failed: bool = False
    fallback: FallbackReplicas | None = None
    identities: tuple[str, ...] = ()
    fault: str = ""


NO_POLICY = FailurePolicy()
"""Changes nothing."""


class PolicyError(ValueError):
    """A failure policy is invalid.

    Attributes:
        subject: the annotation, or the field of `spec.onMetricFailure`.
        text: the message without the subject.
    """

    def __init__(self, subject: str, text: str) -> None:
        super().__init__(f"{subject}: {text}")
        self.subject = subject
        self.text = text


def parse(
    policy_spec: OnMetricFailureSpec | None, annotations: Mapping[str, str], metrics: Sequence[MetricSpec]
) -> FailurePolicy:
    """The policy of an autoscaler with these metrics; an invalid one has no effect but its `fault`.

    Args:
        policy_spec: `spec.onMetricFailure`; None if only annotations can state a policy.
    """
    try:
        effective = policy_spec or parse_annotations(annotations)
        return NO_POLICY if effective is None else _checked_policy(effective, metrics)
    except PolicyError as error:
        return FailurePolicy(fault=str(error))


def parse_annotations(annotations: Mapping[str, str]) -> OnMetricFailureSpec | None:
    """The policy in annotations, in the form of `spec.onMetricFailure`; None if there is none. Raises PolicyError."""
    stated = policy_annotations(annotations)
    if not stated:
        return None
    for name in stated:
        if name not in ANNOTATIONS:
            raise PolicyError(name, f"is none of {', '.join(ANNOTATIONS)}")
    fallback = None
    if FALLBACK_REPLICAS in stated:
        fallback = FallbackReplicasSpec(_parse_replicas(stated[FALLBACK_REPLICAS]), stated.get(FALLBACK_AFTER))
    elif FALLBACK_AFTER in stated:
        raise PolicyError(FALLBACK_AFTER, f"has no effect without {FALLBACK_REPLICAS}")
    policy_spec = OnMetricFailureSpec(stated.get(KEEP_LAST_FOR), _parse_boolean(stated.get(IGNORE_FAILED)), fallback)
    _checked_policy(policy_spec, (), names=_ANNOTATION_OF)
    return policy_spec


def check(policy_spec: OnMetricFailureSpec) -> None:
    """Raise PolicyError if `spec.onMetricFailure` is invalid."""
    _checked_policy(policy_spec, ())


def with_annotations(
    api_spec: HorizontalPodAutoscalerSpec, annotations: Mapping[str, str]
) -> HorizontalPodAutoscalerSpec:
    """The spec with the field that annotations state; unchanged if they are invalid, or the field is set."""
    if api_spec.on_metric_failure is not None:
        return api_spec
    try:
        return msgspec.structs.replace(api_spec, on_metric_failure=parse_annotations(annotations))
    except PolicyError:
        return api_spec


def policy_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Those of the annotations that belong to a failure policy."""
    return {name: annotation for name, annotation in annotations.items() if name.startswith(PREFIX)}


def as_annotations(policy_spec: OnMetricFailureSpec) -> dict[str, str]:
    """The annotations that state the same as the field."""
    fallback = policy_spec.fallback
    annotations = {
        KEEP_LAST_FOR: policy_spec.keep_last_for,
        IGNORE_FAILED: None if policy_spec.ignore_failed is None else str(policy_spec.ignore_failed).lower(),
        FALLBACK_REPLICAS: None if fallback is None else str(fallback.replicas),
        FALLBACK_AFTER: None if fallback is None else fallback.after,
    }
    return {name: annotation for name, annotation in annotations.items() if annotation is not None}


_FIELD_OF = {
    KEEP_LAST_FOR: "spec.onMetricFailure.keepLastFor",
    FALLBACK_REPLICAS: "spec.onMetricFailure.fallback.replicas",
    FALLBACK_AFTER: "spec.onMetricFailure.fallback.after",
}
"""The field of each annotation, without IGNORE_FAILED: its field is a boolean, which needs no check."""
_ANNOTATION_OF = {name: name for name in _FIELD_OF}  # by which errors name a policy that annotations state


def _checked_policy(
    policy_spec: OnMetricFailureSpec, metrics: Sequence[MetricSpec], *, names: Mapping[str, str] = _FIELD_OF
) -> FailurePolicy:
    """The stated policy. Raises PolicyError.

    `names` has how errors name each annotation: by itself, or by its field.
    """
    keep_last_ns, fallback = 0, None
    if policy_spec.keep_last_for is not None:
        keep_last_ns = _span_ns(names[KEEP_LAST_FOR], policy_spec.keep_last_for)
        if not keep_last_ns:
            raise PolicyError(names[KEEP_LAST_FOR], "must be longer than 0s")
    if policy_spec.fallback is not None:
        if policy_spec.fallback.replicas < 0:
            raise PolicyError(names[FALLBACK_REPLICAS], "must be 0 or more")
        after_ns = _span_ns(names[FALLBACK_AFTER], policy_spec.fallback.after or hpa_defaults.DEFAULT_FALLBACK_AFTER)
        fallback = FallbackReplicas(policy_spec.fallback.replicas, after_ns)
    identities = tuple([_identity(metric) for metric in metrics]) if keep_last_ns else ()
    return FailurePolicy(keep_last_ns, bool(policy_spec.ignore_failed), fallback, identities)


def _span_ns(subject: str, duration_text: str) -> int:
    """A duration in ns, from 0 to LONGEST_SPAN; `subject` is for the message. Raises PolicyError."""
    try:
        span_ns = duration.parse(duration_text)
    except ValueError:
        raise PolicyError(subject, f'"{duration_text}" is not a duration such as 90s or 5m') from None
    if not 0 <= span_ns <= _LONGEST_SPAN_NS:
        raise PolicyError(subject, f'"{duration_text}" is not between 0s and {LONGEST_SPAN}')
    return span_ns


def _parse_replicas(replicas_text: str) -> int:
    """The number of the fallback replicas. Raises PolicyError."""
    if not re.fullmatch(r"[0-9]{1,10}", replicas_text) or int(replicas_text) > numbers.INT32_MAX:
        raise PolicyError(FALLBACK_REPLICAS, f'"{replicas_text}" is not a number of replicas')
    return int(replicas_text)


def _parse_boolean(boolean_text: str | None) -> bool | None:
    """The value of the annotation IGNORE_FAILED; None if there is none. Raises PolicyError."""
    if boolean_text is None:
        return None
    if boolean_text not in _BOOLEANS:
        raise PolicyError(IGNORE_FAILED, f'"{boolean_text}" is neither "true" nor "false"')
    return _BOOLEANS[boolean_text]


def _identity(metric: MetricSpec) -> str:
    """A hash of an entry of the spec; an edited metric has another, so that its last proposal does not count."""
    return hashlib.sha256(_ENCODER.encode(metric)).hexdigest()[:16]
