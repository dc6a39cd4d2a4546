"""Makes the OpenAPI schema of the custom resource PodAutoscaler: spec and status of autoscaling/v2, with validation.

    root()      {"type": "object", "required": ["spec"], "properties": {"spec": {"properties": {"maxReplicas": ...}}}}

Called by `pod_autoscaler`. Types, required fields and list types come from `api.schema` (the facts about
HorizontalPodAutoscaler). The bounds and defaults that kube-apiserver has in Go code for that kind are keywords here
(`_FIELD_KEYWORDS`), and CEL rules where a keyword cannot express them. Only CEL of Kubernetes 1.28 and older is used. A
new field: add its bounds to `_FIELD_KEYWORDS`, and print the file in deploy/crd again (`podscaler crd`).

Source: docs/spec/api.md 1 (Types) and 2 (Validation).
Differs: `spec.onMetricFailure` is ours (docs/metric-failures.md). Names of metrics and resources must be present, and
are not checked further; there are at most 100 metrics and 20 policies, so that the cost of the rules is bounded.
"""

import copy
from collections.abc import Mapping
from typing import Any

from podscaler.api.kinds.autoscaling import hpa_defaults, hpa_validation
from podscaler.api.schema import descriptions, schema
from podscaler.api.schema.schema import Field

Json = dict[str, Any]

