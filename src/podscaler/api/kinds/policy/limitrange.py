"""Resource definition of LimitRange (core/v1); `podscaler.controlplane.admission.limit_ranges` applies it to new pods.

`spec.limits` is a list of items; each has a type (such as Container) and, by resource name, the amounts `min`, `max`,
`default`, `defaultRequest` and `maxLimitRequestRatio`. RESOURCE, at the end, registers the functions above it as hooks,
which `api.resource.resources` explains; `api.kinds.catalog` lists it for the API server. A new field with amounts:
_LIMIT_FIELDS, and _ORDER_RULES if it is compared. Quantities were checked when they were decoded.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

import uuid
from functools import partial
from typing import NamedTuple

from podscaler.api.machinery import names, printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.machinery.quantity import UNIT_MILLI, Quantity
from podscaler.api.resource import checks, tables
from podscaler.api.resource.resources import Object, Resource, Strategy, Version

_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_LIMIT_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class _OrderRule(NamedTuple):
    """An amount that must not exceed another one of the same resource.

    Attributes:
        smaller: the field whose amount must not exceed that of `larger`.
        named: the field that the error names.
        shown: the field whose amount the error shows, in two rules not that of `named`, as upstream.
        noun: the noun for the larger amount in the message.
    """

    smaller: str
    larger: str
    named: str
    shown: str
    noun: str


_ORDER_RULES = (
    _OrderRule("min", "max", named="min", shown="min", noun="max"),
    _OrderRule("min", "defaultRequest", named="defaultRequest", shown="defaultRequest", noun="default request"),
    _OrderRule("defaultRequest", "max", named="defaultRequest", shown="defaultRequest", noun="max"),
    _OrderRule("defaultRequest", "default", named="defaultRequest", shown="defaultRequest", noun="default limit"),
    _OrderRule("min", "default", named="default", shown="min", noun="default"),
    _OrderRule("default", "max", named="default", shown="max", noun="max"),
)
"""In the order in which errors are reported."""
_SMALLER_NOUNS = {"min": "min", "defaultRequest": "default request", "default": "default"}
"""Field of a smaller amount -> its noun in the message."""


def set_defaults(limit_range: Object) -> None:
    """API defaults, in place: default limits and requests of containers follow from maximum and minimum."""
    spec = limit_range.setdefault("spec", {})
    for limit_item in spec.get("limits") or []:
        if limit_item.get("type") != "Container":
            continue
        default_limits = {**(limit_item.get("max") or {}), **(limit_item.get("default") or {})}
        default_requests = {
            **(limit_item.get("min") or {}),
            **default_limits,
            **(limit_item.get("defaultRequest") or {}),
        }
        if default_limits:
            limit_item["default"] = default_limits
        if default_requests:
            limit_item["defaultRequest"] = default_requests
    spec.setdefault("limits", None)  # kube-apiserver shows an empty list as null


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a LimitRange to be stored."""
    earlier_types: set[str] = set()
    limits = (new.get("spec") or {}).get("limits")
    return checks.each(limits, "spec.limits", partial(_item_errors, earlier_types=earlier_types))


def _item_errors(limit_item: Object, path: str, earlier_types: set[str]) -> list[FieldError]:
    """Field errors of one of `spec.limits`; adds its type to `earlier_types`, which must not repeat."""
    limit_type, field_path = limit_item.get("type", ""), f"{path}.type"
    errors = checks.well_formed(limit_type, field_path, _type_messages)
    errors += checks.not_repeated(limit_type, field_path, earlier_types)
    return errors + _name_errors(limit_item, limit_type, path) + _amount_errors(limit_item, path)


def _type_messages(limit_type: str) -> list[str]:
    """The messages about an invalid type: neither a standard one nor one with a domain."""
    is_supported = "/" in limit_type or limit_type in _LIMIT_TYPES
    if messages := names.label_key_errors(limit_type):
        return messages
    return [] if is_supported else ["must be a standard limit type or fully qualified"]


