"""Another spec, other flags: assignments such as `minReplicas=3,metrics[0].target=60%` put on an autoscaler.

`podscaler explain --what-if` parses assignments with `parse`, applies them with `apply`, and decides again about the
same facts with the same history. What comes out satisfies the API's validation, as if it had been applied with kubectl.

Source: autoscaling/v2 (spec/api.md 1, 2); kube-controller-manager's flags.
"""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import msgspec

from podscaler.api import duration, numbers, quantity
from podscaler.api.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.api.kinds import hpa_defaults, hpa_validation
from podscaler.core import settings
from podscaler.core.settings import GATE_NAMES, Settings
from podscaler.errors import UsageError

Object = dict[str, Any]

SECOND_NS = 1_000_000_000
FLAG_PREFIX = "horizontal-pod-autoscaler-"
FLAGS = {
    "tolerance": "tolerance",
    "downscale-stabilization": "downscale_stabilization_ns",
    "cpu-initialization-period": "cpu_initialization_period_ns",
    "initial-readiness-delay": "initial_readiness_delay_ns",
}
"""Flags by their names without prefix, and the settings that they are."""

_PATHS = (
    "minReplicas",
    "maxReplicas",
    "metrics[0].target",
    "metrics[0].target.averageUtilization",
    "metrics[0].target.averageValue",
    "metrics[0].target.value",
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
    *FLAGS,
    *GATE_NAMES,
)
"""An example of everything that can be assigned."""


class Assignment(NamedTuple):
    """One assignment, as written: what, and its new value."""

    path: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}={self.value}"


def parse(text: str) -> tuple[Assignment, ...]:
    """The assignments of `a=1,b.c=2`. Raises UsageError for a text that has none, or a part that is none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise UsageError("what-if needs assignments such as minReplicas=3,metrics[0].target=60%")
    return tuple(_assignment(part) for part in parts)


def _assignment(part: str) -> Assignment:
    path, equals, value = (each.strip() for each in part.partition("="))
    if not equals or not path or not value:
        raise UsageError(f'what-if "{part}" is not an assignment such as minReplicas=3')
    return Assignment(path.removeprefix("spec."), value)


def apply(
    assignments: Sequence[Assignment], spec: HorizontalPodAutoscalerSpec, flags: Settings
) -> tuple[HorizontalPodAutoscalerSpec, Settings]:
    """The spec and the settings with all assignments, in order.

    Raises UsageError naming the assignment that cannot be used and what could, or what the API would refuse.
    """
    before, after = _as_json(spec), _as_json(spec)
    for assignment in assignments:
        flags = _flag(assignment, flags) or flags
        if not _is_flag(assignment):
            _assign(assignment, after)
    _validate(before, _complete(after), assignments)
    return msgspec.convert(after, HorizontalPodAutoscalerSpec), flags


def _as_json(spec: HorizontalPodAutoscalerSpec) -> Object:
    copy: Object = msgspec.json.decode(msgspec.json.encode(spec))
    return _complete(copy)


def _complete(spec: Object) -> Object:
    hpa_defaults.fill_v2({"spec": spec})
    return spec


def _validate(before: Object, after: Object, assignments: Sequence[Assignment]) -> None:
    """Raise UsageError for faults that were not there before."""
    known = {str(fault) for fault in hpa_validation.faults({"spec": before}, None)}
    faults = [text for fault in hpa_validation.faults({"spec": after}, None) if (text := str(fault)) not in known]
    if faults:
        shown = ",".join(str(each) for each in assignments)
        raise UsageError(f"what-if {shown} would be refused: {'; '.join(faults)}")


def _is_flag(assignment: Assignment) -> bool:
    return assignment.path.removeprefix(FLAG_PREFIX) in FLAGS or assignment.path in GATE_NAMES


def _flag(assignment: Assignment, flags: Settings) -> Settings | None:
    """The settings with a flag or a gate assigned; None where it is neither."""
    name, value = assignment.path.removeprefix(FLAG_PREFIX), assignment.value
    try:
        if name in FLAGS:
            text = _ratio(value) if name == "tolerance" else value
            parsed = settings.from_flags({f"{FLAG_PREFIX}{name}": text})
            return msgspec.structs.replace(flags, **{FLAGS[name]: getattr(parsed, FLAGS[name])})
        if name in GATE_NAMES:
            field = GATE_NAMES[name]
            parsed = settings.from_flags({"feature-gates": str(assignment)})
            gates = msgspec.structs.replace(flags.gates, **{field: getattr(parsed.gates, field)})
            return msgspec.structs.replace(flags, gates=gates)
    except ValueError as error:
        raise UsageError(f"what-if {assignment}: {error}") from None
    return None


def _assign(assignment: Assignment, spec: Object) -> None:
    for pattern, setter in _SETTERS:
        match = re.fullmatch(pattern, assignment.path)
        if match is not None:
            try:
                setter(spec, match, assignment.value)
            except ValueError as error:
                raise UsageError(f"what-if {assignment}: {error}") from None
            return
    raise UsageError(f"what-if {assignment}: {assignment.path} cannot be assigned; {_suggestion(assignment.path)}")


def _suggestion(path: str) -> str:
    close = get_close_matches(re.sub(r"\[\d+]", "[0]", path), _PATHS, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"what can be: {', '.join(each for each in _PATHS if 'scaleUp' not in each)}, and scaleUp as scaleDown"


def _set_count(spec: Object, match: re.Match[str], value: str) -> None:
    spec[match[0]] = _integer(value)


def _set_target(spec: Object, match: re.Match[str], value: str) -> None:
    """A target in the form that its text and the metric's type call for."""
    source_name, source = _source(spec, int(match[1]))
    has_requests = source_name in ("resource", "containerResource")
    if value.endswith("%"):
        if not has_requests:
            raise ValueError("a percentage is of requests, which only Resource and ContainerResource metrics have")
        source["target"] = {"type": "Utilization", "averageUtilization": _integer(value.removesuffix("%").rstrip())}
        return
    amount = _quantity(value)
    if has_requests or source_name == "pods" or "averageValue" in source["target"]:
        source["target"] = {"type": "AverageValue", "averageValue": amount}
    else:
        source["target"] = {"type": "Value", "value": amount}


