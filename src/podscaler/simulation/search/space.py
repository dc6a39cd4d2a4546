"""Defines the specs that a search may try: which fields it changes, and between which values.

Called by `search` with Optuna's trials. Every suggestion is a spec that the API accepts. A new dimension: an entry of
DIMENSIONS, the present values of its suggestions in `SearchSpace.present_values`, and the fields that it changes in
`recommendation.GROUPS`.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from podscaler.api.machinery import quantity
from podscaler.api.typed.autoscaling import (
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from podscaler.base.errors import UsageError

WireSpec: TypeAlias = HorizontalPodAutoscalerSpec
"""The spec of an autoscaler in the API's form, autoscaling/v2."""


class ScalingRate(NamedTuple):
    """Policies of one direction, and which of them decides: `Max`, the one that allows most, or `Min`."""

    policies: tuple[HPAScalingPolicy, ...]
    select_policy: str = "Max"


POLICIES: Mapping[str, ScalingRate] = {
    "4 pods or 100 % in 15 s": ScalingRate((HPAScalingPolicy("Pods", 4, 15), HPAScalingPolicy("Percent", 100, 15))),
    "100 % in 15 s": ScalingRate((HPAScalingPolicy("Percent", 100, 15),)),
    "900 % in 15 s": ScalingRate((HPAScalingPolicy("Percent", 900, 15),)),
    "50 % in 60 s": ScalingRate((HPAScalingPolicy("Percent", 50, 60),)),
    "20 % in 60 s": ScalingRate((HPAScalingPolicy("Percent", 20, 60),)),
    "10 % in 60 s": ScalingRate((HPAScalingPolicy("Percent", 10, 60),)),
    "5 % in 60 s": ScalingRate((HPAScalingPolicy("Percent", 5, 60),)),
    "1 pod in 15 s": ScalingRate((HPAScalingPolicy("Pods", 1, 15),)),
    "2 pods in 60 s": ScalingRate((HPAScalingPolicy("Pods", 2, 60),)),
    "1 pod in 60 s": ScalingRate((HPAScalingPolicy("Pods", 1, 60),)),
    "1 pod in 300 s": ScalingRate((HPAScalingPolicy("Pods", 1, 300),)),
    "2 pods and 10 % in 60 s": ScalingRate(
        (HPAScalingPolicy("Pods", 2, 60), HPAScalingPolicy("Percent", 10, 60)), "Min"
    ),
}
"""The rates that a search tries, in words and as policies; the first two are the API's defaults for up and down."""

_LEAST_UTILIZATION_PCT, _MOST_UTILIZATION_PCT = 20, 95
_DEFAULT_TOLERANCE_PCT, _MOST_TOLERANCE_PCT = 10, 20
_WINDOW_STEP_S = 15
_LONGEST_UP_WINDOW_S, _LONGEST_DOWN_WINDOW_S = 300, 900
_DEFAULT_DOWN_WINDOW_S = 300

UNCHANGED = "unchanged"
"""The choice of the present policies."""

DEFAULT_METRIC = MetricSpec(
    type="Resource",
    resource=ResourceMetricSource(name="cpu", target=MetricTarget(type="Utilization", average_utilization=80)),
)
"""What the API sets where a spec states no metric."""


class Suggester(Protocol):
    """Chooses values by the name of the suggestion; Optuna's Trial is one."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """A whole number between both bounds."""
        ...

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices."""
        ...


class ReplicaBounds(NamedTuple):
    """The least and the most replicas that a search may state."""

    least: int
    most: int


