"""Lint rules about minReplicas and maxReplicas: equal bounds (PSL014), the maximum within one step (PSL015).

`podscaler.lint.rulebook` lists the rules, and says where a new one goes.

Source: docs/spec/decision.md 8 (Normalisation without behavior) and 9.3 (Rates and bounds), as `podscaler.core`
computes them.
"""

from collections.abc import Iterator

import msgspec

from podscaler.api.kinds.autoscaling import hpa_defaults
from podscaler.api.typed import autoscaling
from podscaler.core.limits import bounds, policies
from podscaler.core.limits.policies import PolicyFacts
from podscaler.core.model import emulation, history
from podscaler.core.model import spec as specs
from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler

LARGE_STEP_PODS = 20
"""From this many added pods on, a step is reported even where the manifest has no policy."""
SMALL_STEP_PODS = 2
"""The same where the manifest has a policy; each step may add one pod."""


@rule("PSL014", "min-equals-max", Severity.WARNING, "minReplicas and maxReplicas are equal.")
def min_equals_max(context: LintContext) -> Iterator[RuleFinding]:
    """PSL014: bounds that leave the metrics nothing to decide."""
    for autoscaler in context.autoscalers:
        if autoscaler.min_replicas == autoscaler.max_replicas:
            yield about(
                autoscaler,
                "spec.maxReplicas",
                f"minReplicas and maxReplicas are both {autoscaler.max_replicas}: the metrics decide nothing",
                "raise maxReplicas, or delete the autoscaler and set the replicas",
            )


@rule("PSL015", "maximum-in-one-step", Severity.INFO, "One step may go from minReplicas to maxReplicas.")
def maximum_in_one_step(context: LintContext) -> Iterator[RuleFinding]:
    """PSL015: policies that allow a single wrong sample to start all pods."""
    for autoscaler in context.autoscalers:
        start = max(autoscaler.min_replicas, 1)
        added = autoscaler.max_replicas - start
        is_limited = _has_policies(autoscaler)
        if autoscaler.is_disabled("scaleUp") or added < (SMALL_STEP_PODS if is_limited else LARGE_STEP_PODS):
            continue
        if _highest_after_one_step(autoscaler, start) >= autoscaler.max_replicas:
            cause = "the policies of scaleUp allow" if is_limited else "without policies of its own, scaleUp allows"
            yield about(
                autoscaler,
                "spec.behavior.scaleUp" if is_limited else "spec.maxReplicas",
                f"{cause} to go from {start} to maxReplicas ({autoscaler.max_replicas}) in one step: one wrong sample "
                f"can start {added} pods",
                "add a scaleUp policy that takes several steps, with selectPolicy Min where others allow more",
            )


def _has_policies(autoscaler: LintedAutoscaler) -> bool:
    """Whether scaleUp has policies other than the defaults."""
    default_hpa: dict[str, object] = {"spec": {"metrics": [{}], "behavior": {}}}
    hpa_defaults.set_v2_defaults(default_hpa)
    default = default_hpa["spec"]["behavior"]["scaleUp"]["policies"]  # type: ignore[index]  # filled a line above
    policies_in_spec = autoscaler.scaling_rules("scaleUp").get("policies")
    return bool(policies_in_spec) and policies_in_spec != default


def _highest_after_one_step(autoscaler: LintedAutoscaler, start: int) -> int:
    """The most replicas that scaleUp allows at once from `start` replicas, computed as in a sync."""
    wire = msgspec.convert(autoscaler.item.spec, autoscaling.HorizontalPodAutoscalerSpec)
    spec = specs.parse(autoscaler.item.namespace, autoscaler.item.name, wire)
    if spec.behavior is None:
        return bounds.without_behavior(spec, autoscaler.max_replicas, start).result
    facts = PolicyFacts(
        spec.behavior, prior_history=history.EMPTY, now_ns=0, emulation=emulation.V1_37
    )  # no earlier scaling
    return policies.scale_up_limit(facts, start).limit
