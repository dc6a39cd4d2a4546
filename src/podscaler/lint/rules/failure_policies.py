"""Lint rules about failure policies: invalid ones (PSL026), and fallback replicas outside of the bounds (PSL027).

`podscaler.lint.rulebook` lists the rules, and says where a new one goes. A failure policy states what happens when
metrics cannot be read: a field of a PodAutoscaler, or annotations. A field of a PodAutoscaler that its API server
rejects is reported by PSL000.

Source: docs/metric-failures.md.
"""

from collections.abc import Iterator

import msgspec

from podscaler.api.typed.autoscaling import FallbackReplicasSpec, OnMetricFailureSpec
from podscaler.core.model import failure_policy
from podscaler.core.model.failure_policy import FALLBACK_REPLICAS, PolicyError
from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import POD_AUTOSCALER, LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import mapping, text

FIELD = "onMetricFailure"


@rule(
    "PSL026",
    "invalid-failure-policy",
    Severity.ERROR,
    "What is stated about metrics that cannot be read is invalid, and nothing of it counts.",
)
def invalid_failure_policy(context: LintContext) -> Iterator[RuleFinding]:
    """PSL026: a failure policy that is not valid, or stated twice, in the spec and in annotations."""
    for autoscaler in context.autoscalers:
        stated, annotations = _stated_in_spec(autoscaler), _policy_annotations(autoscaler)
        if stated is not None and annotations:
            yield about(
                autoscaler,
                f"metadata.annotations[{min(annotations)}]",
                f"spec.{FIELD} is set, so the annotations about metrics that fail do not count",
                "remove the annotations",
            )
        try:
            if stated is None:
                failure_policy.parse_annotations(annotations)
            else:
                failure_policy.check(stated)
        except PolicyError as error:
            yield about(
                autoscaler,
                error.subject if stated is not None else f"metadata.annotations[{error.subject}]",
                f"{error}; the autoscaler behaves as without a failure policy",
                "correct it; docs/metric-failures.md describes each value",
            )


@rule(
    "PSL027",
    "fallback-outside-bounds",
    Severity.WARNING,
    "The fallback replicas are below minReplicas or above maxReplicas.",
)
def fallback_outside_bounds(context: LintContext) -> Iterator[RuleFinding]:
    """PSL027: fallback replicas that minReplicas or maxReplicas change."""
    for autoscaler in context.autoscalers:
        fallback = _find_fallback(autoscaler)
        if fallback is None or autoscaler.min_replicas <= fallback.replicas <= autoscaler.max_replicas:
            continue
        is_field = _stated_in_spec(autoscaler) is not None
        bound = autoscaler.min_replicas if fallback.replicas < autoscaler.min_replicas else autoscaler.max_replicas
        yield about(
            autoscaler,
            f"spec.{FIELD}.fallback.replicas" if is_field else f"metadata.annotations[{FALLBACK_REPLICAS}]",
            f"the fallback replicas are {fallback.replicas}, and the bounds make {bound} of them",
            f"set them to {bound}, or change the bound",
        )


def _find_fallback(autoscaler: LintedAutoscaler) -> FallbackReplicasSpec | None:
    """The fallback replicas of the spec or of annotations; None if there are none, or they are invalid."""
    stated = _stated_in_spec(autoscaler)
    try:
        policy = stated or failure_policy.parse_annotations(_policy_annotations(autoscaler))
    except PolicyError:
        return None
    return policy.fallback if policy is not None else None


def _stated_in_spec(autoscaler: LintedAutoscaler) -> OnMetricFailureSpec | None:
    """The field of a PodAutoscaler; None if it has none, or one that its API server rejects (PSL000 reports it).

    A rejected field does not count, so the rules look at the annotations then.
    """
    item = autoscaler.item
    is_rejected = any(api_error.field.startswith(f"spec.{FIELD}") for api_error in item.api_errors)
    if (item.group, item.kind) != POD_AUTOSCALER or is_rejected:
        return None
    stated = mapping(item.written.get("spec")).get(FIELD)
    try:
        return msgspec.convert(stated, OnMetricFailureSpec | None)
    except msgspec.ValidationError:
        return None


def _policy_annotations(autoscaler: LintedAutoscaler) -> dict[str, str]:
    """The annotations of an autoscaler that belong to a failure policy."""
    written = mapping(mapping(autoscaler.item.written.get("metadata")).get("annotations"))
    return {name: text(annotation) for name, annotation in written.items() if name.startswith(failure_policy.PREFIX)}
