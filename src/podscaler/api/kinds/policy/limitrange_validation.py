"""What is wrong with a LimitRange.

Called by its record.

Source: upstream's messages; the API reference of core/v1.
"""

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ORDERED = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""What may not be more than what, where it is told, and how."""
_SHOWN = {("min", "default"): "min", ("default", "max"): "max"}
"""Where a fault of a default shows the other value."""


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a LimitRange to be stored."""
    del old
    found = []
    seen: set[str] = set()
    for index, item in enumerate((new.get("spec") or {}).get("limits") or []):
        path, kind = f"spec.limits[{index}]", item.get("type", "")
        found += _type_faults(kind, f"{path}.type")
        if kind in seen:
            found.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        found += _name_faults(item, kind, path)
        found += _amount_faults(item, path)
    return found


def _type_faults(kind: str, path: str) -> list[FieldError]:
    texts = names.label_key_faults(kind)
    if not texts and "/" not in kind and kind not in _TYPES:
        texts = ["must be a standard limit type or fully qualified"]
    return [invalid(path, kind, text) for text in texts]


def _name_faults(item: Object, kind: str, path: str) -> list[FieldError]:
    rule = names.container_resource_name_faults if kind in ("Pod", "Container") else names.resource_name_faults
    found = []
    for part in _PARTS:
        if kind == "Pod" and part in ("default", "defaultRequest"):
            if item.get(part):
                found.append(forbidden(f"{path}.{part}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in sorted(item.get(part) or {}):
            found += [invalid(f"{path}.{part}[{name}]", name, text) for text in rule(name)]
    bounds = {**(item.get("min") or {}), **(item.get("max") or {})}
    if kind == "PersistentVolumeClaim" and "storage" not in bounds:
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(f"{path}.limits", text))
    return found


def _amount_faults(item: Object, path: str) -> list[FieldError]:
    parts = {
        part: {name: Quantity.parse(str(amount)) for name, amount in (item.get(part) or {}).items()}
        for part in _PARTS
        if item.get("type") != "Pod" or part not in ("default", "defaultRequest")
    }
    found = []
    for name in sorted({name for amounts in parts.values() for name in amounts}):
        given = {part: amounts[name] for part, amounts in parts.items() if name in amounts}
        found += _order_faults(given, name, path)
        found += _ratio_faults(given, f"{path}.maxLimitRequestRatio[{name}]")
        found += _overcommit_faults(given, name, path)
    return found


def _order_faults(given: dict[str, Quantity], name: str, path: str) -> list[FieldError]:
    found = []
    for small, large, told, text in _ORDERED:
        if small in given and large in given and given[small] > given[large]:
            shown = given[_SHOWN.get((small, large), told)]
            found.append(invalid(f"{path}.{told}[{name}]", str(shown), text.format(given[small], given[large])))
    return found


def _ratio_faults(given: dict[str, Quantity], path: str) -> list[FieldError]:
    ratio = given.get("maxLimitRequestRatio")
    if ratio is None:
        return []
    found = [invalid(path, str(ratio), f"ratio {ratio} is less than 1")] if ratio < Quantity.parse("1") else []
    least = given["min"].milli_value() if "min" in given else 0
    if least > 0 and "max" in given:
        limit = given["max"].milli_value() / least
        if ratio.milli_value() / 1000 > limit:
            found.append(invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}"))
    return found


def _overcommit_faults(given: dict[str, Quantity], name: str, path: str) -> list[FieldError]:
    """What cannot be given to more than one has a request that is its limit."""
    may_differ = names.is_native_resource(name) and not name.startswith("hugepages-")
    default, requested = given.get("default"), given.get("defaultRequest")
    if may_differ or default is None or requested is None or default == requested:
        return []
    text = f"default value {default} must equal to defaultRequest value {requested} in {name}"
    return [invalid(f"{path}.defaultRequest[{name}]", str(requested), text)]
