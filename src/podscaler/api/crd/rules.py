"""Evaluates the CEL rules of a schema (x-kubernetes-validations) on custom objects.

    rule_set = RuleSet(structural.parse(schema))        schema has the rule `self.replicas <= 10`
    rule_set.evaluate({"replicas": 11}).errors          [FieldError("FieldValueInvalid", ..., "... failed rule:
    self....")]

`records` makes a RuleSet for each version of a definition that has rules; the validation of definitions evaluates rules
on defaults. A new attribute of rules: `ValidationRule` and `_compile_rule`.

Semantics: `self` is the value at the node of the schema that has the rule. A rule that uses `oldSelf` runs only where
an old value exists (or with `optionalOldSelf`). A violation in an unchanged value is a warning, not an error
(ratcheting). Elements of `map` lists are paired with their old values by their keys (the first of equal ones), members
by their names; elements of other lists have no old values.

Invariants: all rules of one object share one cost budget; when it is exceeded the object is invalid, and evaluation
ends.

Source: the API documentation of x-kubernetes-validations; KEP-2876, KEP-4008; kube-apiserver's messages.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podscaler.api.cel.compile import programs
from podscaler.api.cel.compile.programs import Program
from podscaler.api.cel.values import types
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import BudgetError, EvaluationError
from podscaler.api.cel.values.issues import CompileError
from podscaler.api.cel.values.types import Type
from podscaler.api.cel.values.values import OPTIONAL_NONE, OptionalValue
from podscaler.api.crd import list_types, rule_paths, rule_types, rule_values
from podscaler.api.crd.structural import ABSENT, Structural
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text, quoting

ROOT_TYPE = "selfType0"
"""The name of the type of a whole object in compile errors."""
_ROOT_PATH = "<nil>"
"""The path of a whole object in field errors."""
MESSAGE_MAX_BYTES = 5 * 1024
"""The longest result of a messageExpression that is used."""

_MESSAGE_PREFIXES = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
}


@dataclass(frozen=True, slots=True, eq=False)
class ValidationRule:
    """One compiled rule.

    Attributes:
        text: the rule's message, or its expression: how errors name the rule.
        program: the compiled expression; None if it is invalid.
        message: the compiled messageExpression; None without a valid one.
        source: the JSON-ready rule.
        path: the normalized fieldPath, the field that errors name; empty for the value itself.
        compile_error: why the expression is invalid; else empty.
    """

    text: str
    program: Program | None
    message: Program | None
    source: Object
    path: str = ""
    compile_error: str = ""

    @property
    def uses_old_self(self) -> bool:
        """Whether it uses `oldSelf`."""
        return self.program is not None and "oldSelf" in self.program.uses

    @property
    def is_old_self_optional(self) -> bool:
        """Whether `oldSelf` may be absent."""
        return bool(self.source.get("optionalOldSelf"))


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A node of the schema that has rules, or children with rules; children without are left out.

    `members` are the children by name, `additional` is that of all other members, `items` that of list elements.
    """

    schema: Structural
    rules: tuple[ValidationRule, ...]
    is_root: bool
    members: dict[str, "_Node"]
    additional: "_Node | None"
    items: "_Node | None"


@dataclass(slots=True, eq=False)
class _Change:
    """The change from an old value to a new one; `_is_same` caches whether they are equal (None: not compared yet)."""

    new: Any
    old: Any
    schema: Structural
    _is_same: bool | None = None

    def is_empty(self) -> bool:
        """Whether the values are equal."""
        if self._is_same is None:
            self._is_same = list_types.is_same(self.new, self.old, self.schema)
        return self._is_same


class _Ratchet(NamedTuple):
    """What decides whether a violation is a warning (`_add_violation`).

    Attributes:
        own: the change of the value; None without an old value.
        ancestor: that of its nearest ancestor that has an old value; None without one.
    """

    own: _Change | None
    ancestor: _Change | None = None


