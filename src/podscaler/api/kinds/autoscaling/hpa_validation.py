"""Validates HorizontalPodAutoscaler (autoscaling/v2): replicas, scaled object, metrics, behavior, status.

Called by the record in `hpa`. Errors come in kube-apiserver's order. A new metric source: add it to `_METRIC_TYPES`,
`_SOURCES` and `_source_errors`.

Source: docs/spec/api.md 2 (Validation).
"""

from collections.abc import Sequence

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks, references
from podscaler.api.resource.resources import Object

_TYPES_FOR_ZERO_REPLICAS = ("Object", "External")
MAX_WINDOW_S = 3600
MAX_PERIOD_S = 1800

_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES = ("object", "external", "pods", "resource", "containerResource")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of the spec of an autoscaler to be stored."""
    spec, old_spec = new.get("spec") or {}, (old or {}).get("spec") or {}
    found = _replica_order_errors(spec)
    found += _target_errors(spec.get("scaleTargetRef") or {}, old_spec.get("scaleTargetRef"))
    found += _metrics_errors(spec, old_spec)
    found += _behavior_errors(spec.get("behavior") or {}, "spec.behavior")
    return found + _replica_bound_errors(spec, old_spec, is_update=old is not None)


def _replica_order_errors(spec: Object) -> list[FieldError]:
    lowest, highest = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if lowest is None or highest >= lowest:
        return []
    return [invalid("spec.maxReplicas", highest, "must be greater than or equal to `minReplicas`")]


def _target_errors(target: Object, old: Object | None) -> list[FieldError]:
    path = "spec.scaleTargetRef"
    found = references.name_errors(target, path)
    is_same = old is not None and all(target.get(key, "") == old.get(key, "") for key in ("kind", "apiVersion"))
    return found if is_same else found + _target_version_errors(target, f"{path}.apiVersion")


def _target_version_errors(target: Object, path: str) -> list[FieldError]:
    version = target.get("apiVersion", "")
    if bad := references.version_errors(version, path):
        return bad
    if target.get("kind") == "ReplicationController" or not _has_no_group(version):
        return []
    return [invalid(path, version, "apiVersion must specify API group")]


def _has_no_group(version: str) -> bool:
    group, slash, _ = version.partition("/")
    return not slash or not group


def _metrics_errors(spec: Object, old_spec: Object) -> list[FieldError]:
    metrics = spec.get("metrics") or []
    trusts_versions = _has_bad_object_version(old_spec.get("metrics") or [])
    found = []
    for index, metric in enumerate(metrics):
        path = f"spec.metrics[{index}]"
        found += _metric_errors(metric, path, trusts_object_versions=trusts_versions)
    if spec.get("minReplicas") == 0 and not any(metric.get("type") in _TYPES_FOR_ZERO_REPLICAS for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(forbidden("spec.metrics", text))
    return found


def _replica_bound_errors(spec: Object, old_spec: Object, *, is_update: bool) -> list[FieldError]:
    """The errors of minReplicas and maxReplicas below their minimum, unless an update does not change the value."""
    lowest, highest = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    found = []
    if lowest is not None and lowest < 0 and not (is_update and lowest == old_spec.get("minReplicas")):
        found.append(invalid("spec.minReplicas", lowest, checks.NOT_NEGATIVE))
    if is_update and highest == (old_spec.get("maxReplicas") or 0):
        return found
    if highest == 0:
        found.append(required("spec.maxReplicas"))
    elif highest < 0:
        found.append(invalid("spec.maxReplicas", highest, "must be greater than or equal to 1"))
    return found


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a status to be stored: numbers below zero."""
    status = new.get("status") or {}
    numbers = [
        (f"status.conditions[{index}].observedGeneration", condition.get("observedGeneration"))
        for index, condition in enumerate(status.get("conditions") or [])
    ]
    numbers += [(f"status.{name}", status.get(name)) for name in ("currentReplicas", "desiredReplicas")]
    return [invalid(path, value, checks.NOT_NEGATIVE) for path, value in numbers if (value or 0) < 0]


def _behavior_errors(behavior: Object, path: str) -> list[FieldError]:
    """The field errors of either direction."""
    found = []
    for direction in ("scaleUp", "scaleDown"):
        found += checks.optional(behavior.get(direction), f"{path}.{direction}", _rules_errors)
    return found


def _rules_errors(rules: Object, path: str) -> list[FieldError]:
    found = _window_errors(rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds")
    select = rules.get("selectPolicy")
    found += checks.optional_one_of(select, f"{path}.selectPolicy", _SELECT_POLICIES)
    policies = rules.get("policies") or []
    found += checks.present(policies, f"{path}.policies", "must specify at least one Policy")
    found += checks.each(policies, f"{path}.policies", _policy_errors)
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).sign() < 0:
        found.append(invalid(f"{path}.tolerance", tolerance, checks.NOT_NEGATIVE))
    return found


