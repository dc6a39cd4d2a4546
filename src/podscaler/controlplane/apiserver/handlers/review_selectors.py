"""Validates the label and field selectors in access reviews (may a user list the pods that match app=web?).

`reviews` calls it. RBAC ignores selectors, so the result of a review never depends on one; errors and unparsable
selectors are reported all the same. An unknown operator is no field error, as newer clients may have more; a new one
goes into `_OPERATORS_WITH_VALUES` or `_OPERATORS_WITHOUT_VALUES`.

Source: kube-apiserver's validation of authorization.k8s.io/v1 ResourceAttributes, and its evaluation errors.
"""

from collections.abc import Callable, Mapping
from typing import Any

from podscaler.api.machinery import field, names, selectors
from podscaler.api.machinery.field import FieldError
from podscaler.controlplane.storage import field_selectors

_ATTRIBUTES_PATH = "spec.resourceAttributes"
_OPERATORS_WITH_VALUES = ("In", "NotIn")
_OPERATORS_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_OPERATORS = _OPERATORS_WITH_VALUES + _OPERATORS_WITHOUT_VALUES


def selector_field_errors(attributes: Mapping[str, Any]) -> list[FieldError]:
    """The field errors of the selectors in `resourceAttributes`."""
    errors: list[FieldError] = []
    for selector_field, check_key in (("fieldSelector", _field_key_errors), ("labelSelector", _label_key_errors)):
        selector = attributes.get(selector_field)
        if selector is not None:
            errors += _selector_errors(selector, f"{_ATTRIBUTES_PATH}.{selector_field}", check_key)
    return errors


def evaluation_error(attributes: Mapping[str, Any]) -> str:
    """kube-apiserver's message about the selectors that are ignored; empty if none is."""
    messages = []
    for selector_field, parse in (("fieldSelector", field_selectors.parse), ("labelSelector", selectors.parse)):
        selector = attributes.get(selector_field) or {}
        operators = [requirement.get("operator", "") for requirement in selector.get("requirements") or []]
        unknown_operators = [operator for operator in operators if operator not in _OPERATORS]
        if unknown_operators or not _is_parsable(parse, selector.get("rawSelector", "")):
            partially = "partially " if len(unknown_operators) < len(operators) else ""
            messages.append(f"{_ATTRIBUTES_PATH}.{selector_field} {partially}ignored due to parse error")
    return "; ".join(messages)


def _is_parsable(parse: Callable[[str], object], raw_selector: str) -> bool:
    """Whether `parse` accepts the text of a selector."""
    try:
        parse(raw_selector)
    except ValueError:
        return False
    return True


def _selector_errors(
    selector: Mapping[str, Any], field_path: str, check_key: Callable[[str, str], list[FieldError]]
) -> list[FieldError]:
    """Errors of a selector, which has either its text or requirements.

    Args:
        selector: `fieldSelector` or `labelSelector`, as its JSON object.
        field_path: its path in messages.
        check_key: from a requirement's key and its path in messages to the errors of the key.
    """
    raw_selector, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    if raw_selector and requirements:
        message = "may not specified at the same time as requirements"
        return [field.invalid(f"{field_path}.rawSelector", raw_selector, message)]
    if not raw_selector and not requirements:
        message = f"when {field_path} is specified, requirements or rawSelector is required"
        return [field.required(f"{field_path}.requirements", message)]
    errors: list[FieldError] = []
    for index, requirement in enumerate(requirements):
        requirement_path = f"{field_path}.requirements[{index}]"
        errors += check_key(requirement.get("key", ""), f"{requirement_path}.key")
        errors += _value_errors(requirement, f"{requirement_path}.values")
    return errors


def _field_key_errors(key: str, field_path: str) -> list[FieldError]:
    """The error of a field selector's requirement without a key."""
    return [] if key else [field.required(field_path, "must be specified")]


def _label_key_errors(key: str, field_path: str) -> list[FieldError]:
    """The errors of the key of a label selector's requirement."""
    return [field.invalid(field_path, key, message) for message in names.label_key_errors(key)]


def _value_errors(requirement: Mapping[str, Any], field_path: str) -> list[FieldError]:
    """The error of a requirement whose operator needs values and has none, or the reverse."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in _OPERATORS_WITH_VALUES and not values:
        return [field.required(field_path, "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in _OPERATORS_WITHOUT_VALUES and values:
        return [field.forbidden(field_path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    return []