class _Location(NamedTuple):
    """The path of a value with rules, its JSON type (empty if the schema has none or several), and the value."""

    path: str
    json_type: str
    value: Any


@dataclass(slots=True, eq=False)
class RuleResults:
    """The results of the rules of one object: violations, as errors or (of unchanged values) as warnings."""

    budget: Budget
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[FieldError] = field(default_factory=list)


class RuleSet:
    """The rules of a schema, which are compiled at the first evaluation.

    Args:
        schema: the schema.
        is_root: whether its values are whole (or embedded) objects.
    """

    def __init__(self, schema: Structural, *, is_root: bool = True) -> None:
        self._schema = schema
        self._is_root = is_root
        self._node: _Node | None = None
        self._is_compiled = False

    def evaluate(self, new: Any, old: Any = ABSENT, *, path: str = "", ratchets: bool = True) -> RuleResults:
        """The results of all rules on a value.

        Args:
            new: the value.
            old: the stored value; ABSENT for a new object.
            path: the path of the value; empty for a whole object.
            ratchets: whether violations in unchanged values are warnings.
        """
        if not self._is_compiled:
            self._node = _compile_node(self._schema, ROOT_TYPE, is_root=self._is_root)
            self._is_compiled = True
        results = RuleResults(Budget())
        change = _Change(new, old, self._schema) if old is not ABSENT and ratchets else None
        if self._node is not None:
            new_and_old = (new, None if old is ABSENT else old)
            with suppress(_BudgetExceeded):
                _evaluate_node(self._node, path, new_and_old, _Ratchet(change), results)
        return results


class _BudgetExceeded(Exception):
    """The cost budget is exceeded."""


def variables(self_type: Type, *, old_is_optional: bool) -> dict[str, Type]:
    """The variables of a rule's expressions, with their types; `self_type` is the type of `self`."""
    return {"self": self_type, "oldSelf": types.optional_of(self_type) if old_is_optional else self_type}


def _compile_node(schema: Structural, name: str, *, is_root: bool) -> _Node | None:
    """The rules of a schema and all below it; None if there are none, or its values have no CEL type."""
    self_type = rule_types.cel_type_of(schema, name, is_root=is_root)
    if self_type is None:
        return None
    compiled_rules = tuple(
        _compile_rule(rule, self_type, schema) for rule in schema.source.get("x-kubernetes-validations") or ()
    )
    members = {
        key: node
        for key, member in schema.properties.items()
        if (node := _compile_member(member, f"{name}.{rule_types.escape(key)}"))
    }
    items = _compile_member(schema.items, f"{name}.@idx")
    additional = _compile_member(schema.additional, f"{name}.@elem")
    if not (compiled_rules or members or items or additional):
        return None
    return _Node(schema, rules=compiled_rules, is_root=is_root, members=members, additional=additional, items=items)


def _compile_member(schema: Structural | None, name: str) -> _Node | None:
    """The rules of members or elements with that schema, in a type with that name; None without schema or rules."""
    return _compile_node(schema, name, is_root=schema.is_embedded) if schema is not None else None


def _compile_rule(rule: Object, self_type: Type, schema: Structural) -> ValidationRule:
    """A rule with its program; one that does not compile keeps its error for each evaluation."""
    rule_text = (rule.get("message") or rule.get("rule", "")).strip()
    variable_types = variables(self_type, old_is_optional=bool(rule.get("optionalOldSelf")))
    try:
        program = programs.compiled(rule.get("rule", ""), variable_types)
    except CompileError as error:
        compile_error = f"compilation failed: {error}"
        return ValidationRule(rule_text, program=None, message=None, source=rule, compile_error=compile_error)
    path = rule_paths.normalize(rule.get("fieldPath", ""), schema.source) or ""
    message = _compile_message(rule, variable_types)
    return ValidationRule(rule_text, program=program, message=message, source=rule, path=path)


