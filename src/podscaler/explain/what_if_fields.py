"""Sets fields of an autoscaler's spec by path and text, for what-if: `metrics[0].target`, `60%`.

Called by `podscaler.explain.what_if`, which rejects a changed spec with an error that it did not have before. Specs are
JSON-ready data with metrics, changed in place; after an error they may be changed in part. A new field: a pattern with
its setter in `_SETTERS`, and an example in PATHS.

Source: autoscaling/v2 (docs/spec/api.md 1 (Types)).
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from podscaler.api.kinds.autoscaling import hpa_defaults
from podscaler.api.machinery import duration, numbers, quantity
from podscaler.api.typed.autoscaling import OnMetricFailureSpec
from podscaler.core.model import failure_policy
from podscaler.core.model.settings import SECOND_NS

Object = dict[str, Any]

PATHS = (
    "minReplicas",
    "maxReplicas",
    "metrics[0].target",
    "metrics[0].target.averageUtilization",
    "metrics[0].target.averageValue",
    "metrics[0].target.value",
    "onMetricFailure",
    "onMetricFailure.keepLastFor",
    "onMetricFailure.ignoreFailed",
    "onMetricFailure.fallback.replicas",
    "onMetricFailure.fallback.after",
    "behavior",
    *(
        f"behavior.{direction}.{field}"
        for direction in ("scaleUp", "scaleDown")
        for field in (
            "stabilizationWindowSeconds",
            "selectPolicy",
            "tolerance",
            "policies[0].type",
            "policies[0].value",
            "policies[0].periodSeconds",
        )
    ),
)
"""An example of each field that can be assigned."""


def assign(spec: Object, path: str, value: str) -> bool:
    """Set the field at `path`; returns False if there is no such field.

    Raises ValueError for a text that cannot be a value of the field; other invalid values are left to validation.
    """
    for pattern, setter in _SETTERS:
        match = re.fullmatch(pattern, path)
        if match is not None:
            setter(spec, match, value)
            return True
    return False


def set_defaults(spec: Object) -> Object:
    """Set the API's defaults in the spec, in place; returns it."""
    hpa_defaults.set_v2_defaults({"spec": spec})
    return spec


def ratio_text(text: str) -> str:
    """A ratio, also written as a percentage: `5%` is `0.05`. Raises ValueError if the text before % is no number."""
    if not text.endswith("%"):
        return text
    percent = text.removesuffix("%").rstrip()
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", percent):
        raise ValueError(f'"{text}" is not a percentage')
    whole, _, fraction = percent.partition(".")
    digits = whole.zfill(3)  # so that two follow the decimal point: 005 is 0.05
    return f"{digits[:-2]}.{digits[-2:]}{fraction}"


def _set_count(spec: Object, match: re.Match[str], value: str) -> None:
    spec[match[0]] = _parse_int32(value)


def _set_target(spec: Object, match: re.Match[str], value: str) -> None:
    """Set a target of the type that fits its text and the metric."""
    source_name, source = _find_source(spec, int(match[1]))
    has_requests = source_name in ("resource", "containerResource")
    if value.endswith("%"):
        if not has_requests:
            raise ValueError("a percentage is of requests, which only Resource and ContainerResource metrics have")
        source["target"] = {"type": "Utilization", "averageUtilization": _parse_int32(value.removesuffix("%").rstrip())}
        return
    amount = _checked_quantity(value)
    if has_requests or source_name == "pods" or "averageValue" in source["target"]:
        source["target"] = {"type": "AverageValue", "averageValue": amount}
    else:
        source["target"] = {"type": "Value", "value": amount}


def _set_target_field(spec: Object, match: re.Match[str], value: str) -> None:
    """Set the target of a metric in one of its three forms, which replaces the others."""
    _, source = _find_source(spec, int(match[1]))
    if match[2] == "averageUtilization":
        source["target"] = {"type": "Utilization", "averageUtilization": _parse_int32(value.removesuffix("%").rstrip())}
    elif match[2] == "averageValue":
        source["target"] = {"type": "AverageValue", "averageValue": _checked_quantity(value)}
    else:
        source["target"] = {"type": "Value", "value": _checked_quantity(value)}


def _find_source(spec: Object, index: int) -> tuple[str, Object]:
    """The name and the source of the metric with that index. Raises ValueError if there is none."""
    metrics = spec["metrics"]
    if index >= len(metrics):
        raise ValueError(f"the autoscaler has {len(metrics)} of them, the last is metrics[{len(metrics) - 1}]")
    metric = metrics[index]
    name = metric["type"][:1].lower() + metric["type"][1:]
    if name not in metric:
        raise ValueError(f"a metric of type {metric['type'] or 'nothing'} has no target")
    return name, metric[name]


