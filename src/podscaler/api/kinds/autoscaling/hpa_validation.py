"""Validates HorizontalPodAutoscaler (autoscaling/v2): replicas, scaled object, metrics, behavior, status.

Called by `hpa`, whose RESOURCE has it as hooks, and for autoscalers that no API server validates by `podscaler.lint`,
`podscaler.explain` and `podscaler.controller.informers.custom_autoscaler`. Errors come in kube-apiserver's order. A new
metric source: add it to `_METRIC_TYPES`, `_SOURCES` and `_source_errors`, to `hpa_table` and to
`pod_autoscaler_schema`, which has the bounds, too. Arguments of type `Object` are an autoscaler, or parts of one, as
JSON objects; their quantities were checked when they were decoded.

Source: docs/spec/api.md 2 (Validation).
"""

from collections.abc import Sequence

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks, references
from podscaler.api.resource.resources import Object

_TYPES_FOR_ZERO_REPLICAS = ("Object", "External")
WINDOW_MAX_S = 3600
PERIOD_MAX_S = 1800
"""Bounds of stabilization windows, and of the periods of policies."""

_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES = ("object", "external", "pods", "resource", "containerResource")
"""The fields of a metric with its source; of several the first in this order is checked, as upstream."""
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of the spec of an autoscaler to be stored."""
    spec, old_spec = new.get("spec") or {}, (old or {}).get("spec") or {}
    errors = _replica_order_errors(spec)
    errors += _scale_target_errors(spec.get("scaleTargetRef") or {}, old_spec.get("scaleTargetRef"))
    errors += _metrics_errors(spec, old_spec)
    errors += _behavior_errors(spec.get("behavior") or {}, "spec.behavior")
    return errors + _replica_bound_errors(spec, old_spec, is_update=old is not None)


def _replica_order_errors(spec: Object) -> list[FieldError]:
    """The error of maxReplicas below minReplicas."""
    min_replicas, max_replicas = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if min_replicas is None or max_replicas >= min_replicas:
        return []
    return [invalid("spec.maxReplicas", max_replicas, "must be greater than or equal to `minReplicas`")]


def _scale_target_errors(scale_target: Object, old_scale_target: Object | None) -> list[FieldError]:
    """Field errors of `scaleTargetRef`; `old_scale_target` is the stored one, whose apiVersion may stay."""
    path = "spec.scaleTargetRef"
    errors = references.kind_and_name_errors(scale_target, path)
    is_same_version = old_scale_target is not None and all(
        scale_target.get(key, "") == old_scale_target.get(key, "") for key in ("kind", "apiVersion")
    )
    return errors if is_same_version else errors + _scale_target_version_errors(scale_target, f"{path}.apiVersion")


def _scale_target_version_errors(scale_target: Object, path: str) -> list[FieldError]:
    """Errors of the scale target's apiVersion, which names a group for all kinds but ReplicationController."""
    version = scale_target.get("apiVersion", "")
    if form_errors := references.api_version_errors(version, path):
        return form_errors
    if scale_target.get("kind") == "ReplicationController" or not _has_no_group(version):
        return []
    return [invalid(path, version, "apiVersion must specify API group")]


def _has_no_group(version: str) -> bool:
    """Whether an apiVersion names no API group: `v1`, or `/v1`."""
    group, slash, _ = version.partition("/")
    return not slash or not group


def _metrics_errors(spec: Object, old_spec: Object) -> list[FieldError]:
    """Field errors of the metrics; minReplicas 0 needs an Object or External metric, which has a value without pods.

    The apiVersions of objects are not checked if the stored spec has an invalid one: it is older than the check.
    """
    metrics = spec.get("metrics") or []
    trusts_object_versions = _has_invalid_object_version(old_spec.get("metrics") or [])
    errors = []
    for index, metric in enumerate(metrics):
        path = f"spec.metrics[{index}]"
        errors += _metric_errors(metric, path, trusts_object_versions=trusts_object_versions)
    if spec.get("minReplicas") == 0 and not any(metric.get("type") in _TYPES_FOR_ZERO_REPLICAS for metric in metrics):
        message = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", message))
    return errors


