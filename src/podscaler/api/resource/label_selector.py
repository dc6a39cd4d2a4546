"""LabelSelector fields of specs (`matchLabels`, `matchExpressions`): validation, matching, and their text in tables.

Called by the records of workloads. `podscaler.api.machinery.selectors` evaluates selectors. An `Object` is the part of
an API object that the name of the argument says, as a JSON object; `path` is its path in errors. A new operator: here,
and in `podscaler.api.machinery.selectors`.

Source: docs/spec/decision.md 12.2 (Canonical selector string); golden captures of rejected workloads.
"""

from podscaler.api.machinery import names, printing, selectors
from podscaler.api.machinery.field import FieldError, forbidden, invalid
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

_OPERATORS_WITH_VALUES = ("In", "NotIn")
_OPERATORS_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_COMPARISON_OPERATORS = ("Gt", "Lt")


def validate(selector: Object, path: str) -> list[FieldError]:
    """The field errors of a LabelSelector at `path`: invalid keys, values and operators."""
    errors = []
    for key, value in (selector.get("matchLabels") or {}).items():
        errors += checks.well_formed(key, f"{path}.matchLabels", names.label_key_errors)
        errors += checks.well_formed(value, f"{path}.matchLabels", names.label_value_errors)
    return errors + checks.each(selector.get("matchExpressions"), f"{path}.matchExpressions", requirement_errors)


def requirement_errors(requirement: Object, path: str, *, is_comparing: bool = False) -> list[FieldError]:
    """The field errors of one requirement; `is_comparing`: whether `Gt` and `Lt` are operators, too (node affinity)."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    values_path = f"{path}.values"
    if operator in _OPERATORS_WITH_VALUES:
        errors = checks.present(values, values_path, "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _OPERATORS_WITHOUT_VALUES:
        message = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors = [forbidden(values_path, message)] if values else []
    elif is_comparing and operator in _COMPARISON_OPERATORS:
        message = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        errors = checks.present(len(values) == 1, values_path, message)
    else:
        errors = [invalid(f"{path}.operator", operator, "not a valid selector operator")]
    errors += checks.well_formed(requirement.get("key", ""), f"{path}.key", names.label_key_errors)
    return errors + checks.each_well_formed(values, values_path, names.label_value_errors)


def is_empty(selector: Object) -> bool:
    """Whether the selector has no requirement, and so selects everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def matches(selector: Object, labels: Object) -> bool:
    """Whether the selector selects the labels; an invalid selector selects nothing."""
    try:
        return selectors.from_label_selector(selector).matches(labels)
    except ValueError:
        return False


def text(selector: Object | None) -> str:
    """The selector as tables show it: canonical, `<none>` when empty, `<error>` when invalid."""
    try:
        return canonical(selector) or printing.NONE
    except ValueError:
        return "<error>"


def canonical(selector: Object | None) -> str:
    """The selector as `status.selector` of a Scale shows it. Raises ValueError when it is invalid."""
    return str(selectors.from_label_selector(selector or {}))