def _remove_field(spec: Object, match: re.Match[str], value: str) -> None:
    """Remove a field of the spec that has fields of its own; the only value is `none`."""
    if value != "none":
        example = "onMetricFailure.keepLastFor" if match[0] == "onMetricFailure" else "behavior.scaleDown.selectPolicy"
        raise ValueError(f"only none can be assigned to all of it; its fields are {example}, ...")
    spec.pop(match[0], None)


def _set_failure_policy(spec: Object, match: re.Match[str], value: str) -> None:
    """Set one field of the failure policy; in a what-if, HorizontalPodAutoscalers may have it as a field, too."""
    policy = spec.setdefault("onMetricFailure", {})
    if match[1] == "ignoreFailed":
        if value not in ("true", "false"):
            raise ValueError(f'"{value}" is neither true nor false')
        policy["ignoreFailed"] = value == "true"
    elif match[1] == "keepLastFor":
        policy["keepLastFor"] = value
    elif match[1] == "fallback.replicas":
        policy.setdefault("fallback", {})["replicas"] = _parse_int32(value)
    elif "fallback" not in policy:
        raise ValueError("set onMetricFailure.fallback.replicas first")
    else:
        policy["fallback"]["after"] = value
    if fault := failure_policy.parse(msgspec.convert(policy, OnMetricFailureSpec), annotations={}, metrics=()).fault:
        raise ValueError(fault)


def _scaling_rules(spec: Object, direction: str) -> Object:
    """The scaling rules of a direction, after the API's defaults are set in the spec."""
    spec.setdefault("behavior", {})
    rules: Object = set_defaults(spec)["behavior"][direction]
    return rules


def _set_window(spec: Object, match: re.Match[str], value: str) -> None:
    rules = _scaling_rules(spec, match[1])
    rules["stabilizationWindowSeconds"] = _parse_seconds(value)


def _set_select_policy(spec: Object, match: re.Match[str], value: str) -> None:
    _scaling_rules(spec, match[1])["selectPolicy"] = value


def _set_tolerance(spec: Object, match: re.Match[str], value: str) -> None:
    _scaling_rules(spec, match[1])["tolerance"] = _checked_quantity(ratio_text(value))


def _set_policy(spec: Object, match: re.Match[str], value: str) -> None:
    """Set a field of a policy; the index after the last one adds a policy."""
    policies, index = _scaling_rules(spec, match[1])["policies"], int(match[2])
    if index > len(policies):
        raise ValueError(f"there are {len(policies)} policies; policies[{len(policies)}] would add one")
    if index == len(policies):
        policies.append({"type": "Pods", "value": 0, "periodSeconds": 0})
    if match[3] == "type":
        policies[index]["type"] = value
    elif match[3] == "value":
        policies[index]["value"] = _parse_int32(value)
    else:
        policies[index]["periodSeconds"] = _parse_seconds(value)


_RULES = r"behavior\.(scaleUp|scaleDown)"
_SETTERS: tuple[tuple[str, Callable[[Object, re.Match[str], str], None]], ...] = (
    (r"minReplicas|maxReplicas", _set_count),
    (r"metrics\[(\d+)]\.target", _set_target),
    (r"metrics\[(\d+)]\.target\.(averageUtilization|averageValue|value)", _set_target_field),
    (r"onMetricFailure|behavior", _remove_field),
    (r"onMetricFailure\.(keepLastFor|ignoreFailed|fallback\.replicas|fallback\.after)", _set_failure_policy),
    (rf"{_RULES}\.stabilizationWindowSeconds", _set_window),
    (rf"{_RULES}\.selectPolicy", _set_select_policy),
    (rf"{_RULES}\.tolerance", _set_tolerance),
    (rf"{_RULES}\.policies\[(\d+)]\.(type|value|periodSeconds)", _set_policy),
)


def _parse_int32(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,10}", text) or not numbers.INT32_MIN <= int(text) <= numbers.INT32_MAX:
        raise ValueError(f'"{text}" is not a whole number')
    return int(text)


def _checked_quantity(text: str) -> str:
    try:
        quantity.parse(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a quantity such as 500m, 2 or 64Mi') from None
    return text


def _parse_seconds(text: str) -> int:
    """Whole seconds, written as a number or as a duration (`90`, `1m30s`)."""
    if re.fullmatch(r"-?[0-9]+", text):
        return _parse_int32(text)
    span_ns = duration.parse(text)
    if span_ns % SECOND_NS:
        raise ValueError("only whole seconds can be set")
    return span_ns // SECOND_NS
