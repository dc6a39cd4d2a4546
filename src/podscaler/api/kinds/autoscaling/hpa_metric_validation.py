"""What is wrong with one metric of an autoscaler.

Called by `hpa_validation`. The steps and their order are upstream's: only the first source that is there is looked at
in detail, whatever the type says.

Source: docs/spec/api.md 2.4 (metrics).
"""

from collections.abc import Sequence

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks, references
from podscaler.api.resource.resources import Object

_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES = ("object", "external", "pods", "resource", "containerResource")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def validate(metric: Object, path: str, *, trusts_object_versions: bool = False) -> list[FieldError]:
    """What is wrong with the metric at `path`; `trusts_object_versions` skips the form of its object's apiVersion."""
    kind = metric.get("type", "")
    found = checks.present(kind, f"{path}.type", "must specify a metric source type")
    found += checks.one_of(kind, f"{path}.type", _TYPES)
    present = [source for source in _SOURCES if metric.get(source) is not None]
    if present:
        found += _detail(metric[present[0]], present[0], f"{path}.{present[0]}", trusts_object_versions)
    return found + _presence(kind, present, path)


def has_bad_object_version(metrics: Sequence[Object]) -> bool:
    """Whether any Object metric names its object with an apiVersion of two slashes."""
    described = [(metric.get("object") or {}).get("describedObject") or {} for metric in metrics]
    return any(each.get("apiVersion", "").count("/") > 1 for each in described)


def _presence(kind: str, present: list[str], path: str) -> list[FieldError]:
    """Faults of which sources are there: that of the type, and no other."""
    expected = kind[0].lower() + kind[1:] if kind in _TYPES else ""
    found = []
    if expected and expected not in present:
        found.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        others = [source for source in present if source != expected]
        found += [forbidden(f"{path}.{other}", "must populate the given metric source only") for other in others]
    return found


def _detail(source: Object, name: str, path: str, trusts_versions: bool) -> list[FieldError]:
    if name == "object":
        return _object_errors(source, path, trusts_versions)
    if name == "external":
        return _external_errors(source, path)
    if name == "pods":
        return _pods_errors(source, path)
    return _resource_name_errors(source, path, name) + _resource_errors(source, path)


def _object_errors(source: Object, path: str, trusts_versions: bool) -> list[FieldError]:
    described = source.get("describedObject") or {}
    found = references.name_errors(described, f"{path}.describedObject")
    if not trusts_versions:
        found += references.version_errors(described.get("apiVersion", ""), f"{path}.describedObject.apiVersion")
    target = source.get("target") or {}
    found += _metric_name_errors(source, path) + _target_errors(target, f"{path}.target")
    if not _has(target, "value") and not _has(target, "averageValue"):
        found.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    return found


def _external_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    found = _metric_name_errors(source, path) + _target_errors(target, f"{path}.target")
    has_value, has_average = _has(target, "value"), _has(target, "averageValue")
    if not has_value and not has_average:
        text = "must set either a target value for metric or a per-pod target"
        found.append(required(f"{path}.target.averageValue", text))
    if has_value and has_average:
        text = "may not set both a target value for metric and a per-pod target"
        found.append(forbidden(f"{path}.target.value", text))
    return found


def _pods_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    found = _metric_name_errors(source, path) + _target_errors(target, f"{path}.target")
    if not _has(target, "averageValue"):
        found.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return found


def _resource_name_errors(source: Object, path: str, name: str) -> list[FieldError]:
    resource = source.get("name", "")
    found = checks.present(resource, f"{path}.name", "must specify a resource name")
    if name == "resource":
        return found
    found += checks.well_formed_if_set(resource, f"{path}.name", names.container_resource_name_faults)
    container = source.get("container", "")
    if not container:
        return [*found, required(f"{path}.container", "must specify a container")]
    return found + checks.well_formed(container, f"{path}.container", names.dns_label_faults)


def _resource_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    found = _target_errors(target, f"{path}.target")
    has_share, has_average = _has(target, "averageUtilization"), _has(target, "averageValue")
    if not has_share and not has_average:
        text = "must set either a target raw value or a target utilization"
        found.append(required(f"{path}.target.averageUtilization", text))
    if has_share and has_average:
        text = "may not set both a target raw value and a target utilization"
        found.append(forbidden(f"{path}.target.averageValue", text))
    return found


def _metric_name_errors(source: Object, path: str) -> list[FieldError]:
    name = (source.get("metric") or {}).get("name", "")
    if not name:
        return [required(f"{path}.metric.name", "must specify a metric name")]
    return checks.well_formed(name, f"{path}.metric.name", names.path_segment_faults)


def _target_errors(target: Object, path: str) -> list[FieldError]:
    kind = target.get("type", "")
    found = checks.present(kind, f"{path}.type", "must specify a metric target type")
    if kind not in _TARGET_TYPES:
        found.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        if _has(target, name) and Quantity.parse(target[name]).sign() <= 0:
            found.append(invalid(f"{path}.{name}", target[name], "must be positive"))
    share_pct = target.get("averageUtilization")
    if share_pct is not None and share_pct < 1:
        found.append(invalid(f"{path}.averageUtilization", share_pct, "must be greater than 0"))
    return found


def _has(target: Object, name: str) -> bool:
    return target.get(name) is not None
