"""The specs that a search may try: which fields it changes, and between which values.

Every suggestion is a spec that the API accepts. A new dimension: an entry of DIMENSIONS.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, Protocol

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


class ScalingRate(NamedTuple):
    """Policies of one direction, and which of them decides: `Max`, the one that allows most, or `Min`."""

    policies: tuple[HPAScalingPolicy, ...]
    selection: str = "Max"


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

UNCHANGED = "unchanged"
"""The choice of the present policies."""

DEFAULT_METRIC = MetricSpec(
    type="Resource",
    resource=ResourceMetricSource(name="cpu", target=MetricTarget(type="Utilization", average_utilization=80)),
)
"""What the API sets where a spec states no metric."""


class Suggester(Protocol):
    """Chooses values; Optuna's Trial is one."""

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

    def __init__(
        self, present_spec: HorizontalPodAutoscalerSpec, dimensions: Sequence[str], bounds: ReplicaBounds
    ) -> None:
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

    def suggest(self, suggester: Suggester) -> HorizontalPodAutoscalerSpec:
        """One candidate."""
        spec = self.present
        for name in self.dimensions:
            spec = DIMENSIONS[name](self, suggester, spec)
        return spec

    def present_values(self) -> Mapping[str, int | str]:
        """What a suggester answers for the present spec, as near as the dimensions can state it."""
        spec = self.present
        behavior = spec.behavior or HorizontalPodAutoscalerBehavior()
        up, down = behavior.scale_up or HPAScalingRules(), behavior.scale_down or HPAScalingRules()
        targets: dict[str, int | str] = {}
        for index, metric in enumerate(self.metrics):
            utilization = _target(metric).average_utilization
            name = f"target{index}"
            targets |= {f"{name}-pct": 100} if utilization is None else {name: min(max(utilization, 20), 95)}
        return targets | {
            "min": max(spec.min_replicas or 1, self.bounds.least),
            "max": spec.max_replicas,
            "metric": "all",
            "up-window": _on_grid(up.stabilization_window_seconds or 0, 300),
            "down-window": _on_grid(_or(down.stabilization_window_seconds, 300), 900),
            "up-policies": UNCHANGED,
            "down-policies": UNCHANGED,
            "tolerance-up": _tolerance_pct(up),
            "tolerance-down": _tolerance_pct(down),
        }


def _or(number: int | None, default: int) -> int:
    return default if number is None else number


def _on_grid(window_s: int, longest_s: int) -> int:
    return min(round(window_s / 15) * 15, longest_s)


