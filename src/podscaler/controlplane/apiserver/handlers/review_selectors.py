"""Selectors in questions about access: what is wrong with them, and which cannot be understood.

Called by `reviews`. Roles do not look at selectors, so that an answer never depends on one; the asker is told all the
same. An operator that is not known is no fault: newer clients may have more.

Source: upstream's validation of authorization.k8s.io/v1 ResourceAttributes, and its evaluation errors.
"""

from collections.abc import Callable, Mapping
from typing import Any

from podscaler.api.machinery import field, names, selectors
from podscaler.api.machinery.field import FieldError
from podscaler.controlplane.storage import field_selectors

_PATH = "spec.resourceAttributes"
_TAKES_VALUES = ("In", "NotIn")
_TAKES_NONE = ("Exists", "DoesNotExist")


def faults(wanted: Mapping[str, Any]) -> list[FieldError]:
    """What is wrong with the selectors of `resourceAttributes`."""
    found: list[FieldError] = []
    for part, key_faults in (("fieldSelector", _field_key_faults), ("labelSelector", _label_key_faults)):
        selector = wanted.get(part)
        if selector is not None:
            found += _faults_of(selector, f"{_PATH}.{part}", key_faults)
    return found


def evaluation_error(wanted: Mapping[str, Any]) -> str:
    """Which selectors are ignored, in upstream's words; empty where none is."""
    told = []
    for part, parse in (("fieldSelector", field_selectors.parse), ("labelSelector", selectors.parse)):
        selector = wanted.get(part) or {}
        operators = [each.get("operator", "") for each in selector.get("requirements") or []]
        unknown = [operator for operator in operators if operator not in _TAKES_VALUES + _TAKES_NONE]
        if unknown or not _is_read(parse, selector.get("rawSelector", "")):
            partially = "partially " if len(unknown) < len(operators) else ""
            told.append(f"{_PATH}.{part} {partially}ignored due to parse error")
    return "; ".join(told)


def _is_read(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _faults_of(
    selector: Mapping[str, Any], path: str, key_faults: Callable[[str, str], list[FieldError]]
) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    if raw and requirements:
        return [field.invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")]
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        return [field.required(f"{path}.requirements", why)]
    found: list[FieldError] = []
    for index, requirement in enumerate(requirements):
        at = f"{path}.requirements[{index}]"
        found += key_faults(requirement.get("key", ""), f"{at}.key")
        found += _value_faults(requirement, f"{at}.values")
    return found


def _field_key_faults(key: str, path: str) -> list[FieldError]:
    return [] if key else [field.required(path, "must be specified")]


def _label_key_faults(key: str, path: str) -> list[FieldError]:
    return [field.invalid(path, key, text) for text in names.label_key_faults(key)]


def _value_faults(requirement: Mapping[str, Any], path: str) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in _TAKES_VALUES and not values:
        return [field.required(path, "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in _TAKES_NONE and values:
        return [field.forbidden(path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    return []
