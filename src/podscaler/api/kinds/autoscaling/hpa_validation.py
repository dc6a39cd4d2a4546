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
    errors = _replica_order_errors(spec)
    errors += _target_errors(spec.get("scaleTargetRef") or {}, old_spec.get("scaleTargetRef"))
    errors += _metrics_errors(spec, old_spec)
    errors += _behavior_errors(spec.get("behavior") or {}, "spec.behavior")
    return errors + _replica_bound_errors(spec, old_spec, is_update=old is not None)


def _replica_order_errors(spec: Object) -> list[FieldError]:
    lowest, highest = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if lowest is None or highest >= lowest:
        return []
    return [invalid("spec.maxReplicas", highest, "must be greater than or equal to `minReplicas`")]


def _target_errors(target: Object, old: Object | None) -> list[FieldError]:
    path = "spec.scaleTargetRef"
    errors = references.name_errors(target, path)
    is_same = old is not None and all(target.get(key, "") == old.get(key, "") for key in ("kind", "apiVersion"))
    return errors if is_same else errors + _target_version_errors(target, f"{path}.apiVersion")


def _target_version_errors(target: Object, path: str) -> list[FieldError]:
    """Errors of the target's apiVersion, which names a group for all kinds but ReplicationController."""
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
    """Errors of the metrics; minReplicas 0 needs one that has a value without pods."""
    metrics = spec.get("metrics") or []
    trusts_versions = _has_bad_object_version(old_spec.get("metrics") or [])
    errors = []
    for index, metric in enumerate(metrics):
        path = f"spec.metrics[{index}]"
        errors += _metric_errors(metric, path, trusts_object_versions=trusts_versions)
    if spec.get("minReplicas") == 0 and not any(metric.get("type") in _TYPES_FOR_ZERO_REPLICAS for metric in metrics):
        message = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", message))
    return errors


def _replica_bound_errors(spec: Object, old_spec: Object, *, is_update: bool) -> list[FieldError]:
    """The errors of minReplicas and maxReplicas below their minimum, unless an update does not change the value."""
    lowest, highest = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors = []
    if lowest is not None and lowest < 0 and not (is_update and lowest == old_spec.get("minReplicas")):
        errors.append(invalid("spec.minReplicas", lowest, checks.NOT_NEGATIVE))
    if is_update and highest == (old_spec.get("maxReplicas") or 0):
        return errors
    if highest == 0:
        errors.append(required("spec.maxReplicas"))
    elif highest < 0:
        errors.append(invalid("spec.maxReplicas", highest, "must be greater than or equal to 1"))
    return errors


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
    errors = []
    for direction in ("scaleUp", "scaleDown"):
        errors += checks.optional(behavior.get(direction), f"{path}.{direction}", _rules_errors)
    return errors


def _rules_errors(rules: Object, path: str) -> list[FieldError]:
    """Errors of the rules of one direction."""
    errors = _window_errors(rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds")
    select = rules.get("selectPolicy")
    errors += checks.optional_one_of(select, f"{path}.selectPolicy", _SELECT_POLICIES)
    policies = rules.get("policies") or []
    errors += checks.present(policies, f"{path}.policies", "must specify at least one Policy")
    errors += checks.each(policies, f"{path}.policies", _policy_errors)
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).sign() < 0:
        errors.append(invalid(f"{path}.tolerance", tolerance, checks.NOT_NEGATIVE))
    return errors


def _window_errors(window_s: int | None, path: str) -> list[FieldError]:
    if window_s is None or 0 <= window_s <= MAX_WINDOW_S:
        return []
    if window_s < 0:
        return [invalid(path, window_s, "must be greater than or equal to zero")]
    return [invalid(path, window_s, f"must be less than or equal to {MAX_WINDOW_S}")]


def _policy_errors(policy: Object, path: str) -> list[FieldError]:
    """Errors of a scaling policy."""
    kind, value, period_s = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    errors = checks.one_of(kind, f"{path}.type", _POLICY_TYPES)
    errors += checks.holds(value > 0, f"{path}.value", value, "must be greater than zero")
    errors += checks.holds(period_s > 0, f"{path}.periodSeconds", period_s, "must be greater than zero")
    if period_s > MAX_PERIOD_S:
        errors.append(invalid(f"{path}.periodSeconds", period_s, f"must be less than or equal to {MAX_PERIOD_S}"))
    return errors