def _window_errors(window_s: int | None, path: str) -> list[FieldError]:
    if window_s is None or 0 <= window_s <= MAX_WINDOW_S:
        return []
    if window_s < 0:
        return [invalid(path, window_s, "must be greater than or equal to zero")]
    return [invalid(path, window_s, f"must be less than or equal to {MAX_WINDOW_S}")]


def _policy_errors(policy: Object, path: str) -> list[FieldError]:
    kind, value, period_s = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    found = checks.one_of(kind, f"{path}.type", _POLICY_TYPES)
    found += checks.holds(value > 0, f"{path}.value", value, "must be greater than zero")
    found += checks.holds(period_s > 0, f"{path}.periodSeconds", period_s, "must be greater than zero")
    if period_s > MAX_PERIOD_S:
        found.append(invalid(f"{path}.periodSeconds", period_s, f"must be less than or equal to {MAX_PERIOD_S}"))
    return found


def _metric_errors(metric: Object, path: str, *, trusts_object_versions: bool = False) -> list[FieldError]:
    """The field errors of the metric at `path`; `trusts_object_versions` skips the form of its object's apiVersion."""
    kind = metric.get("type", "")
    found = checks.present(kind, f"{path}.type", "must specify a metric source type")
    found += checks.one_of(kind, f"{path}.type", _METRIC_TYPES)
    present = [source for source in _SOURCES if metric.get(source) is not None]
    if present:
        found += _source_errors(metric[present[0]], present[0], f"{path}.{present[0]}", trusts_object_versions)
    return found + _presence_errors(kind, present, path)


def _has_bad_object_version(metrics: Sequence[Object]) -> bool:
    """Whether any Object metric names its object with an apiVersion of two slashes."""
    described = [(metric.get("object") or {}).get("describedObject") or {} for metric in metrics]
    return any(each.get("apiVersion", "").count("/") > 1 for each in described)


def _presence_errors(kind: str, present: list[str], path: str) -> list[FieldError]:
    """The errors of the set of sources: only that of the type must be present."""
    expected = kind[0].lower() + kind[1:] if kind in _METRIC_TYPES else ""
    found = []
    if expected and expected not in present:
        found.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        others = [source for source in present if source != expected]
        found += [forbidden(f"{path}.{other}", "must populate the given metric source only") for other in others]
    return found


def _source_errors(source: Object, name: str, path: str, trusts_versions: bool) -> list[FieldError]:
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
    found += _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    if not _is_set(target, "value") and not _is_set(target, "averageValue"):
        found.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    return found


def _external_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    found = _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    has_value, has_average = _is_set(target, "value"), _is_set(target, "averageValue")
    if not has_value and not has_average:
        text = "must set either a target value for metric or a per-pod target"
        found.append(required(f"{path}.target.averageValue", text))
    if has_value and has_average:
        text = "may not set both a target value for metric and a per-pod target"
        found.append(forbidden(f"{path}.target.value", text))
    return found


def _pods_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    found = _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    if not _is_set(target, "averageValue"):
        found.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return found


def _resource_name_errors(source: Object, path: str, name: str) -> list[FieldError]:
    resource = source.get("name", "")
    found = checks.present(resource, f"{path}.name", "must specify a resource name")
    if name == "resource":
        return found
    found += checks.well_formed_if_set(resource, f"{path}.name", names.container_resource_name_errors)
    container = source.get("container", "")
    if not container:
        return [*found, required(f"{path}.container", "must specify a container")]
    return found + checks.well_formed(container, f"{path}.container", names.dns_label_errors)


def _resource_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    found = _metric_target_errors(target, f"{path}.target")
    has_share, has_average = _is_set(target, "averageUtilization"), _is_set(target, "averageValue")
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
    return checks.well_formed(name, f"{path}.metric.name", names.path_segment_errors)


def _metric_target_errors(target: Object, path: str) -> list[FieldError]:
    kind = target.get("type", "")
    found = checks.present(kind, f"{path}.type", "must specify a metric target type")
    if kind not in _TARGET_TYPES:
        found.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        if _is_set(target, name) and Quantity.parse(target[name]).sign() <= 0:
            found.append(invalid(f"{path}.{name}", target[name], "must be positive"))
    share_pct = target.get("averageUtilization")
    if share_pct is not None and share_pct < 1:
        found.append(invalid(f"{path}.averageUtilization", share_pct, "must be greater than 0"))
    return found


def _is_set(target: Object, name: str) -> bool:
    return target.get(name) is not None