class SearchSpace:
    """The candidates around one spec.

    Args:
        present_spec: the spec that is improved; what no dimension changes stays.
        dimensions: names of DIMENSIONS.
        bounds: for the dimensions `min` and `max`.

    Raises UsageError for a name that is no dimension, and for one that the spec does not have (`metric` needs two).
    """

    def __init__(self, present_spec: WireSpec, dimensions: Sequence[str], bounds: ReplicaBounds) -> None:
        for name in dimensions:
            if name not in DIMENSIONS:
                close_names = get_close_matches(name, DIMENSIONS, n=1)
                hint = f"; did you mean {close_names[0]}?" if close_names else ""
                raise UsageError(f"{name} cannot be tuned{hint} (there are {', '.join(DIMENSIONS)})")
        self.present = present_spec
        self.dimensions = tuple([name for name in DIMENSIONS if name in dimensions])
        self.bounds = bounds
        self.metrics = present_spec.metrics or (DEFAULT_METRIC,)
        if "metric" in dimensions and len(self.metrics) < 2:
            raise UsageError("the dimension metric needs an autoscaler with two metrics or more")

    def suggest(self, suggester: Suggester) -> WireSpec:
        """One candidate: the present spec with the values that the suggester chooses for each dimension."""
        spec = self.present
        for name in self.dimensions:
            spec = DIMENSIONS[name](self, suggester, spec)
        return spec

    def present_values(self) -> Mapping[str, int | str]:
        """The values that give the present spec, by name of the suggestion, as near as the dimensions have them."""
        spec = self.present
        behavior = spec.behavior or HorizontalPodAutoscalerBehavior()
        up_rules, down_rules = behavior.scale_up or HPAScalingRules(), behavior.scale_down or HPAScalingRules()
        target_values: dict[str, int | str] = {}
        for index, metric in enumerate(self.metrics):
            utilization = _target(metric).average_utilization
            name = f"target{index}"
            if utilization is None:
                target_values[f"{name}-pct"] = 100
            else:
                target_values[name] = min(max(utilization, _LEAST_UTILIZATION_PCT), _MOST_UTILIZATION_PCT)
        return target_values | {
            "min": max(spec.min_replicas or 1, self.bounds.least),
            "max": spec.max_replicas,
            "metric": "all",
            "up-window": _round_to_grid(up_rules.stabilization_window_seconds or 0, _LONGEST_UP_WINDOW_S),
            "down-window": _round_to_grid(
                _or_default(down_rules.stabilization_window_seconds, _DEFAULT_DOWN_WINDOW_S), _LONGEST_DOWN_WINDOW_S
            ),
            "up-policies": UNCHANGED,
            "down-policies": UNCHANGED,
            "tolerance-up": _tolerance_pct(up_rules),
            "tolerance-down": _tolerance_pct(down_rules),
        }


def _or_default(number: int | None, default: int) -> int:
    """The number; the default for None, but not for 0."""
    return default if number is None else number


def _round_to_grid(window_s: int, longest_s: int) -> int:
    """The nearest window that `_window_dimension` suggests."""
    return min(round(window_s / _WINDOW_STEP_S) * _WINDOW_STEP_S, longest_s)


