"""The responses of the three metrics APIs as msgspec structs: lists of pod, custom and external metrics.

The metrics clients and recordings decode them; `podscaler.core.calculation.samples` makes the samples of a decision
from them. Names are in camel case in JSON. Quantities (`100m`) and times (RFC 3339) are texts; a list without items may
have null in their place (None), which is how Go encodes an empty one. A field that decisions begin to use is added
to both modules.

Source: metrics.k8s.io/v1beta1, custom.metrics.k8s.io/v1beta1 and v1beta2 (one class reads both),
external.metrics.k8s.io/v1beta1 (docs/spec/decision.md 7 (Metrics client)).
"""

from typing import Any

from msgspec import field

from podscaler.api.machinery.meta import Wire


class PodMetricsMeta(Wire, frozen=True):
    """The name and namespace of the pod that the usage describes."""

    name: str = ""
    namespace: str = ""


class ContainerMetrics(Wire, frozen=True):
    """The usage of one container: resource names to quantity texts."""

    name: str = ""
    usage: dict[str, str] | None = None


class PodMetrics(Wire, frozen=True):
    """The usage of one pod's containers, averaged over `window` (a Go duration) until `timestamp`."""

    metadata: PodMetricsMeta = field(default_factory=PodMetricsMeta)
    timestamp: str | None = None
    window: str = "0s"
    containers: tuple[ContainerMetrics, ...] | None = None


class PodMetricsList(Wire, frozen=True, tag_field="kind", tag="PodMetricsList"):
    """metrics.k8s.io PodMetricsList."""

    api_version: str = ""
    metadata: dict[str, Any] | None = None
    items: tuple[PodMetrics, ...] | None = None


class DescribedObject(Wire, frozen=True):
    """The object that a custom metric describes."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    api_version: str = ""


class MetricValue(Wire, frozen=True):
    """One value of a custom metric.

    Attributes:
        metric, window_seconds: the metric's name and selector, and the seconds that the value covers, in v1beta2.
        metric_name, selector, window: the same in v1beta1.
    """

    described_object: DescribedObject = field(default_factory=DescribedObject)
    metric: dict[str, Any] | None = None
    metric_name: str = ""
    selector: dict[str, Any] | None = None
    timestamp: str | None = None
    window_seconds: int | None = None
    window: int | None = None
    value: str = "0"

    @property
    def window_s(self) -> int | None:
        """The seconds before `timestamp` that the value covers, None if the response does not say."""
        return self.window if self.window_seconds is None else self.window_seconds


class MetricValueList(Wire, frozen=True, tag_field="kind", tag="MetricValueList"):
    """custom.metrics.k8s.io MetricValueList."""

    api_version: str = ""
    metadata: dict[str, Any] | None = None
    items: tuple[MetricValue, ...] | None = None


class ExternalMetricValue(Wire, frozen=True):
    """One value of an external metric.

    Attributes:
        window_s: the seconds before `timestamp` that the value covers, None if the response does not say.
    """

    metric_name: str = ""
    metric_labels: dict[str, str] | None = None
    timestamp: str | None = None
    window_s: int | None = field(default=None, name="window")
    value: str = "0"


class ExternalMetricValueList(Wire, frozen=True, tag_field="kind", tag="ExternalMetricValueList"):
    """external.metrics.k8s.io ExternalMetricValueList."""

    api_version: str = ""
    metadata: dict[str, Any] | None = None
    items: tuple[ExternalMetricValue, ...] | None = None