def _compile_message(rule: Object, variable_types: dict[str, Type]) -> Program | None:
    """The program of messageExpression; None without one, and where it does not compile."""
    try:
        return programs.compiled(rule["messageExpression"], variable_types) if rule.get("messageExpression") else None
    except CompileError:
        return None


_NewAndOld = tuple[Any, Any]
"""A value and its old value; None without one."""


def _evaluate_node(node: _Node, path: str, new_and_old: _NewAndOld, ratchet: _Ratchet, results: RuleResults) -> None:
    """Evaluate the rules of a value and of all below it, each with its old value. Raises _BudgetExceeded."""
    new, old = new_and_old
    if new is None:
        return
    if node.rules:
        _evaluate_rules(node, path, new_and_old, ratchet, results)
    if isinstance(new, list) and node.items is not None:
        for index, (item, old_value) in enumerate(_pair_elements(new, old, node.schema)):
            child_ratchet = _ratchet_below(ratchet, (item, old_value), node.items.schema)
            _evaluate_node(node.items, f"{path}[{index}]", (item, old_value), child_ratchet, results)
    elif isinstance(new, dict):
        for name, child_node, child_path in _children_with_rules(node, new, path):
            old_value = old.get(name) if isinstance(old, dict) else None
            child_ratchet = _ratchet_of_member(ratchet, name, (new[name], old_value), child_node.schema)
            _evaluate_node(child_node, child_path, (new[name], old_value), child_ratchet, results)


def _pair_elements(new: list[Any], old: Any, schema: Structural) -> Iterator[_NewAndOld]:
    """Each element with the old element of the same keys; None for lists that are no `map`."""
    old_by_key = list_types.index_elements(old, schema)
    for item in new:
        yield item, old_by_key.get(list_types.identity(item, schema)) if old_by_key else None


def _children_with_rules(node: _Node, new: Object, path: str) -> Iterator[tuple[str, _Node, str]]:
    """The name, the rules and the path of each member of an object that has rules."""
    for name in new:
        if node.additional is not None:
            yield name, node.additional, f"{path}[{name}]"
        elif name in node.members:
            yield name, node.members[name], f"{path}.{name}" if path else name


def _ratchet_below(parent: _Ratchet, new_and_old: _NewAndOld, schema: Structural) -> _Ratchet:
    """The ratchet of a member or element of the value with the ratchet `parent`."""
    new, old = new_and_old
    if parent.own is None:
        return parent
    return _Ratchet(_Change(new, old, schema) if old is not None else None, parent.own)


def _ratchet_of_member(parent: _Ratchet, name: str, new_and_old: _NewAndOld, schema: Structural) -> _Ratchet:
    """The ratchet of a member; for apiVersion and kind of the whole object an empty one: their rules never ratchet."""
    is_whole_object = parent.own is not None and parent.ancestor is None
    if is_whole_object and name in ("apiVersion", "kind"):
        return _Ratchet(None)
    return _ratchet_below(parent, new_and_old, schema)


def _evaluate_rules(node: _Node, path: str, new_and_old: _NewAndOld, ratchet: _Ratchet, results: RuleResults) -> None:
    """Run the rules of one node, and add violations to the results. Raises _BudgetExceeded."""
    new_json, old_or_none = new_and_old
    json_type = node.schema.types[0] if len(node.schema.types) == 1 else ""
    location = _Location(path, json_type, new_json)
    try:
        self_value = rule_values.to_cel(new_json, node.schema, is_root=node.is_root)
        old_json = old_or_none if any(rule.uses_old_self for rule in node.rules) else None
        old_value = rule_values.to_cel(old_json, node.schema, is_root=node.is_root)
    except EvaluationError as error:
        results.errors.append(_invalid_error(location, f"{error} evaluating rule: {node.rules[0].text}"))
        return
    for rule in node.rules:
        if rule.program is None:
            results.errors.append(_invalid_error(location, f"rule compile error: {rule.compile_error}"))
        elif old_or_none is not None or rule.is_old_self_optional or not rule.uses_old_self:
            old_self = _old_self_value(rule, old_value, has_old=old_or_none is not None)
            variable_values = {"self": self_value, "oldSelf": old_self}
            violation = _run_rule(rule, variable_values, location, results)
            if violation is not None:
                _add_violation(rule, violation, ratchet, results)


