"""The typed HorizontalPodAutoscaler of autoscaling/v2 and the Scale of autoscaling/v1.

Read by the controller's client and by recordings, written back by the controller (status, scale). Nothing is lost on
the way except managedFields. Quantities and times are texts; `podscaler.core.model.spec` reads the numbers once.

Fields stand in the order in which upstream writes them. A field that is always written, even when empty, has a
`default_factory`: msgspec leaves out only what equals a plain default.

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
    """What an autoscaler points at."""

    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)
    api_version: str = ""


class MetricIdentifier(Wire, frozen=True):
    """The name of a metric, and which of its series are meant."""

    name: str = field(default_factory=str)
    selector: LabelSelector | None = None


class MetricTarget(Wire, frozen=True):
    """What a metric should be; quantities as texts, utilization in percent of the request."""

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
    """A metric of each pod of the target."""

    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    target: MetricTarget = field(default_factory=MetricTarget)


class ResourceMetricSource(Wire, frozen=True):
    """A resource (cpu, memory, ...) of each pod of the target."""

    name: str = field(default_factory=str)
    target: MetricTarget = field(default_factory=MetricTarget)


class ContainerResourceMetricSource(Wire, frozen=True):
    """A resource of one container of each pod of the target."""

    name: str = field(default_factory=str)
    target: MetricTarget = field(default_factory=MetricTarget)
    container: str = field(default_factory=str)


class ExternalMetricSource(Wire, frozen=True):
    """A metric that belongs to no object of the cluster."""

    metric: MetricIdentifier = field(default_factory=MetricIdentifier)
    target: MetricTarget = field(default_factory=MetricTarget)


class MetricSpec(Wire, frozen=True):
    """One metric; `type` names the field that is set."""

    type: str = field(default_factory=str)
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None


class HPAScalingPolicy(Wire, frozen=True):
    """How much one direction may change in a period: `value` pods, or percent of the replicas at its start."""

    type: str = field(default_factory=str)
    value: int = field(default_factory=int)
    period_seconds: int = field(default_factory=int)


class HPAScalingRules(Wire, frozen=True):
    """The behavior of one direction."""

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
    """What is scaled, between which bounds, by which metrics, how fast.

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
    """The status of one metric; all empty (`{"type":""}`) where it could not be computed."""

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
    """What the autoscaler did and saw last."""

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
    """What is wanted of a target."""

    replicas: int = 0


class ScaleStatus(Wire, frozen=True):
    """What a target has; `selector` is the text form of the label selector of its pods."""

    replicas: int = field(default_factory=int)
    selector: str = ""


class Scale(Wire, frozen=True, tag_field="kind", tag="Scale"):
    """autoscaling/v1 Scale."""

    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ScaleSpec = field(default_factory=ScaleSpec)
    status: ScaleStatus = field(default_factory=ScaleStatus)