def _tolerance_pct(rules: HPAScalingRules) -> int:
    return 10 if rules.tolerance is None else min(quantity.parse(rules.tolerance).milli_value() // 10, 20)


def _source_field(metric: MetricSpec) -> str:
    fields = ("resource", "container_resource", "pods", "object", "external")
    return next(name for name in fields if getattr(metric, name))


def _target(metric: MetricSpec) -> MetricTarget:
    target: MetricTarget = getattr(metric, _source_field(metric)).target
    return target


_Dimension = Callable[[SearchSpace, Suggester, HorizontalPodAutoscalerSpec], HorizontalPodAutoscalerSpec]


def _suggest_min_replicas(
    space: SearchSpace, suggester: Suggester, spec: HorizontalPodAutoscalerSpec
) -> HorizontalPodAutoscalerSpec:
    least = suggester.suggest_int("min", space.bounds.least, min(spec.max_replicas, space.bounds.most))
    return msgspec.structs.replace(spec, min_replicas=least)


def _suggest_max_replicas(
    space: SearchSpace, suggester: Suggester, spec: HorizontalPodAutoscalerSpec
) -> HorizontalPodAutoscalerSpec:
    replicas_max = suggester.suggest_int("max", max(spec.min_replicas or 1, space.bounds.least, 1), space.bounds.most)
    return msgspec.structs.replace(spec, max_replicas=replicas_max)


def _targets(
    space: SearchSpace, suggester: Suggester, spec: HorizontalPodAutoscalerSpec
) -> HorizontalPodAutoscalerSpec:
    metrics = tuple([_retargeted(metric, f"target{index}", suggester) for index, metric in enumerate(space.metrics)])
    return msgspec.structs.replace(spec, metrics=metrics)


def _retargeted(metric: MetricSpec, name: str, suggester: Suggester) -> MetricSpec:
    """The metric with another target: a utilization of 20 % to 95 %, or half to double of another value."""
    field, target = _source_field(metric), _target(metric)
    source = getattr(metric, field)
    if target.average_utilization is not None:
        new_target = msgspec.structs.replace(target, average_utilization=suggester.suggest_int(name, 20, 95))
    else:
        percent = suggester.suggest_int(f"{name}-pct", 50, 200, step=5)
        new_target = msgspec.structs.replace(
            target, value=_scaled(target.value, percent), average_value=_scaled(target.average_value, percent)
        )
    return msgspec.structs.replace(metric, **{field: msgspec.structs.replace(source, target=new_target)})


def _scaled(amount: str | None, percent: int) -> str | None:
    if amount is None:
        return None
    return f"{max(quantity.parse(amount).milli_value() * percent // 100, 1)}m"


def _metric(space: SearchSpace, suggester: Suggester, spec: HorizontalPodAutoscalerSpec) -> HorizontalPodAutoscalerSpec:
    """All metrics, or one of them."""
    choice = suggester.suggest_categorical("metric", ["all", *(str(index) for index in range(len(space.metrics)))])
    metrics = spec.metrics or space.metrics
    return spec if choice == "all" else msgspec.structs.replace(spec, metrics=(metrics[int(choice)],))


def _rules(spec: HorizontalPodAutoscalerSpec, direction: str, **changes: object) -> HorizontalPodAutoscalerSpec:
    behavior = spec.behavior or HorizontalPodAutoscalerBehavior()
    rules = getattr(behavior, direction) or HPAScalingRules()
    new_rules = msgspec.structs.replace(rules, **changes)
    return msgspec.structs.replace(spec, behavior=msgspec.structs.replace(behavior, **{direction: new_rules}))


def _window(direction: str, name: str, longest_s: int) -> _Dimension:
    def suggest(
        space: SearchSpace, suggester: Suggester, spec: HorizontalPodAutoscalerSpec
    ) -> HorizontalPodAutoscalerSpec:
        del space
        window_s = suggester.suggest_int(name, 0, longest_s, step=15)
        return _rules(spec, direction, stabilization_window_seconds=window_s)

    return suggest


def _rates(direction: str, name: str) -> _Dimension:
    def suggest(
        space: SearchSpace, suggester: Suggester, spec: HorizontalPodAutoscalerSpec
    ) -> HorizontalPodAutoscalerSpec:
        del space
        words = suggester.suggest_categorical(name, [UNCHANGED, *POLICIES])
        if words == UNCHANGED:
            return spec
        rate = POLICIES[words]
        return _rules(spec, direction, policies=rate.policies, select_policy=rate.selection)

    return suggest


def _tolerance(
    space: SearchSpace, suggester: Suggester, spec: HorizontalPodAutoscalerSpec
) -> HorizontalPodAutoscalerSpec:
    del space
    up, down = (suggester.suggest_int(f"tolerance-{way}", 0, 20) for way in ("up", "down"))
    return _rules(_rules(spec, "scale_up", tolerance=f"{up / 100:g}"), "scale_down", tolerance=f"{down / 100:g}")


DIMENSIONS: Mapping[str, _Dimension] = {
    "max": _suggest_max_replicas,
    "min": _suggest_min_replicas,
    "target": _targets,
    "metric": _metric,
    "up-window": _window("scale_up", "up-window", 300),
    "down-window": _window("scale_down", "down-window", 900),
    "up-policies": _rates("scale_up", "up-policies"),
    "down-policies": _rates("scale_down", "down-policies"),
    "tolerance": _tolerance,
}
"""What can be tuned, by the names of `--over`, in the order of choice: the minimum after the maximum."""

DEFAULT_DIMENSIONS = ("min", "target", "up-window", "down-window", "up-policies", "down-policies", "tolerance")
"""Without the maximum, which protects the cluster, and the choice of metrics."""
