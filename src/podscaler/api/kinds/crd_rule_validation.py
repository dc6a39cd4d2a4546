"""What is wrong with x-kubernetes-validations, as far as it shows without evaluating them.

Called by `crd_schema_validation`. Source: the API documentation of ValidationRule; upstream's validation messages.
Differs: the expressions themselves are neither parsed nor evaluated.
"""

from podscaler.api.field import FieldError, invalid, not_supported, required
from podscaler.api.resources import Object

REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def faults(rules: list[Object], path: str) -> list[FieldError]:
    """What is wrong with the rules of one node."""
    return [fault for index, rule in enumerate(rules) for fault in _rule_faults(rule, f"{path}[{index}]")]


def _rule_faults(rule: Object, path: str) -> list[FieldError]:
    text, message = rule.get("rule", ""), rule.get("message", "")
    found = [] if text.strip() else [required(f"{path}.rule", "rule is not specified")]
    if message and not message.strip():
        found.append(invalid(f"{path}.message", message, "message must be non-empty if specified"))
    elif "\n" in message or "\r" in message:
        found.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif "\n" in text.strip() and not message:
        found.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        found.append(required(f"{path}.messageExpression", "must be non-empty if specified"))
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        found.append(not_supported(f"{path}.reason", reason, REASONS))
    return found
