"""Validates the CEL rules (x-kubernetes-validations) in the schema of a CustomResourceDefinition.

Called by `crd_schema_validation`: `validate` checks the form of the rules of each node (a schema inside the schema),
`expression_errors` compiles them, `default_errors` evaluates them on defaults. Functions import CEL, which takes time,
only where there are rules. A new field of rules: _RULE_FIELDS, in the order of Go, and `_rule_errors`.

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

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_RULES = "x-kubernetes-validations rules"
_RULE_FIELDS = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")


def validate(rules: list[Object], schema: Object, path: str) -> list[FieldError]:
    """The field errors of the form of the rules of one node, whose JSON schema is `schema`."""
    return [error for index, rule in enumerate(rules) for error in _rule_errors(rule, schema, f"{path}[{index}]")]


def _rule_errors(rule: Object, schema: Object, path: str) -> list[FieldError]:
    """Field errors of the form of one rule; `schema` is the JSON schema of the node that has the rule."""
    rule_expression, message = rule.get("rule", "").strip(), rule.get("message", "")
    errors = [] if rule_expression else [required(f"{path}.rule", "rule is not specified")]
    if rule_expression and message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif rule_expression and _has_line_breaks(message.strip()):
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _has_line_breaks(rule_expression) and not message:
        errors.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    message_expression = rule.get("messageExpression", "")
    if message_expression and not message_expression.strip():
        detail = "messageExpression must be non-empty if specified"
        errors.append(required(f"{path}.messageExpression", detail))
    reason = rule.get("reason")
    errors += checks.optional_one_of(reason, f"{path}.reason", _REASONS)
    return errors + _field_path_errors(rule.get("fieldPath", ""), schema, f"{path}.fieldPath")


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _field_path_errors(json_path: str, schema: Object, path: str) -> list[FieldError]:
    """Field errors of `fieldPath`, the JSON path of a member of `schema`, to which the error of the rule points."""
    errors = []
    if json_path and not json_path.strip():
        errors.append(invalid(path, json_path, "must be non-empty if specified"))
    errors += checks.holds(not _has_line_breaks(json_path), path, json_path, "must not contain line breaks")
    if json_path and rule_paths.normalize(json_path, schema) is None:
        errors.append(invalid(path, json_path, "must be a valid path"))
    return errors


def default_errors(schema: Structural, path: str) -> list[FieldError]:
    """The errors of rules that the default of a schema violates.

    It is checked as an update of itself, so that transition rules (with `oldSelf`) apply, then as a new value.
    """
    from podscaler.api.crd import rules

    rule_set = rules.RuleSet(schema, is_root=schema.is_embedded)
    errors = rule_set.evaluate(schema.default, schema.default, path=path, ratchets=False).errors
    return errors or rule_set.evaluate(schema.default, path=path).errors


def expression_errors(schema: Structural, path: str, other_error_paths: Sequence[str]) -> list[FieldError]:
    """The errors of expressions that do not compile, and of `oldSelf` where a value cannot be matched with its old one.

    Args:
        schema: the whole schema, which is structural.
        path: the path of the schema.
        other_error_paths: the paths of other errors; rules of a node with an error at it or below are not compiled.
    """
    return _node_errors(schema, path, other_error_paths, "")


def _node_errors(
    schema: Structural, path: str, other_error_paths: Sequence[str], uncorrelatable_list: str
) -> list[FieldError]:
    """The errors of the rules of a schema and of its children.

    Args:
        uncorrelatable_list: the path of the nearest list above whose elements have no keys; empty if there is none.
            Below such a list a value cannot be matched with its old one, so rules must not use `oldSelf`.
    """
    errors = []
    for child_path, child, is_element in _child_schemas(schema, path):
        is_uncorrelatable = is_element and schema.list_type != "map"
        child_uncorrelatable_list = uncorrelatable_list or (path if is_uncorrelatable else "")
        errors += _node_errors(child, child_path, other_error_paths, child_uncorrelatable_list)
    rules = schema.source.get("x-kubernetes-validations") or []
    if rules and not any(_is_at_or_below(error_path, path) for error_path in other_error_paths):
        errors += _rules_errors(schema, rules, path, uncorrelatable_list)
    return errors


def _is_at_or_below(error_path: str, node_path: str) -> bool:
    """Whether `error_path` is `node_path` or below it."""
    return error_path == node_path or error_path.startswith((f"{node_path}.", f"{node_path}["))


def _child_schemas(schema: Structural, path: str) -> list[tuple[str, Structural, bool]]:
    """(path, schema, whether it is that of the elements of a list) of each schema directly below `schema`."""
    children = [(f"{path}.properties[{name}]", member, False) for name, member in schema.properties.items()]
    if schema.additional is not None:
        children.append((f"{path}.additionalProperties", schema.additional, False))
    if schema.items is not None:
        children.append((f"{path}.items", schema.items, True))
    return children


def _rules_errors(
    schema: Structural, rules: list[Object], schema_path: str, uncorrelatable_list: str
) -> list[FieldError]:
    """The errors of compiling the rules of one schema; an internal error if the schema has no CEL type."""
    from podscaler.api.crd import rule_types
    from podscaler.api.crd.rules import ROOT_TYPE

    is_root = schema_path.endswith("openAPIV3Schema") or schema.is_embedded  # the paths of other nodes are longer
    declared_type = rule_types.cel_type_of(schema, ROOT_TYPE, is_root=is_root)
    path = f"{schema_path}.x-kubernetes-validations"
    if declared_type is None:
        cause = "unable to convert structural schema to CEL declarations"
        message = f"Internal error: internal error: failed to construct type information for {_RULES}: {cause}"
        return [FieldError("InternalError", path, message)]
    errors = []
    for index, rule in enumerate(rules):
        errors += _compile_errors(rule, declared_type, f"{path}[{index}]", uncorrelatable_list)
    return errors


def _compile_errors(rule: Object, self_type: "Type", path: str, uncorrelatable_list: str) -> list[FieldError]:
    """Errors of a rule and its messageExpression that do not compile, or use `oldSelf` where it has no value."""
    program, compile_error = _compile_expression(rule, "rule", self_type)
    errors = [_at_expression(f"{path}.rule", rule, compile_error)] if compile_error else []
    if not compile_error and rule.get("messageExpression"):
        _, compile_error = _compile_expression(rule, "messageExpression", self_type)
        errors += [_at_expression(f"{path}.messageExpression", rule, compile_error)] if compile_error else []
    if program is not None and "oldSelf" in program.uses:
        if uncorrelatable_list:
            message = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable_list}"
            errors.append(invalid(f"{path}.rule", rule["rule"], message))
    elif rule.get("optionalOldSelf") is not None:
        message = "may not be set if oldSelf is not used in rule"
        errors.append(invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], message))
    return errors


def _compile_expression(rule: Object, field: str, self_type: "Type") -> tuple["Program | None", str]:
    """The program of the expression in `field` (`rule` or `messageExpression`) and "", or None and its error."""
    from podscaler.api.cel.compile import programs
    from podscaler.api.cel.values import types
    from podscaler.api.cel.values.issues import CompileError
    from podscaler.api.crd import rules

    if field == "rule":
        required_type, subject, prefix = types.BOOL, "program", ""
        type_message = "cel expression must evaluate to a bool"
    else:
        required_type, subject, prefix = types.STRING, "messageExpression", "messageExpression "
        type_message = "messageExpression must evaluate to a string"
    variables = rules.variables(self_type, old_is_optional=bool(rule.get("optionalOldSelf")))
    try:
        program = programs.compiled(rule[field], variables)
    except CompileError as error:
        return None, f"{prefix}compilation failed: {error}"
    if program.result != required_type:
        return None, type_message
    if program.constant_error:
        return None, f"{subject} instantiation failed: {program.constant_error}"
    return program, ""


def _at_expression(path: str, rule: Object, message: str) -> FieldError:
    """The error of an expression of a rule; the whole rule is the invalid value."""
    return invalid(path, _printed_rule(rule), message)


def _printed_rule(rule: Object) -> dict[str, Any]:
    """The rule as kube-apiserver prints it: all fields, with their Go names."""
    unset_values = {"reason": None, "optionalOldSelf": None}
    return {name[0].upper() + name[1:]: rule.get(name, unset_values.get(name, "")) for name in _RULE_FIELDS}
