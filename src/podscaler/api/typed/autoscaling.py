"""The HorizontalPodAutoscaler of autoscaling/v2 and the Scale of autoscaling/v1 as msgspec structs.

The controller's client and recordings decode them (`msgspec.json.decode(body, type=HorizontalPodAutoscaler)`), the
controller writes status and scale back. Only managedFields are lost. Quantities (`100m`) and times (RFC 3339) are
texts; `podscaler.core.model.spec` parses the numbers once. A new field of the API is added here: decoding drops fields
that a struct does not have.

Fields are in the order in which Go writes them. A field that is always written, even when empty, has a
`default_factory`: msgspec leaves out only fields that equal a plain default.

Source: autoscaling/v2 and autoscaling/v1 of Kubernetes v1.37.0 (docs/spec/api.md 1 (Types), docs/spec/decision.md 11.5
(JSON of status)).
"""

from typing import TypedDict

from msgspec import field

from podscaler.api.machinery.meta import ObjectMeta, Wire


class LabelSelectorRequirement(TypedDict, total=False):
    """One requirement of a meta/v1 LabelSelector."""

    key: str
    operator: str
    values: list[str] | None


class LabelSelector(TypedDict, total=False):
    """A meta/v1 LabelSelector as JSON-ready data: `podscaler.api.machinery.selectors` reads it."""

    matchLabels: dict[str, str] | None
    matchExpressions: list[LabelSelectorRequirement] | None


class CrossVersionObjectReference(Wire, frozen=True):
    """A reference to the scaled object, or to the object that a metric describes."""

    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)
    api_version: str = ""


class MetricIdentifier(Wire, frozen=True):
    """The name of a metric, and the label selector of its series; None selects all."""

    name: str = field(default_factory=str)
    selector: LabelSelector | None = None


class MetricTarget(Wire, frozen=True):
    """The target value of a metric; `type` (Utilization, Value, AverageValue) names the field that is set.

    Attributes:
        value: a quantity.
        average_value: a quantity, per pod.
        average_utilization: percent of the pods' requests.
    """

    type: str = field(default_factory=str)
    value: str | None = None
    average_value: str | None = None
    average_utilization: int | None = None


class ObjectMetricSource(Wire, frozen=True):
    """A metric that describes one object."""

    described_object: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    target: MetricTarget = field(default_factory=MetricTarget)
    metric: MetricIdentifier = field(default_factory=MetricIdentifier)


class PodsMetricSource(Wire, frozen=True):
    """A metric of each pod of the scaled object."""

    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    target: MetricTarget = field(default_factory=MetricTarget)


class ResourceMetricSource(Wire, frozen=True):
    """The usage of a resource (cpu, memory, ...) by each pod of the scaled object."""

    name: str = field(default_factory=str)
    target: MetricTarget = field(default_factory=MetricTarget)


class ContainerResourceMetricSource(Wire, frozen=True):
    """The usage of a resource by one container of each pod of the scaled object."""

    name: str = field(default_factory=str)
    target: MetricTarget = field(default_factory=MetricTarget)
    container: str = field(default_factory=str)


class ExternalMetricSource(Wire, frozen=True):
    """A metric that describes no object of the cluster, such as the length of a queue."""

    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    target: MetricTarget = field(default_factory=MetricTarget)


class MetricSpec(Wire, frozen=True):
    """One metric; `type` (`Pods`, `ContainerResource`, ...) names the field that is set."""

    type: str = field(default_factory=str)
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None


class HPAScalingPolicy(Wire, frozen=True):
    """A limit of one direction: the change in the past `period_seconds` is at most `value`.

    `type` is Pods, or Percent of the replicas at the start of the period.
    """

    type: str = field(default_factory=str)
    value: int = field(default_factory=int)
    period_seconds: int = field(default_factory=int)


class HPAScalingRules(Wire, frozen=True):
    """The behavior of one direction; None in a field means the API default. `tolerance` is a quantity (`0.1`)."""

    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: tuple[HPAScalingPolicy, ...] | None = None
    tolerance: str | None = None


class HorizontalPodAutoscalerBehavior(Wire, frozen=True):
    """The behavior of both directions."""

    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


class FallbackReplicasSpec(Wire, frozen=True):
    """The replicas of a target whose metrics cannot be read, and for how long that must last (a Go duration)."""

    replicas: int = field(default_factory=int)
    after: str | None = None


class OnMetricFailureSpec(Wire, frozen=True):
    """The failure policy of a PodAutoscaler (`podscaler.core.model.failure_policy`); spans are Go durations."""

    keep_last_for: str | None = None
    ignore_failed: bool | None = None
    fallback: FallbackReplicasSpec | None = None


class HorizontalPodAutoscalerSpec(Wire, frozen=True):
    """The scaled object, the bounds of its replicas, the metrics, and the limits of each direction.

    Attributes:
        on_metric_failure: only a PodAutoscaler has it.
    """

    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    min_replicas: int | None = None
    max_replicas: int = field(default_factory=int)
    metrics: tuple[MetricSpec, ...] | None = None
    behavior: HorizontalPodAutoscalerBehavior | None = None
    on_metric_failure: OnMetricFailureSpec | None = None


class MetricValueStatus(Wire, frozen=True):
    """The current value of a metric; quantities as texts, utilization in percent."""

    value: str | None = None
    average_value: str | None = None
    average_utilization: int | None = None


class ObjectMetricStatus(Wire, frozen=True):
    """The status of an Object metric."""

    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)
    described_object: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)


class PodsMetricStatus(Wire, frozen=True):
    """The status of a Pods metric."""

    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class ResourceMetricStatus(Wire, frozen=True):
    """The status of a Resource metric."""

    name: str = field(default_factory=str)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class ContainerResourceMetricStatus(Wire, frozen=True):
    """The status of a ContainerResource metric."""

    name: str = field(default_factory=str)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)
    container: str = field(default_factory=str)


class ExternalMetricStatus(Wire, frozen=True):
    """The status of an External metric."""

    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    current: MetricValueStatus = field(default_factory=MetricValueStatus)


class MetricStatus(Wire, frozen=True):
    """The status of one metric; `{"type":""}` where it could not be computed."""

    type: str = field(default_factory=str)
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class Condition(Wire, frozen=True):
    """One HorizontalPodAutoscalerCondition; `last_transition_time` is RFC 3339 text."""

    type: str = field(default_factory=str)
    status: str = field(default_factory=str)
    last_transition_time: str | None = field(default_factory=lambda: None)
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None


class HorizontalPodAutoscalerStatus(Wire, frozen=True):
    """The result of the last sync."""

    observed_generation: int | None = None
    last_scale_time: str | None = None
    current_replicas: int = 0
    desired_replicas: int = field(default_factory=int)
    current_metrics: tuple[MetricStatus, ...] | None = field(default_factory=lambda: None)
    conditions: tuple[Condition, ...] | None = None


class HorizontalPodAutoscaler(Wire, frozen=True):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: HorizontalPodAutoscalerSpec = field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = field(default_factory=HorizontalPodAutoscalerStatus)


class ScaleSpec(Wire, frozen=True):
    """The desired replicas."""

    replicas: int = 0


class ScaleStatus(Wire, frozen=True):
    """The observed replicas; `selector` is the label selector of the pods in text form (`app=web`)."""

    replicas: int = field(default_factory=int)
    selector: str = ""


class Scale(Wire, frozen=True, tag_field="kind", tag="Scale"):
    """autoscaling/v1 Scale."""

    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ScaleSpec = field(default_factory=ScaleSpec)
    status: ScaleStatus = field(default_factory=ScaleStatus)