def _set_target_field(spec: Object, match: re.Match[str], value: str) -> None:
    _, source = _source(spec, int(match[1]))
    if match[2] == "averageUtilization":
        source["target"] = {"type": "Utilization", "averageUtilization": _integer(value.removesuffix("%").rstrip())}
    elif match[2] == "averageValue":
        source["target"] = {"type": "AverageValue", "averageValue": _quantity(value)}
    else:
        source["target"] = {"type": "Value", "value": _quantity(value)}


def _source(spec: Object, index: int) -> tuple[str, Object]:
    """The part of a metric that its type names."""
    metrics = spec["metrics"]
    if index >= len(metrics):
        raise ValueError(f"the autoscaler has {len(metrics)} of them, the last is metrics[{len(metrics) - 1}]")
    metric = metrics[index]
    name = metric["type"][:1].lower() + metric["type"][1:]
    if name not in metric:
        raise ValueError(f"a metric of type {metric['type'] or 'nothing'} has no target")
    return name, metric[name]


def _drop_behavior(spec: Object, match: re.Match[str], value: str) -> None:
    del match
    if value != "none":
        raise ValueError("only none can be assigned to all of it; its fields are behavior.scaleDown.selectPolicy, ...")
    spec.pop("behavior", None)


def _rules(spec: Object, direction: str) -> Object:
    """The rules of a direction, with the API's defaults where there were none."""
    spec.setdefault("behavior", {})
    rules: Object = _complete(spec)["behavior"][direction]
    return rules


def _set_window(spec: Object, match: re.Match[str], value: str) -> None:
    rules = _rules(spec, match[1])
    rules["stabilizationWindowSeconds"] = _seconds(value)


def _set_select_policy(spec: Object, match: re.Match[str], value: str) -> None:
    _rules(spec, match[1])["selectPolicy"] = value


def _set_tolerance(spec: Object, match: re.Match[str], value: str) -> None:
    _rules(spec, match[1])["tolerance"] = _quantity(_ratio(value))


def _set_policy(spec: Object, match: re.Match[str], value: str) -> None:
    policies, index = _rules(spec, match[1])["policies"], int(match[2])
    if index > len(policies):
        raise ValueError(f"there are {len(policies)} policies; policies[{len(policies)}] would add one")
    if index == len(policies):
        policies.append({"type": "Pods", "value": 0, "periodSeconds": 0})
    if match[3] == "type":
        policies[index]["type"] = value
    elif match[3] == "value":
        policies[index]["value"] = _integer(value)
    else:
        policies[index]["periodSeconds"] = _seconds(value)


_RULES = r"behavior\.(scaleUp|scaleDown)"
_SETTERS: tuple[tuple[str, Callable[[Object, re.Match[str], str], None]], ...] = (
    (r"minReplicas|maxReplicas", _set_count),
    (r"metrics\[(\d+)]\.target", _set_target),
    (r"metrics\[(\d+)]\.target\.(averageUtilization|averageValue|value)", _set_target_field),
    (r"behavior", _drop_behavior),
    (rf"{_RULES}\.stabilizationWindowSeconds", _set_window),
    (rf"{_RULES}\.selectPolicy", _set_select_policy),
    (rf"{_RULES}\.tolerance", _set_tolerance),
    (rf"{_RULES}\.policies\[(\d+)]\.(type|value|periodSeconds)", _set_policy),
)


def _integer(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,10}", text) or not numbers.INT32_MIN <= int(text) <= numbers.INT32_MAX:
        raise ValueError(f'"{text}" is not a whole number')
    return int(text)


def _quantity(text: str) -> str:
    try:
        quantity.parse(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a quantity such as 500m, 2 or 64Mi') from None
    return text


def _seconds(text: str) -> int:
    """Whole seconds, written as a number or as a duration (`90`, `1m30s`)."""
    if re.fullmatch(r"-?[0-9]+", text):
        return _integer(text)
    span_ns = duration.parse(text)
    if span_ns % SECOND_NS:
        raise ValueError("only whole seconds can be set")
    return span_ns // SECOND_NS


def _ratio(text: str) -> str:
    """A ratio, also written as a percentage: `5%` is `0.05`."""
    if not text.endswith("%"):
        return text
    percent = text.removesuffix("%").rstrip()
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", percent):
        raise ValueError(f'"{text}" is not a percentage')
    whole, _, fraction = percent.partition(".")
    digits = whole.zfill(3)
    return f"{digits[:-2]}.{digits[-2:]}{fraction}"
