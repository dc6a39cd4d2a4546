"""Lint rules about `spec.behavior` without effect, or with a surprising one: PSL009, PSL010, PSL021, PSL024.

`podscaler.lint.rulebook` lists the rules, and says where a new one goes.

Source: docs/spec/decision.md 9 (Normalisation with behavior); the defaults of a behavior are docs/spec/api.md 1
(Types).
"""

from collections.abc import Iterator

from podscaler.api.resource.resources import Object
from podscaler.lint.model import pod_autoscalers
from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import mapping

METRIC_WINDOW_S = 30
"""The span over which resource metrics are usually averaged: two samples of metrics-server's 15 s."""

LONG_WINDOW_S = 900
"""A longer scale-up window is reported: most load ends before it has lasted so long."""

DIRECTIONS = ("scaleUp", "scaleDown")
_VERSIONS_WITH_BEHAVIOR = frozenset({"autoscaling/v2", "autoscaling/v2beta2", pod_autoscalers.API_VERSION})


@rule("PSL009", "behavior-without-effect", Severity.WARNING, "A part of the behavior can never act.")
def behavior_without_effect(context: LintContext) -> Iterator[RuleFinding]:
    """PSL009: rules of `spec.behavior` that never change a decision."""
    for autoscaler in context.autoscalers:
        if all(autoscaler.is_disabled(direction) for direction in DIRECTIONS):
            yield about(
                autoscaler,
                "spec.behavior",
                "selectPolicy is Disabled in both directions: no metric ever changes the replicas",
                "enable one direction, or delete the autoscaler and set the replicas",
            )
            continue
        for direction in DIRECTIONS:
            yield from _unused_fields(autoscaler, direction)
            yield from _shadowed_policies(autoscaler, direction)


def _unused_fields(autoscaler: LintedAutoscaler, direction: str) -> Iterator[RuleFinding]:
    """Fields of a direction that is disabled. Objects of a cluster are left out: they contain defaults."""
    item = autoscaler.item
    if not autoscaler.is_disabled(direction) or item.origin.is_live or item.api_version not in _VERSIONS_WITH_BEHAVIOR:
        return
    written = mapping(mapping(mapping(item.written.get("spec")).get("behavior")).get(direction))
    names = [name for name in ("policies", "stabilizationWindowSeconds", "tolerance") if name in written]
    if names:
        yield RuleFinding(
            item,
            f"spec.behavior.{direction}.{names[0]}",
            f"{' and '.join(names)} of {direction} never count, because its selectPolicy is Disabled",
            f"remove {'them' if len(names) > 1 else 'it'}, or the Disabled",
            other_item=autoscaler.target,
        )


def _shadowed_policies(autoscaler: LintedAutoscaler, direction: str) -> Iterator[RuleFinding]:
    """Policies that never decide, because of another one of the same type."""
    scaling_rules = autoscaler.scaling_rules(direction)
    select_policy = scaling_rules.get("selectPolicy", "Max")
    policies = scaling_rules.get("policies") or []
    for index, policy in enumerate(policies if select_policy != "Disabled" else ()):
        for other_index, other_policy in enumerate(policies):
            is_first = other_index < index
            if other_index != index and _shadows(other_policy, policy, select_policy=select_policy, is_first=is_first):
                yield about(
                    autoscaler,
                    f"spec.behavior.{direction}.policies[{index}]",
                    f"{_policy_text(policy)} never decides: with selectPolicy {select_policy}, "
                    f"{_policy_text(other_policy)} always allows "
                    f"{'at least as much' if select_policy == 'Max' else 'no more'}",
                    "remove one of them, or change selectPolicy",
                )
                break  # one reason is enough


def _shadows(other_policy: Object, policy: Object, *, select_policy: str, is_first: bool) -> bool:
    """Whether `other_policy` decides wherever both apply; of equal ones the first does (`is_first`: the other one)."""
    if other_policy["type"] != policy["type"]:
        return False
    amount, period_s = policy["value"], policy["periodSeconds"]
    other_amount, other_period_s = other_policy["value"], other_policy["periodSeconds"]
    if (amount, period_s) == (other_amount, other_period_s):
        return is_first
    if select_policy == "Min":  # the policy that allows less decides
        return bool(other_amount <= amount and other_period_s >= period_s)
    return bool(other_amount >= amount and other_period_s <= period_s)


def _policy_text(policy: Object) -> str:
    unit = "%" if policy["type"] == "Percent" else "pods"
    return f"{policy['value']} {unit} each {policy['periodSeconds']} s"


@rule(
    "PSL010",
    "policy-below-rounding",
    Severity.WARNING,
    "A policy in percent is less than one pod at any count of replicas.",
)
def policy_below_rounding(context: LintContext) -> Iterator[RuleFinding]:
    """PSL010: a percentage of so few replicas that each step is rounded up to one pod."""
    for autoscaler in context.autoscalers:
        for direction in DIRECTIONS:
            for index, policy in enumerate(autoscaler.scaling_rules(direction).get("policies") or ()):
                if _is_below_one_pod(autoscaler, direction, policy):
                    yield about(
                        autoscaler,
                        f"spec.behavior.{direction}.policies[{index}].value",
                        f"{policy['value']} % of at most {autoscaler.max_replicas} replicas is less than one pod, and "
                        f"is rounded up to one: the policy is 1 pod each {policy['periodSeconds']} s",
                        "write it as type Pods with value 1, or raise the percentage",
                    )


def _is_below_one_pod(autoscaler: LintedAutoscaler, direction: str, policy: Object) -> bool:
    """Whether a policy in percent, as its JSON object, is less than one pod even at maxReplicas."""
    if policy["type"] != "Percent" or autoscaler.is_disabled(direction):
        return False
    return bool(policy["value"] * autoscaler.max_replicas < 100)


@rule(
    "PSL021",
    "window-shorter-than-metric",
    Severity.INFO,
    "The scale-down window is shorter than the window of resource metrics.",
)
def window_shorter_than_metric(context: LintContext) -> Iterator[RuleFinding]:
    """PSL021: a scale-down window that is shorter than the time over which usage is averaged."""
    for autoscaler in context.autoscalers:
        window_s = autoscaler.scaling_rules("scaleDown").get("stabilizationWindowSeconds")
        if window_s is None or window_s >= METRIC_WINDOW_S or autoscaler.is_disabled("scaleDown"):
            continue
        if any(metric.resource for metric in autoscaler.metrics):
            yield about(
                autoscaler,
                "spec.behavior.scaleDown.stabilizationWindowSeconds",
                f"scaling down is held back for {window_s} s, less than the {METRIC_WINDOW_S} s or so over which "
                "resource metrics are averaged: one low sample removes pods",
                f"set {METRIC_WINDOW_S} s or more (the default is 300)",
            )


@rule(
    "PSL024",
    "scale-up-window-too-long",
    Severity.WARNING,
    "The scale-up window is longer than load usually lasts without a pause.",
)
def scale_up_window_too_long(context: LintContext) -> Iterator[RuleFinding]:
    """PSL024: a scale-up window in which a short pause of the load cancels every scale-up."""
    for autoscaler in context.autoscalers:
        window_s = autoscaler.scaling_rules("scaleUp").get("stabilizationWindowSeconds", 0)
        if window_s > LONG_WINDOW_S and not autoscaler.is_disabled("scaleUp"):
            yield about(
                autoscaler,
                "spec.behavior.scaleUp.stabilizationWindowSeconds",
                f"scaling up takes the lowest recommendation of {window_s} s: load that pauses once in that time "
                "never scales anything up",
                f"set it to {LONG_WINDOW_S} s or less (the default is 0)",
            )