def _tolerance_pct(rules: HPAScalingRules) -> int:
    """The tolerance of a direction in percent, at most what is suggested; the API's default without one."""
    if rules.tolerance is None:
        return _DEFAULT_TOLERANCE_PCT
    return min(quantity.parse(rules.tolerance).milli_value() // 10, _MOST_TOLERANCE_PCT)


def _source_field(metric: MetricSpec) -> str:
    """The name of the field of a metric that has its source; the API allows exactly one."""
    fields = ("resource", "container_resource", "pods", "object", "external")
    return next(name for name in fields if getattr(metric, name))


def _target(metric: MetricSpec) -> MetricTarget:
    target: MetricTarget = getattr(metric, _source_field(metric)).target
    return target


_Dimension = Callable[[SearchSpace, Suggester, WireSpec], WireSpec]
"""Returns the spec with the fields that the dimension suggests, given the spec of the dimensions before it.

The names of suggestions are the keys of `SearchSpace.present_values`.
"""


def _suggest_min_replicas(space: SearchSpace, suggester: Suggester, spec: WireSpec) -> WireSpec:
    min_replicas = suggester.suggest_int("min", space.bounds.least, min(spec.max_replicas, space.bounds.most))
    return msgspec.structs.replace(spec, min_replicas=min_replicas)


def _suggest_max_replicas(space: SearchSpace, suggester: Suggester, spec: WireSpec) -> WireSpec:
    max_replicas = suggester.suggest_int("max", max(spec.min_replicas or 1, space.bounds.least, 1), space.bounds.most)
    return msgspec.structs.replace(spec, max_replicas=max_replicas)


def _suggest_targets(space: SearchSpace, suggester: Suggester, spec: WireSpec) -> WireSpec:
    """A target for each metric, named `target0`, `target1` and so on."""
    metrics = tuple(
        [_suggest_target(metric, f"target{index}", suggester) for index, metric in enumerate(space.metrics)]
    )
    return msgspec.structs.replace(spec, metrics=metrics)


def _suggest_target(metric: MetricSpec, name: str, suggester: Suggester) -> MetricSpec:
    """The metric with another target: a utilization within its bounds, or half to double of another value."""
    field, target = _source_field(metric), _target(metric)
    source = getattr(metric, field)
    if target.average_utilization is not None:
        utilization = suggester.suggest_int(name, _LEAST_UTILIZATION_PCT, _MOST_UTILIZATION_PCT)
        new_target = msgspec.structs.replace(target, average_utilization=utilization)
    else:
        percent = suggester.suggest_int(f"{name}-pct", 50, 200, step=5)
        new_target = msgspec.structs.replace(
            target,
            value=_scale_quantity(target.value, percent),
            average_value=_scale_quantity(target.average_value, percent),
        )
    return msgspec.structs.replace(metric, **{field: msgspec.structs.replace(source, target=new_target)})


def _scale_quantity(quantity_text: str | None, percent: int) -> str | None:
    """That percentage of a quantity, at least 1m; None for None."""
    if quantity_text is None:
        return None
    return f"{max(quantity.parse(quantity_text).milli_value() * percent // 100, 1)}m"


def _suggest_metric(space: SearchSpace, suggester: Suggester, spec: WireSpec) -> WireSpec:
    """All metrics, or one of them."""
    choice = suggester.suggest_categorical("metric", ["all", *(str(index) for index in range(len(space.metrics)))])
    metrics = spec.metrics or space.metrics
    return spec if choice == "all" else msgspec.structs.replace(spec, metrics=(metrics[int(choice)],))


def _with_rules(spec: WireSpec, direction: str, **changes: object) -> WireSpec:
    """The spec with other fields of `behavior.scale_up` or `behavior.scale_down` (`direction`)."""
    behavior = spec.behavior or HorizontalPodAutoscalerBehavior()
    rules = getattr(behavior, direction) or HPAScalingRules()
    new_rules = msgspec.structs.replace(rules, **changes)
    return msgspec.structs.replace(spec, behavior=msgspec.structs.replace(behavior, **{direction: new_rules}))


def _window_dimension(direction: str, name: str, longest_s: int) -> _Dimension:
    """Suggests the stabilization window of a direction, in seconds."""

    def suggest(space: SearchSpace, suggester: Suggester, spec: WireSpec) -> WireSpec:
        del space
        window_s = suggester.suggest_int(name, 0, longest_s, step=_WINDOW_STEP_S)
        return _with_rules(spec, direction, stabilization_window_seconds=window_s)

    return suggest


def _rates_dimension(direction: str, name: str) -> _Dimension:
    """Suggests the policies of a direction: one of POLICIES, or the present ones."""

    def suggest(space: SearchSpace, suggester: Suggester, spec: WireSpec) -> WireSpec:
        del space
        rate_name = suggester.suggest_categorical(name, [UNCHANGED, *POLICIES])
        if rate_name == UNCHANGED:
            return spec
        rate = POLICIES[rate_name]
        return _with_rules(spec, direction, policies=rate.policies, select_policy=rate.select_policy)

    return suggest


def _suggest_tolerances(space: SearchSpace, suggester: Suggester, spec: WireSpec) -> WireSpec:
    """The tolerances of both directions, in whole percent."""
    del space
    up_pct, down_pct = (
        suggester.suggest_int(f"tolerance-{direction}", 0, _MOST_TOLERANCE_PCT) for direction in ("up", "down")
    )
    return _with_rules(
        _with_rules(spec, "scale_up", tolerance=f"{up_pct / 100:g}"), "scale_down", tolerance=f"{down_pct / 100:g}"
    )


DIMENSIONS: Mapping[str, _Dimension] = {
    "max": _suggest_max_replicas,
    "min": _suggest_min_replicas,
    "target": _suggest_targets,
    "metric": _suggest_metric,
    "up-window": _window_dimension("scale_up", "up-window", _LONGEST_UP_WINDOW_S),
    "down-window": _window_dimension("scale_down", "down-window", _LONGEST_DOWN_WINDOW_S),
    "up-policies": _rates_dimension("scale_up", "up-policies"),
    "down-policies": _rates_dimension("scale_down", "down-policies"),
    "tolerance": _suggest_tolerances,
}
"""What can be tuned, by the names of `--over`, in the order of choice: the minimum after the maximum."""

DEFAULT_DIMENSIONS = ("min", "target", "up-window", "down-window", "up-policies", "down-policies", "tolerance")
"""Without the maximum, which protects the cluster, and the choice of metrics."""
