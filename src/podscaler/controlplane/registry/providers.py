"""Defines the interfaces of everything that the API server serves besides stored objects: container logs and metrics.

Such data are computed for each request. The package `controlplane.kubelet` implements `PodLogs`, `controlplane.metrics`
the others; `cli.up.control_plane` passes them to the API server in `ServerParts`
(`apiserver.http.resource_request`), which needs a field for a new provider.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from podscaler.controlplane.registry.registry import Object


class VirtualObjects(Protocol):
    """Objects that are computed on demand instead of stored (PodMetrics, NodeMetrics); read-only over the API."""

    def list(self, namespace: str) -> Sequence[Object]:
        """Objects of the namespace (`""`: all), without apiVersion and kind, which the server adds."""
        ...

    def get(self, namespace: str, name: str) -> Object | None:
        """One object, None if it does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of `GET .../pods/NAME/log`, as in core/v1 PodLogOptions.

    Attributes:
        container: the container's name.
        follow: whether new output follows until the container ends.
        previous: whether the log of the previous run of the container is read.
        timestamps: whether each line begins with its time.
        tail_lines: the number of last lines to begin with, None for all.
        since_ns: the time of the first line to return, nanoseconds since the epoch; None for all lines.
        limit_bytes: the most bytes to return, None for no limit.
    """

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_ns: int | None = None
    limit_bytes: int | None = None


class PodLogs(Protocol):
    """The logs of containers."""

    def stream(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The log's bytes in chunks; with `follow`, until the container's log ends.

        Raises StatusError 400 if there is no such container or no log.
        """
        ...


@dataclass(frozen=True, slots=True)
class MetricResource:
    """One metric in the discovery of a metrics API.

    Attributes:
        subject: the `Resource.key` of the described kind (`pods`, `deployments.apps`); empty for external metrics.
        metric: the metric's name.
        namespaced: whether the described kind is namespaced.
    """

    subject: str
    metric: str
    namespaced: bool = True


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """A GET of a metrics API: the parts of its path and its selectors as sent.

    Attributes:
        group, version: the API group and version.
        namespace: the namespace in the path.
        resource: the described kind (`pods`, `services`), or `metrics` for the namespace itself; for external metrics
            the metric's name.
        name: the object's name, or `*` for all; for metrics of a namespace the metric's name.
        subresource: the metric's name if it describes objects.
        label_selector: `labelSelector`: selects objects; for external metrics it selects series.
        metric_label_selector: `metricLabelSelector`: selects series of custom metrics.
    """

    group: str
    version: str
    namespace: str
    resource: str
    name: str = ""
    subresource: str = ""
    label_selector: str = ""
    metric_label_selector: str = ""


class MetricApis(Protocol):
    """The metrics APIs custom.metrics.k8s.io and external.metrics.k8s.io."""

    @property
    def generation(self) -> int:
        """A number that increases whenever the result of `resources` changes."""
        ...

    @property
    def versions(self) -> Mapping[str, Sequence[str]]:
        """The versions of each group, preferred first; constant."""
        ...

    @property
    def list_kinds(self) -> Mapping[str, str]:
        """The kind of the lists of each group."""
        ...

    def resources(self, group: str) -> Sequence[MetricResource]:
        """The metrics of a group, sorted by subject and name."""
        ...

    def list_values(self, query: MetricsRequest) -> Object:
        """The list of values. Raises StatusError 400 for an invalid selector, 404 for an unknown metric or object."""
        ...