def _name_errors(limit_item: Object, limit_type: str, path: str) -> list[FieldError]:
    """Field errors of the resource names of an item, and of fields that items of its type must not have."""
    is_about_pods = limit_type in ("Pod", "Container")
    name_rule = names.container_resource_name_errors if is_about_pods else names.resource_name_errors
    errors = []
    for field in _LIMIT_FIELDS:
        if limit_type == "Pod" and field in ("default", "defaultRequest"):
            if limit_item.get(field):
                errors.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in sorted(limit_item.get(field) or {}):
            errors += checks.well_formed(name, f"{path}.{field}[{name}]", name_rule)
    bounds = {**(limit_item.get("min") or {}), **(limit_item.get("max") or {})}
    if limit_type == "PersistentVolumeClaim" and "storage" not in bounds:
        message = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", message))
    return errors


def _amount_errors(limit_item: Object, path: str) -> list[FieldError]:
    """Field errors of the amounts of an item, compared with each other for each resource."""
    amounts_by_field: dict[str, dict[str, Quantity]] = {}
    for field in _LIMIT_FIELDS:
        if limit_item.get("type") == "Pod" and field in ("default", "defaultRequest"):
            continue  # forbidden for pods: reported by `_name_errors`
        amounts = limit_item.get(field) or {}
        amounts_by_field[field] = {resource: Quantity.parse(str(amount)) for resource, amount in amounts.items()}
    errors = []
    for resource in sorted({resource for field_amounts in amounts_by_field.values() for resource in field_amounts}):
        resource_amounts = {
            field: field_amounts[resource]
            for field, field_amounts in amounts_by_field.items()
            if resource in field_amounts
        }
        errors += _order_errors(resource_amounts, resource, path)
        errors += _ratio_errors(resource_amounts, f"{path}.maxLimitRequestRatio[{resource}]")
        errors += _overcommit_errors(resource_amounts, resource, path)
    return errors


def _order_errors(amounts: dict[str, Quantity], resource: str, path: str) -> list[FieldError]:
    """Field errors of amounts in the wrong order (_ORDER_RULES); `amounts` are those of one resource by field."""
    errors = []
    for rule in _ORDER_RULES:
        smaller, larger = amounts.get(rule.smaller), amounts.get(rule.larger)
        if smaller is not None and larger is not None and smaller > larger:
            noun = _SMALLER_NOUNS[rule.smaller]
            message = f"{noun} value {smaller} is greater than {rule.noun} value {larger}"
            errors.append(invalid(f"{path}.{rule.named}[{resource}]", str(amounts[rule.shown]), message))
    return errors


def _ratio_errors(amounts: dict[str, Quantity], path: str) -> list[FieldError]:
    """Errors of the ratio of limit to request, which is at least 1 and at most that of maximum to minimum."""
    ratio = amounts.get("maxLimitRequestRatio")
    if ratio is None:
        return []
    errors = [invalid(path, str(ratio), f"ratio {ratio} is less than 1")] if ratio < Quantity.parse("1") else []
    min_milli = amounts["min"].milli_value() if "min" in amounts else 0
    if min_milli > 0 and "max" in amounts:
        max_ratio = amounts["max"].milli_value() / min_milli
        if ratio.milli_value() / UNIT_MILLI > max_ratio:
            errors.append(invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {max_ratio:f}"))
    return errors


def _overcommit_errors(amounts: dict[str, Quantity], resource: str, path: str) -> list[FieldError]:
    """The error of a request that is not the limit, of a resource that cannot be overcommitted."""
    may_differ = names.is_native_resource(resource) and not resource.startswith("hugepages-")
    default_limit, default_request = amounts.get("default"), amounts.get("defaultRequest")
    if may_differ or default_limit is None or default_request is None or default_limit == default_request:
        return []
    message = f"default value {default_limit} must equal to defaultRequest value {default_request} in {resource}"
    return [invalid(f"{path}.defaultRequest[{resource}]", str(default_request), message)]


def _generate_name(limit_range: Object) -> None:
    """Sets a missing name to a UUID, in place; it is derived from the uid, as hooks make no random values."""
    metadata = limit_range["metadata"]
    if not metadata.get("name"):
        metadata["name"] = str(uuid.uuid5(uuid.NAMESPACE_OID, metadata["uid"]))


RESOURCE = Resource(
    group="",
    plural="limitranges",
    kind="LimitRange",
    versions=(Version("v1", "core/v1.LimitRange", default=set_defaults),),
    strategy=Strategy(allows_create_on_update=True, prepare_create=_generate_name, validate=validate),
    short_names=("limits",),
    printer=tables.with_creation_time("limit range", unknown=printing.UNKNOWN),
)
