"""Resource definition of LimitRange (core/v1); `podscaler.controlplane.admission.limit_ranges` applies it to new pods.

`api.kinds.catalog` lists it for the API server. Source: kube-apiserver's messages; the API
reference of core/v1.
"""

import uuid
from functools import partial

from podscaler.api.machinery import names, printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks, tables
from podscaler.api.resource.resources import Object, Resource, Strategy, Version

_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_LIMIT_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ORDER_RULES = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""(smaller amount, larger amount, field that the error names, message with both); as in `min` must not exceed `max`."""
_PART_SHOWN = {("min", "default"): "min", ("default", "max"): "max"}
"""(smaller amount, larger amount) -> the field whose value the error shows, where it is not the named one."""


def set_defaults(limit_range: Object) -> None:
    """API defaults, in place: default amounts follow from minimum and maximum."""
    spec = limit_range.setdefault("spec", {})
    for limit in spec.get("limits") or []:
        if limit.get("type") != "Container":
            continue
        default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        requested = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
        if default:
            limit["default"] = default
        if requested:
            limit["defaultRequest"] = requested
    spec.setdefault("limits", None)


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a LimitRange to be stored."""
    seen: set[str] = set()
    return checks.each((new.get("spec") or {}).get("limits"), "spec.limits", partial(_item_errors, seen=seen))


def _item_errors(item: Object, path: str, seen: set[str]) -> list[FieldError]:
    kind, field_path = item.get("type", ""), f"{path}.type"
    errors = checks.well_formed(kind, field_path, _type_messages) + checks.not_repeated(kind, field_path, seen)
    return errors + _name_errors(item, kind, path) + _amount_errors(item, path)


def _type_messages(kind: str) -> list[str]:
    is_known = "/" in kind or kind in _TYPES
    return names.label_key_errors(kind) or ([] if is_known else ["must be a standard limit type or fully qualified"])


def _name_errors(item: Object, kind: str, path: str) -> list[FieldError]:
    """Errors of the resource names of an entry, and of fields that entries of its type do not have."""
    rule = names.container_resource_name_errors if kind in ("Pod", "Container") else names.resource_name_errors
    errors = []
    for part in _LIMIT_FIELDS:
        if kind == "Pod" and part in ("default", "defaultRequest"):
            if item.get(part):
                errors.append(forbidden(f"{path}.{part}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in sorted(item.get(part) or {}):
            errors += checks.well_formed(name, f"{path}.{part}[{name}]", rule)
    bounds = {**(item.get("min") or {}), **(item.get("max") or {})}
    if kind == "PersistentVolumeClaim" and "storage" not in bounds:
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", text))
    return errors


def _amount_errors(item: Object, path: str) -> list[FieldError]:
    """Errors of the amounts of an entry, compared with each other for each resource."""
    parts = {
        part: {name: Quantity.parse(str(amount)) for name, amount in (item.get(part) or {}).items()}
        for part in _LIMIT_FIELDS
        if item.get("type") != "Pod" or part not in ("default", "defaultRequest")
    }
    errors = []
    for name in sorted({name for amounts in parts.values() for name in amounts}):
        amounts_by_part = {part: amounts[name] for part, amounts in parts.items() if name in amounts}
        errors += _order_errors(amounts_by_part, name, path)
        errors += _ratio_errors(amounts_by_part, f"{path}.maxLimitRequestRatio[{name}]")
        errors += _overcommit_errors(amounts_by_part, name, path)
    return errors


def _order_errors(amounts_by_part: dict[str, Quantity], name: str, path: str) -> list[FieldError]:
    """Errors of amounts in the wrong order: minimum, default request, default limit, maximum."""
    errors = []
    for small, large, named_part, text in _ORDER_RULES:
        if small in amounts_by_part and large in amounts_by_part and amounts_by_part[small] > amounts_by_part[large]:
            value = amounts_by_part[_PART_SHOWN.get((small, large), named_part)]
            errors.append(
                invalid(
                    f"{path}.{named_part}[{name}]",
                    str(value),
                    text.format(amounts_by_part[small], amounts_by_part[large]),
                )
            )
    return errors


def _ratio_errors(amounts_by_part: dict[str, Quantity], path: str) -> list[FieldError]:
    """Errors of the ratio of limit to request, which is at least 1 and at most that of maximum to minimum."""
    ratio = amounts_by_part.get("maxLimitRequestRatio")
    if ratio is None:
        return []
    errors = [invalid(path, str(ratio), f"ratio {ratio} is less than 1")] if ratio < Quantity.parse("1") else []
    least = amounts_by_part["min"].milli_value() if "min" in amounts_by_part else 0
    if least > 0 and "max" in amounts_by_part:
        limit = amounts_by_part["max"].milli_value() / least
        if ratio.milli_value() / 1000 > limit:
            errors.append(invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}"))
    return errors


def _overcommit_errors(amounts_by_part: dict[str, Quantity], name: str, path: str) -> list[FieldError]:
    """The error of a request that is not the limit, of a resource that cannot be overcommitted."""
    may_differ = names.is_native_resource(name) and not name.startswith("hugepages-")
    default, requested = amounts_by_part.get("default"), amounts_by_part.get("defaultRequest")
    if may_differ or default is None or requested is None or default == requested:
        return []
    text = f"default value {default} must equal to defaultRequest value {requested} in {name}"
    return [invalid(f"{path}.defaultRequest[{name}]", str(requested), text)]


def _generate_name(limit_range: Object) -> None:
    """Sets a missing name to a UUID that is derived from the uid."""
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