_V2 = "autoscaling/v2."
_SCALARS: Mapping[str, Json] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
}
_QUANTITY_SUFFIX = r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
_QUANTITY_SCHEMA: Json = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
# `pattern` applies to strings and `minimum` to integers, so that a quantity, which may be either, has both
_POSITIVE_PATTERN = rf"^\+?(0*[1-9][0-9]*(\.[0-9]*)?|0*\.0*[1-9][0-9]*){_QUANTITY_SUFFIX}"
"""Quantities above 0: `0.5`, `100m`."""
_NOT_NEGATIVE_PATTERN = rf"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+){_QUANTITY_SUFFIX}"
"""Quantities from 0 on: `0`, `100m`."""
_SOURCE_FIELDS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""Type of a metric -> its field with the source."""
_POLICIES_MAX = 20
_METRICS_MAX = 100


def _cel_rule(rule: str, message: str) -> Json:
    """One CEL rule, with the message where it is false."""
    return {"rule": rule, "message": message}


_FIELD_KEYWORDS: Mapping[str, Json] = {
    "HorizontalPodAutoscalerSpec.minReplicas": {"default": 1, "minimum": 0},
    "HorizontalPodAutoscalerSpec.maxReplicas": {"minimum": 1},
    "HorizontalPodAutoscalerSpec.metrics": {
        "default": [hpa_defaults.cpu_utilization_metric(hpa_defaults.DEFAULT_UTILIZATION_PCT)],
        "maxItems": _METRICS_MAX,
    },
    "CrossVersionObjectReference.kind": {"minLength": 1},
    "CrossVersionObjectReference.name": {"minLength": 1},
    "MetricSpec.type": {"enum": list(_SOURCE_FIELDS)},
    "MetricTarget.type": {"enum": ["Utilization", "Value", "AverageValue"]},
    "MetricTarget.value": {"pattern": _POSITIVE_PATTERN, "minimum": 1},
    "MetricTarget.averageValue": {"pattern": _POSITIVE_PATTERN, "minimum": 1},
    "MetricTarget.averageUtilization": {"minimum": 1},
    "MetricIdentifier.name": {"minLength": 1},
    "ResourceMetricSource.name": {"minLength": 1},
    "ContainerResourceMetricSource.name": {"minLength": 1},
    "ContainerResourceMetricSource.container": {"minLength": 1},
    "HPAScalingRules.stabilizationWindowSeconds": {"minimum": 0, "maximum": hpa_validation.WINDOW_MAX_S},
    "HPAScalingRules.selectPolicy": {"enum": ["Disabled", "Max", "Min"]},
    "HPAScalingRules.policies": {"minItems": 1, "maxItems": _POLICIES_MAX},
    "HPAScalingRules.tolerance": {"pattern": _NOT_NEGATIVE_PATTERN, "minimum": 0},
    "HPAScalingPolicy.type": {"enum": ["Percent", "Pods"]},
    "HPAScalingPolicy.value": {"minimum": 1},
    "HPAScalingPolicy.periodSeconds": {"minimum": 1, "maximum": hpa_validation.PERIOD_MAX_S},
    "HorizontalPodAutoscalerStatus.currentReplicas": {"minimum": 0},
    "HorizontalPodAutoscalerStatus.desiredReplicas": {"minimum": 0},
    "HorizontalPodAutoscalerStatus.currentMetrics": {"nullable": True},
    "HorizontalPodAutoscalerStatus.lastScaleTime": {"nullable": True},
    "HorizontalPodAutoscalerCondition.lastTransitionTime": {"nullable": True},
}
"""`Message.field` -> the keywords of its schema besides the type: bounds as in `hpa_validation`, and defaults."""

_ONE_OF_TWO_RULE = "has(self.{0}) != has(self.{1})"
"""The CEL rule that exactly one of two members is set."""
_MESSAGE_RULES: Mapping[str, list[Json]] = {
    "HorizontalPodAutoscalerSpec": [
        _cel_rule(
            "!has(self.minReplicas) || self.maxReplicas >= self.minReplicas",
            "maxReplicas must be greater than or equal to `minReplicas`",
        ),
        _cel_rule(
            "!has(self.minReplicas) || self.minReplicas != 0 || "
            "(has(self.metrics) && self.metrics.exists(m, m.type == 'Object' || m.type == 'External'))",
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ),
        _cel_rule(
            "self.scaleTargetRef.kind == 'ReplicationController' || "
            "(has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion.contains('/'))",
            "scaleTargetRef.apiVersion must specify API group",
        ),
    ],
    "MetricSpec": [
        *(
            _cel_rule(
                f"self.type != '{metric_type}' || has(self.{source_field})",
                "must populate information for the given metric source",
            )
            for metric_type, source_field in _SOURCE_FIELDS.items()
        ),
        _cel_rule(
            " + ".join(f"(has(self.{source_field}) ? 1 : 0)" for source_field in _SOURCE_FIELDS.values()) + " == 1",
            "must populate the given metric source only",
        ),
    ],
}
"""Message -> the CEL rules (x-kubernetes-validations) of its schema."""
_DURATION_SCHEMA: Json = {"type": "string", "maxLength": 32, "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
_ON_METRIC_FAILURE_SCHEMA: Json = {
    "type": "object",
    "description": "What happens when metrics cannot be read; without it, the same as for a HorizontalPodAutoscaler.",
    "properties": {
        "keepLastFor": {
            "description": "For how long a metric that cannot be read counts with its last value, such as 5m; at most "
            "24h.",
            **_DURATION_SCHEMA,
            "x-kubernetes-validations": [
                _cel_rule(
                    "duration(self) > duration('0s') && duration(self) <= duration('24h')",
                    "must be longer than 0s, and 24h at most",
                )
            ],
        },
        "ignoreFailed": {
            "type": "boolean",
            "description": "Whether the target may be scaled down by the other metrics while one cannot be read.",
        },
        "fallback": {
            "type": "object",
            "description": "The replicas of the target while no metric can be read, within minReplicas and maxReplicas "
            "and as fast as behavior allows.",
            "required": ["replicas"],
            "properties": {
                "replicas": {
                    "type": "integer",
                    "format": "int32",
                    "minimum": 0,
                    "description": "The number of replicas.",
                },
                "after": {
                    "description": "For how long no metric can be read before they apply, such as 10m; 24h at most.",
                    **_DURATION_SCHEMA,
                    "default": hpa_defaults.DEFAULT_FALLBACK_AFTER,
                    "x-kubernetes-validations": [_cel_rule("duration(self) <= duration('24h')", "must be 24h at most")],
                },
            },
        },
    },
}
_TARGET_RULES: Mapping[str, Json] = {
    "ResourceMetricSource": _cel_rule(
        _ONE_OF_TWO_RULE.format("averageUtilization", "averageValue"),
        "must set either a target raw value or a target utilization, and not both",
    ),
    "ContainerResourceMetricSource": _cel_rule(
        _ONE_OF_TWO_RULE.format("averageUtilization", "averageValue"),
        "must set either a target raw value or a target utilization, and not both",
    ),
    "PodsMetricSource": _cel_rule("has(self.averageValue)", "must specify a positive target averageValue"),
    "ObjectMetricSource": _cel_rule(
        "has(self.value) || has(self.averageValue)", "must set either a target value or averageValue"
    ),
    "ExternalMetricSource": _cel_rule(
        _ONE_OF_TWO_RULE.format("value", "averageValue"),
        "must set either a target value for metric or a per-pod target, and not both",
    ),
}
"""Message of a metric source -> the CEL rule of its `target`."""


def root() -> Json:
    """The schema of the whole object, as a new copy."""
    spec = _message_schema(f"{_V2}HorizontalPodAutoscalerSpec")
    spec["properties"]["onMetricFailure"] = _ON_METRIC_FAILURE_SCHEMA
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec,
        "status": _message_schema(f"{_V2}HorizontalPodAutoscalerStatus"),
    }
    description = (
        "The configuration of an autoscaler, with the spec and the status of an autoscaling/v2 "
        "HorizontalPodAutoscaler, and what happens when metrics fail."
    )
    return copy.deepcopy({"type": "object", "description": description, "required": ["spec"], "properties": properties})


def _message_schema(message: str) -> Json:
    """The schema of a message (`autoscaling/v2.MetricSpec`), with those of all messages in it."""
    name = message.rpartition(".")[2]
    message_type = schema.get_message(message)
    json_schema: Json = {"type": "object"}
    if description := descriptions.of_message(message):
        json_schema["description"] = description
    fields = list(message_type.json_fields())
    if required := [field.name for field in fields if field.required]:
        json_schema["required"] = required
    json_schema["properties"] = {field.name: _field_schema(message, name, field) for field in fields}
    if message_type.map_type:
        json_schema["x-kubernetes-map-type"] = message_type.map_type
    if rules := _MESSAGE_RULES.get(name):
        json_schema["x-kubernetes-validations"] = list(rules)
    return json_schema


def _field_schema(message: str, message_name: str, field: Field) -> Json:
    """The schema of a field of `message`, whose short name is `message_name`."""
    json_schema: Json = {}
    if description := descriptions.of_field(message, field.name):
        json_schema["description"] = description
    json_schema |= _value_schema(field)
    json_schema |= _FIELD_KEYWORDS.get(f"{message_name}.{field.name}", {})
    if field.name == "target" and message_name in _TARGET_RULES:
        json_schema["x-kubernetes-validations"] = [_TARGET_RULES[message_name]]
    if message_name == "HorizontalPodAutoscalerBehavior":  # its fields are the directions
        _add_defaults(json_schema, hpa_defaults.default_scaling_rules()[field.name])
    return json_schema


def _add_defaults(rules: Json, defaults: Json) -> None:
    """Adds the defaults of HPAScalingRules to its schema, in place: of the whole object, and of each field."""
    rules["default"] = defaults
    for name, default in defaults.items():
        rules["properties"][name]["default"] = default


def _value_schema(field: Field) -> Json:
    """The schema of a field: a list, a map or a single value."""
    if field.repeated:
        json_schema: Json = {"type": "array", "items": _element_schema(field)}
        if field.list_type:
            json_schema["x-kubernetes-list-type"] = field.list_type
        if field.list_map_keys:
            json_schema["x-kubernetes-list-map-keys"] = list(field.list_map_keys)
        return json_schema
    if field.map:
        return {"type": "object", "additionalProperties": _element_schema(field)}
    return _element_schema(field)


def _element_schema(field: Field) -> Json:
    """The schema of a single value of the field's type."""
    if field.is_scalar:
        return dict(_SCALARS[field.type])
    if field.type == schema.QUANTITY:
        return dict(_QUANTITY_SCHEMA)
    if field.type == schema.TIME:
        return {"type": "string", "format": "date-time"}
    return _message_schema(field.type)
