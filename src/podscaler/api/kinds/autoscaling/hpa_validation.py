"""What is wrong with a HorizontalPodAutoscaler (storage version v2), in upstream's order.

Called by the record. Metrics are in `hpa_metric_validation`, the rules of behaviors in `hpa_behavior_validation`.

Source: docs/spec/api.md 2 (Validation).
"""

from podscaler.api.kinds.autoscaling import hpa_behavior_validation, hpa_metric_validation
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks, references
from podscaler.api.resource.resources import Object

_WAKING_TYPES = ("Object", "External")


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with an autoscaler to be stored, its metadata aside."""
    spec, old_spec = new.get("spec") or {}, (old or {}).get("spec") or {}
    found = _limits(spec)
    found += _target_errors(spec.get("scaleTargetRef") or {}, old_spec.get("scaleTargetRef"))
    found += _metrics_errors(spec, old_spec)
    found += hpa_behavior_validation.validate(spec.get("behavior") or {}, "spec.behavior")
    return found + _generated(spec, old_spec, is_update=old is not None)


def _limits(spec: Object) -> list[FieldError]:
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
    trusts_versions = hpa_metric_validation.has_bad_object_version(old_spec.get("metrics") or [])
    found = []
    for index, metric in enumerate(metrics):
        path = f"spec.metrics[{index}]"
        found += hpa_metric_validation.validate(metric, path, trusts_object_versions=trusts_versions)
    if spec.get("minReplicas") == 0 and not any(metric.get("type") in _WAKING_TYPES for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(forbidden("spec.metrics", text))
    return found


def _generated(spec: Object, old_spec: Object, *, is_update: bool) -> list[FieldError]:
    """Three rules that upstream checks last, and not again while the value stays as it is."""
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
    """What is wrong with a status to be stored: numbers below zero."""
    status = new.get("status") or {}
    numbers = [
        (f"status.conditions[{index}].observedGeneration", condition.get("observedGeneration"))
        for index, condition in enumerate(status.get("conditions") or [])
    ]
    numbers += [(f"status.{name}", status.get(name)) for name in ("currentReplicas", "desiredReplicas")]
    return [invalid(path, value, checks.NOT_NEGATIVE) for path, value in numbers if (value or 0) < 0]
