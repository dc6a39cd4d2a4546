"""Validates the CEL rules (x-kubernetes-validations) in the schema of a CustomResourceDefinition.

Called by `crd_schema_validation`: `validate` checks the form of the rules of each node, `expression_errors` compiles
them, `default_errors` evaluates them on defaults. CEL is imported only where there are rules.

Source: the API documentation of ValidationRule; kube-apiserver's validation messages.
Differs: the cost of rules is not estimated.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from podscaler.api.crd import rule_paths
from podscaler.api.crd.structural import Structural
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

if TYPE_CHECKING:
    from podscaler.api.cel.compile.programs import Program
    from podscaler.api.cel.values.types import Type

REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_RULE_FIELDS = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")


def validate(rules: list[Object], schema: Object, path: str) -> list[FieldError]:
    """The field errors of the form of the rules of one node, whose schema is `schema`."""
    return [error for index, rule in enumerate(rules) for error in _rule_errors(rule, schema, f"{path}[{index}]")]


def _rule_errors(rule: Object, schema: Object, path: str) -> list[FieldError]:
    text, message = rule.get("rule", ""), rule.get("message", "")
    errors = [] if text.strip() else [required(f"{path}.rule", "rule is not specified")]
    if text.strip() and message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif text.strip() and _has_line_breaks(message.strip()):
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _has_line_breaks(text.strip()) and not message:
        errors.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        text = "messageExpression must be non-empty if specified"
        errors.append(required(f"{path}.messageExpression", text))
    reason = rule.get("reason")
    errors += checks.optional_one_of(reason, f"{path}.reason", REASONS)
    return errors + _field_path_errors(rule.get("fieldPath", ""), schema, f"{path}.fieldPath")


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _field_path_errors(field: str, schema: Object, path: str) -> list[FieldError]:
    errors = []
    if field and not field.strip():
        errors.append(invalid(path, field, "must be non-empty if specified"))
    errors += checks.holds(not _has_line_breaks(field), path, field, "must not contain line breaks")
    if field and rule_paths.normalize(field, schema) is None:
        errors.append(invalid(path, field, "must be a valid path"))
    return errors


def default_errors(schema: Structural, path: str) -> list[FieldError]:
    """The errors of rules that the default of a schema violates; it is its own old value in transition rules."""
    from podscaler.api.crd import rules

    rule_set = rules.RuleSet(schema, is_root=schema.is_embedded)
    errors = rule_set.evaluate(schema.default, schema.default, path=path, ratchets=False).errors
    return errors or rule_set.evaluate(schema.default, path=path).errors


def expression_errors(schema: Structural, path: str, others: Sequence[str]) -> list[FieldError]:
    """The errors of expressions that do not compile, and of `oldSelf` where no old value can be assigned.

    Args:
        schema: the whole schema, which is structural.
        path: the path of the schema.
        others: the paths of other errors; rules at these nodes and their ancestors are not compiled.
    """
    return _node_errors(schema, path, others, "")


def _node_errors(schema: Structural, path: str, others: Sequence[str], uncorrelatable: str) -> list[FieldError]:
    """The errors of a schema and its children; `uncorrelatable`: the path of a list above it without keys, or empty."""
    errors = []
    for child_path, child, is_element in _children(schema, path):
        barrier = uncorrelatable or (path if is_element and schema.list_type != "map" else "")
        errors += _node_errors(child, child_path, others, barrier)
    rules = schema.source.get("x-kubernetes-validations") or []
    if rules and not any(_is_at(other, path) for other in others):
        errors += _rules_errors(schema, rules, path, uncorrelatable)
    return errors


def _is_at(other: str, path: str) -> bool:
    """Whether the path `other` is `path` or below it."""
    return other == path or other.startswith((f"{path}.", f"{path}["))


def _children(schema: Structural, path: str) -> list[tuple[str, Structural, bool]]:
    """Path and schema of each child, and whether the child is the schema of the elements of a list."""
    children = [(f"{path}.properties[{name}]", member, False) for name, member in schema.properties.items()]
    if schema.additional is not None:
        children.append((f"{path}.additionalProperties", schema.additional, False))
    if schema.items is not None:
        children.append((f"{path}.items", schema.items, True))
    return children


def _rules_errors(schema: Structural, rules: list[Object], path: str, uncorrelatable: str) -> list[FieldError]:
    from podscaler.api.crd import rule_types
    from podscaler.api.crd.rules import ROOT_TYPE

    is_root = path.endswith("openAPIV3Schema") or schema.is_embedded
    declared_type = rule_types.cel_type_of(schema, ROOT_TYPE, is_root=is_root)
    path = f"{path}.x-kubernetes-validations"
    if declared_type is None:
        why = "unable to convert structural schema to CEL declarations"
        text = f"Internal error: internal error: failed to construct type information for {_RULES}: {why}"
        return [FieldError("InternalError", path, text)]
    errors = []
    for index, rule in enumerate(rules):
        errors += _compile_errors(rule, declared_type, f"{path}[{index}]", uncorrelatable)
    return errors


_RULES = "x-kubernetes-validations rules"


def _compile_errors(rule: Object, self_type: "Type", path: str, uncorrelatable: str) -> list[FieldError]:
    """Errors of a rule and its messageExpression that do not compile, or use `oldSelf` where it has no value."""
    program, error = _compiled(rule, "rule", self_type)
    errors = [_at_expression(f"{path}.rule", rule, error)] if error else []
    if not error and rule.get("messageExpression"):
        _, error = _compiled(rule, "messageExpression", self_type)
        errors += [_at_expression(f"{path}.messageExpression", rule, error)] if error else []
    if program is not None and "oldSelf" in program.uses:
        if uncorrelatable:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            errors.append(invalid(f"{path}.rule", rule["rule"], text))
    elif rule.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        errors.append(invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], text))
    return errors


def _compiled(rule: Object, name: str, self_type: "Type") -> tuple["Program | None", str]:
    """The program of the expression `name` (`rule` or `messageExpression`), or None and the error."""
    from podscaler.api.cel.compile import programs
    from podscaler.api.cel.values import types
    from podscaler.api.cel.values.issues import CompileError
    from podscaler.api.crd import rules

    is_rule = name == "rule"
    names = rules.variables(self_type, old_is_optional=bool(rule.get("optionalOldSelf")))
    try:
        program = programs.compiled(rule[name], names)
    except CompileError as error:
        head = "compilation failed" if is_rule else "messageExpression compilation failed"
        return None, f"{head}: {error}"
    if program.result != (types.BOOL if is_rule else types.STRING):
        text = "cel expression must evaluate to a bool" if is_rule else "messageExpression must evaluate to a string"
        return None, text
    if program.constant_error:
        return None, f"{'program' if is_rule else 'messageExpression'} instantiation failed: {program.constant_error}"
    return program, ""


def _at_expression(path: str, rule: Object, text: str) -> FieldError:
    return invalid(path, _printed_rule(rule), text)


def _printed_rule(rule: Object) -> dict[str, Any]:
    """The rule as kube-apiserver prints it: all fields, with their Go names."""
    empty = {"reason": None, "optionalOldSelf": None}
    return {name[0].upper() + name[1:]: rule.get(name, empty.get(name, "")) for name in _RULE_FIELDS}
