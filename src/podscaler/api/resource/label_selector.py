"""LabelSelector fields: what is wrong with one, whether it selects a template, how tables show it.

Called by the records of workloads. The meaning of selectors is `podscaler.api.machinery.selectors`.

Source: docs/spec/decision.md 12.2 (Canonical selector string); golden captures of refused workloads.
"""

from podscaler.api.machinery import names, printing, selectors
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource.resources import Object

_TAKES_VALUES = ("In", "NotIn")
_TAKES_NONE = ("Exists", "DoesNotExist")


def faults(selector: Object, path: str) -> list[FieldError]:
    """What is wrong with a selector that is there."""
    found = _label_faults(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or []):
        found += _requirement_faults(requirement, f"{path}.matchExpressions[{index}]")
    return found


def _label_faults(labels: Object, path: str) -> list[FieldError]:
    found = []
    for key, value in labels.items():
        found += [invalid(path, key, text) for text in names.label_key_faults(key)]
        found += [invalid(path, value, text) for text in names.label_value_faults(value)]
    return found


def _requirement_faults(requirement: Object, path: str) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    found = []
    if operator in _TAKES_VALUES and not values:
        found.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _TAKES_NONE and values:
        found.append(forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator not in _TAKES_VALUES + _TAKES_NONE:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = requirement.get("key", "")
    found += [invalid(f"{path}.key", key, text) for text in names.label_key_faults(key)]
    for index, value in enumerate(values):
        found += [invalid(f"{path}.values[{index}]", value, text) for text in names.label_value_faults(value)]
    return found


def is_empty(selector: Object) -> bool:
    """Whether it has no requirement at all (and so would select everything)."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def matches(selector: Object, labels: Object) -> bool:
    """Whether the selector selects the labels; a faulty selector selects nothing."""
    try:
        return selectors.from_label_selector(selector).matches(labels)
    except ValueError:
        return False


def text(selector: Object | None) -> str:
    """The selector as tables show it: canonical, `<none>` when empty, `<error>` when faulty."""
    try:
        return canonical(selector) or printing.NONE
    except ValueError:
        return "<error>"


def canonical(selector: Object | None) -> str:
    """The selector as `status.selector` of a Scale shows it. Raises ValueError when it is faulty."""
    return str(selectors.from_label_selector(selector or {}))