def _replica_bound_errors(spec: Object, old_spec: Object, *, is_update: bool) -> list[FieldError]:
    """The errors of minReplicas and maxReplicas below their minimum, unless an update does not change the value."""
    min_replicas, max_replicas = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors = []
    is_min_unchanged = is_update and min_replicas == old_spec.get("minReplicas")
    if min_replicas is not None and min_replicas < 0 and not is_min_unchanged:
        errors.append(invalid("spec.minReplicas", min_replicas, checks.NOT_NEGATIVE))
    if is_update and max_replicas == (old_spec.get("maxReplicas") or 0):
        return errors
    if max_replicas == 0:
        errors.append(required("spec.maxReplicas"))
    elif max_replicas < 0:
        errors.append(invalid("spec.maxReplicas", max_replicas, "must be greater than or equal to 1"))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a status to be stored: numbers below zero."""
    status = new.get("status") or {}
    numbers_by_path = {
        f"status.conditions[{index}].observedGeneration": condition.get("observedGeneration")
        for index, condition in enumerate(status.get("conditions") or [])
    }
    numbers_by_path |= {f"status.{name}": status.get(name) for name in ("currentReplicas", "desiredReplicas")}
    return [error for path, number in numbers_by_path.items() for error in checks.not_negative(number, path)]


def _behavior_errors(behavior: Object, path: str) -> list[FieldError]:
    """Field errors of `behavior`, for both directions."""
    errors = []
    for direction in ("scaleUp", "scaleDown"):
        errors += checks.optional(behavior.get(direction), f"{path}.{direction}", _scaling_rules_errors)
    return errors


def _scaling_rules_errors(rules: Object, path: str) -> list[FieldError]:
    """Field errors of the scaling rules of one direction (`scaleUp` or `scaleDown`)."""
    errors = _window_errors(rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds")
    select_policy = rules.get("selectPolicy")
    errors += checks.optional_one_of(select_policy, f"{path}.selectPolicy", _SELECT_POLICIES)
    policies = rules.get("policies") or []
    errors += checks.present(policies, f"{path}.policies", "must specify at least one Policy")
    errors += checks.each(policies, f"{path}.policies", _policy_errors)
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).sign() < 0:
        errors.append(invalid(f"{path}.tolerance", tolerance, checks.NOT_NEGATIVE))
    return errors


def _window_errors(window_s: int | None, path: str) -> list[FieldError]:
    """Field errors of a stabilization window; None is valid."""
    if window_s is None or 0 <= window_s <= WINDOW_MAX_S:
        return []
    if window_s < 0:
        return [invalid(path, window_s, "must be greater than or equal to zero")]
    return [invalid(path, window_s, f"must be less than or equal to {WINDOW_MAX_S}")]


def _policy_errors(policy: Object, path: str) -> list[FieldError]:
    """Errors of a scaling policy: its type, a value above zero, a period from 1 to PERIOD_MAX_S seconds."""
    policy_type, policy_value, period_s = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    errors = checks.one_of(policy_type, f"{path}.type", _POLICY_TYPES)
    errors += checks.holds(policy_value > 0, f"{path}.value", policy_value, "must be greater than zero")
    errors += checks.holds(period_s > 0, f"{path}.periodSeconds", period_s, "must be greater than zero")
    if period_s > PERIOD_MAX_S:
        errors.append(invalid(f"{path}.periodSeconds", period_s, f"must be less than or equal to {PERIOD_MAX_S}"))
    return errors


def _metric_errors(metric: Object, path: str, *, trusts_object_versions: bool = False) -> list[FieldError]:
    """The field errors of one metric of the spec.

    Args:
        trusts_object_versions: whether the apiVersion of the object of an Object metric is not checked.
    """
    metric_type = metric.get("type", "")
    errors = checks.present(metric_type, f"{path}.type", "must specify a metric source type")
    errors += checks.one_of(metric_type, f"{path}.type", _METRIC_TYPES)
    set_sources = [source for source in _SOURCES if metric.get(source) is not None]
    if set_sources:
        checked_source = set_sources[0]
        errors += _source_errors(
            metric[checked_source], checked_source, f"{path}.{checked_source}", trusts_object_versions
        )
    return errors + _set_source_errors(metric_type, set_sources, path)


def _has_invalid_object_version(metrics: Sequence[Object]) -> bool:
    """Whether any Object metric names its object with an apiVersion of two slashes."""
    described_objects = [(metric.get("object") or {}).get("describedObject") or {} for metric in metrics]
    return any(reference.get("apiVersion", "").count("/") > 1 for reference in described_objects)


def _set_source_errors(metric_type: str, set_sources: list[str], path: str) -> list[FieldError]:
    """Field errors of a metric that lacks the source of its type, or has other sources (`set_sources`)."""
    expected_source = metric_type[0].lower() + metric_type[1:] if metric_type in _METRIC_TYPES else ""
    errors = []
    if expected_source and expected_source not in set_sources:
        errors.append(required(f"{path}.{expected_source}", "must populate information for the given metric source"))
    if len(set_sources) != 1:  # a single wrong source is reported only as the missing one above, as upstream
        other_sources = [source for source in set_sources if source != expected_source]
        errors += [
            forbidden(f"{path}.{other_source}", "must populate the given metric source only")
            for other_source in other_sources
        ]
    return errors


def _source_errors(source: Object, source_field: str, path: str, trusts_object_versions: bool) -> list[FieldError]:
    """Field errors of a metric source; `source_field` is one of _SOURCES."""
    if source_field == "object":
        return _object_errors(source, path, trusts_object_versions)
    if source_field == "external":
        return _external_errors(source, path)
    if source_field == "pods":
        return _pods_errors(source, path)
    return _resource_name_errors(source, path, source_field) + _resource_errors(source, path)


def _object_errors(source: Object, path: str, trusts_object_versions: bool) -> list[FieldError]:
    """Field errors of an Object source: the described object, the metric and its target."""
    described_object = source.get("describedObject") or {}
    errors = references.kind_and_name_errors(described_object, f"{path}.describedObject")
    if not trusts_object_versions:
        errors += references.api_version_errors(
            described_object.get("apiVersion", ""), f"{path}.describedObject.apiVersion"
        )
    target = source.get("target") or {}
    errors += _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    if not _is_set(target, "value") and not _is_set(target, "averageValue"):
        errors.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    return errors


def _external_errors(source: Object, path: str) -> list[FieldError]:
    """Field errors of an External source: the metric, and exactly one of value and averageValue."""
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
    """Field errors of a Pods source: the metric and its averageValue."""
    target = source.get("target") or {}
    errors = _metric_name_errors(source, path) + _metric_target_errors(target, f"{path}.target")
    if not _is_set(target, "averageValue"):
        errors.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return errors


def _resource_name_errors(source: Object, path: str, source_field: str) -> list[FieldError]:
    """Field errors of the resource, and of the container of a ContainerResource metric."""
    resource = source.get("name", "")
    errors = checks.present(resource, f"{path}.name", "must specify a resource name")
    if source_field == "resource":
        return errors
    errors += checks.well_formed_if_set(resource, f"{path}.name", names.container_resource_name_errors)
    container = source.get("container", "")
    if not container:
        return [*errors, required(f"{path}.container", "must specify a container")]
    return errors + checks.well_formed(container, f"{path}.container", names.dns_label_errors)


def _resource_errors(source: Object, path: str) -> list[FieldError]:
    """Field errors of the target of a Resource source: exactly one of averageUtilization and averageValue."""
    target = source.get("target") or {}
    errors = _metric_target_errors(target, f"{path}.target")
    has_utilization, has_average = _is_set(target, "averageUtilization"), _is_set(target, "averageValue")
    if not has_utilization and not has_average:
        message = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.target.averageUtilization", message))
    if has_utilization and has_average:
        message = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{path}.target.averageValue", message))
    return errors


def _metric_name_errors(source: Object, path: str) -> list[FieldError]:
    """Field errors of the name of the metric of a source."""
    name = (source.get("metric") or {}).get("name", "")
    if not name:
        return [required(f"{path}.metric.name", "must specify a metric name")]
    return checks.well_formed(name, f"{path}.metric.name", names.path_segment_errors)


def _metric_target_errors(target: Object, path: str) -> list[FieldError]:
    """Field errors of a `target`: its type, and amounts that are not positive."""
    target_type = target.get("type", "")
    errors = checks.present(target_type, f"{path}.type", "must specify a metric target type")
    if target_type not in _TARGET_TYPES:
        errors.append(invalid(f"{path}.type", target_type, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if _is_set(target, field) and Quantity.parse(target[field]).sign() <= 0:
            errors.append(invalid(f"{path}.{field}", target[field], "must be positive"))
    utilization_pct = target.get("averageUtilization")
    if utilization_pct is not None and utilization_pct < 1:
        errors.append(invalid(f"{path}.averageUtilization", utilization_pct, "must be greater than 0"))
    return errors


def _is_set(target: Object, field: str) -> bool:
    return target.get(field) is not None
