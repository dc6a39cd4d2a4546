"""Lists all lint rules.

Called by `podscaler.lint.linter` and `podscaler.cli.lint.lint_sarif`. A new rule: a function with `@rule` in a module
of `podscaler.lint.rules`, an entry in RULES and a section in docs/lint.md. The rule about annotations is here because
it reads RULES.
"""

from collections.abc import Iterator

from podscaler.lint.model.findings import Rule, RuleFinding, Severity, rule
from podscaler.lint.model.lint_context import LintContext
from podscaler.lint.model.linted_item import IGNORE_ANNOTATION
from podscaler.lint.rules import (
    behavior,
    bounds,
    conflicts,
    failure_policies,
    metrics,
    ownership,
    quotas,
    resource_requests,
    served_metrics,
    targets,
    unreachable_targets,
    validity,
)


@rule(
    "PSL022", "unknown-rule", Severity.WARNING, f"The annotation {IGNORE_ANNOTATION} names a rule that does not exist."
)
def unknown_rule(context: LintContext) -> Iterator[RuleFinding]:
    """PSL022: an annotation that switches off a rule that does not exist."""
    rule_ids = {rule.id for rule in RULES}
    for item in context.items:
        for name in item.ignored_rule_ids:
            if name not in rule_ids:
                yield RuleFinding(
                    item,
                    f"metadata.annotations[{IGNORE_ANNOTATION}]",
                    f"{name!r} is no rule, so the annotation switches nothing off by it",
                    "write ids such as PSL005, separated by commas",
                )


RULES: tuple[Rule, ...] = (
    validity.refused,
    resource_requests.missing_request,
    targets.target_without_scale,
    targets.target_not_found,
    quotas.quota_below_minimum,
    ownership.replicas_in_manifest,
    metrics.value_of_a_total,
    conflicts.overlapping_selectors,
    conflicts.two_autoscalers,
    behavior.behavior_without_effect,
    behavior.policy_below_rounding,
    unreachable_targets.tolerance_hides_target,
    conflicts.vertical_autoscaler,
    served_metrics.metric_not_served,
    bounds.min_equals_max,
    bounds.maximum_in_one_step,
    unreachable_targets.utilization_unreachable,
    validity.zero_without_waking_metric,
    validity.removed_api_version,
    resource_requests.container_not_found,
    metrics.memory_only,
    behavior.window_shorter_than_metric,
    unknown_rule,
    quotas.quota_below_maximum,
    behavior.scale_up_window_too_long,
    metrics.unknown_resource,
    failure_policies.invalid_failure_policy,
    failure_policies.fallback_outside_bounds,
)
"""All rules, in the order of their ids."""