def _old_self_value(rule: ValidationRule, old: Any, *, has_old: bool) -> Any:
    if not rule.is_old_self_optional:
        return old
    return OptionalValue(old) if has_old else OPTIONAL_NONE


def _run_rule(
    rule: ValidationRule, variable_values: dict[str, Any], location: _Location, results: RuleResults
) -> FieldError | None:
    """The error of a violated rule, else None. Errors of the evaluation are added to `results`.

    Raises _BudgetExceeded.
    """
    if rule.program is None:
        return None
    try:
        if rule.program.run(variable_values, results.budget) is True:
            return None
        message = _violation_message(rule, variable_values, results.budget)
    except BudgetError as error:
        message = (
            f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"
        )
        results.errors.append(_invalid_error(location, message))
        raise _BudgetExceeded from None
    except EvaluationError as error:
        results.errors.append(_invalid_error(location, _evaluation_message(error, rule)))
        return None
    return _violation_error(rule, location, message)


def _evaluation_message(error: EvaluationError, rule: ValidationRule) -> str:
    """kube-apiserver's message about a rule whose evaluation failed."""
    if str(error).startswith("no such overload"):
        return (
            f"'{error}': call arguments did not match a supported operator, function or macro signature "
            f"for rule: {rule.text}"
        )
    return f"{error} evaluating rule: {rule.text}"


def _violation_message(rule: ValidationRule, variable_values: dict[str, Any], budget: Budget) -> str:
    """The message of a violated rule: by messageExpression, else by `message`, else by the expression of the rule."""
    fallback = str(rule.source.get("message") or "").strip() or f"failed rule: {rule.text}"
    if rule.message is None:
        return fallback
    try:
        text_value = rule.message.run(variable_values, budget)
    except EvaluationError:
        return fallback
    message_text = text_value.strip() if isinstance(text_value, str) else ""
    is_usable = message_text and "\n" not in message_text and len(message_text.encode()) <= MESSAGE_MAX_BYTES
    return message_text if is_usable else fallback


def _violation_error(rule: ValidationRule, location: _Location, message: str) -> FieldError:
    """The error of a violated rule; its path is the rule's fieldPath below the value, if it has one."""
    error_path = ".".join(part for part in (location.path, rule.path) if part) or _ROOT_PATH
    reason = rule.source.get("reason") or "FieldValueInvalid"
    message_start = _MESSAGE_PREFIXES[reason]
    if location.json_type not in ("object", "array") and reason in ("FieldValueInvalid", "FieldValueDuplicate"):
        message_start += f": {_print_value(location.value)}"
    return FieldError(
        reason, error_path, message_start if reason == "FieldValueDuplicate" else f"{message_start}: {message}"
    )


def _print_value(value: Any) -> str:
    return quoting.quoted(value) if isinstance(value, str) else json_text.encode(value).decode()


def _invalid_error(location: _Location, message: str) -> FieldError:
    """The error of a rule that could not be evaluated; as in kube-apiserver, it shows the JSON type as the value."""
    text = f'Invalid value: "{location.json_type}": {message}'
    return FieldError("FieldValueInvalid", location.path or _ROOT_PATH, text)


def _add_violation(rule: ValidationRule, violation: FieldError, ratchet: _Ratchet, results: RuleResults) -> None:
    """Add a violation: as a warning if the value, or its nearest ancestor with an old value, is unchanged.

    One of a rule that uses `oldSelf` is an error in any case.
    """
    nearest_change = ratchet.own if ratchet.own is not None else ratchet.ancestor
    if not rule.uses_old_self and nearest_change is not None and nearest_change.is_empty():
        results.warnings.append(violation)
    else:
        results.errors.append(violation)
