"""Parses the spec of an autoscaler: bounds, metrics, behavior and target as numbers and texts for decisions.

`parse` or `of` is called once for each edit of an autoscaler, by `podscaler.controller.informers.observed_objects`, the
replay and the simulation, which keep the result for `podscaler.core.decide`. A new field of decisions: a field of Spec,
filled in by `parse`. Defaults are filled in: a spec without metrics has 80 % of the requested CPU, and a behavior
without policies has those of the API.

Source: autoscaling/v2 (docs/spec/api.md 1.1 (autoscaling/v2), docs/spec/decision.md 2 (Reconcile in order), 5
(Tolerance), 9 (Normalisation with behavior)).
"""

from collections.abc import Mapping

from podscaler.api.machinery import quantity
from podscaler.api.typed import autoscaling
from podscaler.core.model import emulation, failure_policy, metric_spec
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.failure_policy import FailurePolicy
from podscaler.core.model.metric_spec import Metric
from podscaler.core.model.observation import Fact
from podscaler.core.model.settings import SECOND_NS


class Policy(Fact, frozen=True, gc=False, rename="camel"):
    """A scaling policy: how much the replicas may change in one direction within a period.

    Attributes:
        type: `Pods` or `Percent`.
        value: the number of pods, or percent of the replicas at the start of the period.
    """

    type: str
    value: int
    period_ns: int


class Rules(Fact, frozen=True, gc=False, rename="camel"):
    """The behavior of one direction.

    Attributes:
        window_ns: the stabilization window; None: that of the flag (scale-down only).
        select_policy: `Max`, `Min` or `Disabled`.
        tolerance: the deviation from 1.0 that calls for no change; None: that of the flag.
        longest_period_ns: the longest period of the policies; 0 if there are no policies.
    """

    window_ns: int | None
    select_policy: str
    policies: tuple[Policy, ...]
    tolerance: float | None
    longest_period_ns: int


class Behavior(Fact, frozen=True, gc=False, rename="camel"):
    """The behavior of both directions, with the API's defaults filled in."""

    up: Rules
    down: Rules


class Spec(Fact, frozen=True, gc=False):
    """An autoscaler's spec.

    Attributes:
        key: `namespace/name` of the autoscaler.
        reference: its target, as messages name it: `Deployment/shop/web`.
        target_fault: the error in `scaleTargetRef.apiVersion`; empty if there is no error.
        scales_on_others: whether a metric is of type Object or External, which has a value without any pod.
        behavior: None if the spec has none, and the flag's window and fixed limits apply.
        failure_policy: what happens when metrics cannot be read (Kubernetes has no such policy).
    """

    key: str
    namespace: str
    name: str
    reference: str
    target_fault: str
    min_replicas: int
    max_replicas: int
    metrics: tuple[Metric, ...]
    scales_on_others: bool
    behavior: Behavior | None
    failure_policy: FailurePolicy = failure_policy.NO_POLICY


NO_ANNOTATIONS: Mapping[str, str] = {}
DEFAULT_METRIC = autoscaling.MetricSpec(
    type="Resource",
    resource=autoscaling.ResourceMetricSource(
        name="cpu", target=autoscaling.MetricTarget(type="Utilization", average_utilization=80)
    ),
)

_DEFAULT_PERCENT_POLICY = autoscaling.HPAScalingPolicy(type="Percent", value=100, period_seconds=15)
_DEFAULT_PODS_POLICY = autoscaling.HPAScalingPolicy(type="Pods", value=4, period_seconds=15)
_NO_RULES = autoscaling.HPAScalingRules()


def parse(
    namespace: str,
    name: str,
    api_spec: autoscaling.HorizontalPodAutoscalerSpec,
    version: Emulation = emulation.V1_37,
    *,
    annotations: Mapping[str, str] = NO_ANNOTATIONS,
) -> Spec:
    """The parsed spec, with the API's defaults.

    Args:
        annotations: the annotations of the autoscaler; they may state the failure policy that `api_spec` does not have.

    Raises ValueError for a quantity that cannot be read.
    """
    target = api_spec.scale_target_ref
    metrics = api_spec.metrics or (DEFAULT_METRIC,)
    return Spec(
        key=f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        reference=f"{target.kind}/{namespace}/{target.name}",
        target_fault=api_version_fault(target.api_version),
        min_replicas=1 if api_spec.min_replicas is None else api_spec.min_replicas,
        max_replicas=api_spec.max_replicas,
        metrics=tuple(metric_spec.parse(metric, namespace, version) for metric in metrics),
        scales_on_others=any(metric.type in {"Object", "External"} for metric in metrics),
        behavior=_parse_behavior(api_spec.behavior) if api_spec.behavior else None,
        failure_policy=failure_policy.parse(api_spec.on_metric_failure, annotations, metrics),
    )


def of(autoscaler: autoscaling.HorizontalPodAutoscaler, version: Emulation = emulation.V1_37) -> Spec:
    """The parsed spec of a whole autoscaler object. Raises ValueError as `parse`."""
    meta = autoscaler.metadata
    return parse(meta.namespace, meta.name, autoscaler.spec, version, annotations=meta.annotations or NO_ANNOTATIONS)


def api_version_fault(api_version: str) -> str:
    """The error of an apiVersion; empty for `group/version`, `version` and the empty text."""
    return f"unexpected GroupVersion string: {api_version}" if api_version.count("/") > 1 else ""


def _parse_behavior(api_behavior: autoscaling.HorizontalPodAutoscalerBehavior) -> Behavior:
    """The behavior of both directions; a direction that is not stated has the API's defaults."""
    up, down = api_behavior.scale_up or _NO_RULES, api_behavior.scale_down or _NO_RULES
    up_window_s = up.stabilization_window_seconds or 0
    return Behavior(
        up=_parse_rules(up, (_DEFAULT_PODS_POLICY, _DEFAULT_PERCENT_POLICY), up_window_s),
        down=_parse_rules(down, (_DEFAULT_PERCENT_POLICY,), down.stabilization_window_seconds),
    )


def _parse_rules(
    api_rules: autoscaling.HPAScalingRules, defaults: tuple[autoscaling.HPAScalingPolicy, ...], window_s: int | None
) -> Rules:
    """The rules of one direction.

    `defaults` are its policies where none are stated; `window_s` is None for the window of the flag.
    """
    api_policies = defaults if api_rules.policies is None else api_rules.policies
    policies = tuple([Policy(policy.type, policy.value, policy.period_seconds * SECOND_NS) for policy in api_policies])
    return Rules(
        window_ns=None if window_s is None else window_s * SECOND_NS,
        select_policy=api_rules.select_policy or "Max",
        policies=policies,
        tolerance=None if api_rules.tolerance is None else quantity.parse(api_rules.tolerance).approximate_float(),
        longest_period_ns=max((policy.period_ns for policy in policies), default=0),
    )