def _metric_errors(metric: Object, path: str, *, trusts_object_versions: bool = False) -> list[FieldError]:
    """The field errors of the metric at `path`; `trusts_object_versions` skips the form of its object's apiVersion."""
    kind = metric.get("type", "")
    errors = checks.present(kind, f"{path}.type", "must specify a metric source type")
    errors += checks.one_of(kind, f"{path}.type", _METRIC_TYPES)
    set_sources = [source for source in _SOURCES if metric.get(source) is not None]
    if set_sources:
        errors += _source_errors(
            metric[set_sources[0]], set_sources[0], f"{path}.{set_sources[0]}", trusts_object_versions
        )
    return errors + _presence_errors(kind, set_sources, path)


def _has_bad_object_version(metrics: Sequence[Object]) -> bool:
    """Whether any Object metric names its object with an apiVersion of two slashes."""
    described = [(metric.get("object") or {}).get("describedObject") or {} for metric in metrics]
    return any(reference.get("apiVersion", "").count("/") > 1 for reference in described)


def _presence_errors(kind: str, set_sources: list[str], path: str) -> list[FieldError]:
    """The errors of the set of sources: only that of the type must be present."""
    expected = kind[0].lower() + kind[1:] if kind in _METRIC_TYPES else ""
    errors = []
    if expected and expected not in set_sources:
        errors.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(set_sources) != 1:
        other_sources = [source for source in set_sources if source != expected]
        errors += [
            forbidden(f"{path}.{other}", "must populate the given metric source only") for other in other_sources
        ]
    return errors


def _source_errors(source: Object, name: str, path: str, trusts_versions: bool) -> list[FieldError]:
    """Errors of a metric source by the name of its field."""
    if name == "object":
        return _object_errors(source, path, trusts_versions)
    if name == "external":
        return _external_errors(source, path)
    if name == "pods":
        return _pods_errors(source, path)
    return _resource_name_errors(source, path, name) + _resource_errors(source, path)


def _object_errors(source: Object, path: str, trusts_versions: bool) -> list[FieldError]:
    described = source.get("describedObject") or {}
    errors = references.name_errors(described, f"{path}.describedObject")
    if not trusts_versions:
        errors += references.version_errors(described.get("apiVersion", ""), f"{path}.describedObject.apiVersion")
    target = source.get("target") or {}
    errors += _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    if not _is_set(target, "value") and not _is_set(target, "averageValue"):
        errors.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    return errors


def _external_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    has_value, has_average = _is_set(target, "value"), _is_set(target, "averageValue")
    if not has_value and not has_average:
        message = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.target.averageValue", message))
    if has_value and has_average:
        message = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.target.value", message))
    return errors


def _pods_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    if not _is_set(target, "averageValue"):
        errors.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return errors


def _resource_name_errors(source: Object, path: str, name: str) -> list[FieldError]:
    resource = source.get("name", "")
    errors = checks.present(resource, f"{path}.name", "must specify a resource name")
    if name == "resource":
        return errors
    errors += checks.well_formed_if_set(resource, f"{path}.name", names.container_resource_name_errors)
    container = source.get("container", "")
    if not container:
        return [*errors, required(f"{path}.container", "must specify a container")]
    return errors + checks.well_formed(container, f"{path}.container", names.dns_label_errors)


def _resource_errors(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _metric_target_errors(target, f"{path}.target")
    has_share, has_average = _is_set(target, "averageUtilization"), _is_set(target, "averageValue")
    if not has_share and not has_average:
        message = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.target.averageUtilization", message))
    if has_share and has_average:
        message = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{path}.target.averageValue", message))
    return errors


def _metric_name_errors(source: Object, path: str) -> list[FieldError]:
    name = (source.get("metric") or {}).get("name", "")
    if not name:
        return [required(f"{path}.metric.name", "must specify a metric name")]
    return checks.well_formed(name, f"{path}.metric.name", names.path_segment_errors)


def _metric_target_errors(target: Object, path: str) -> list[FieldError]:
    kind = target.get("type", "")
    errors = checks.present(kind, f"{path}.type", "must specify a metric target type")
    if kind not in _TARGET_TYPES:
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        if _is_set(target, name) and Quantity.parse(target[name]).sign() <= 0:
            errors.append(invalid(f"{path}.{name}", target[name], "must be positive"))
    share_pct = target.get("averageUtilization")
    if share_pct is not None and share_pct < 1:
        errors.append(invalid(f"{path}.averageUtilization", share_pct, "must be greater than 0"))
    return errors


def _is_set(target: Object, name: str) -> bool:
    return target.get(name) is not None
