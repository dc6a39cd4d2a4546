"""The seam between the API server and the parts that live beside it (controllers, node): objects by group-resource.

`Registry` is what workload controllers, garbage collector, services and node are written against; the API server's
implementation gives them the same admission, validation, versions and watch events as HTTP gives everyone else.
Resources are named by `Resource.key` (`pods`, `deployments.apps`). Objects are in their storage version. What `get`,
`find` and writes return is the caller's own copy; what `list`, `owned_by` and `watch` give may be shared with others:
it must not be changed, and may lack metadata.managedFields. Refusals are `podscaler.base.errors.StatusError`, as over
HTTP (`code` 404, 409, 422, ...).
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """One event of a watch: the object as it now is (for DELETED: as it last was), with its resourceVersion."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: Object


class Registry(Protocol):
    """Reads come from memory and never wait; writes return once they are durable."""

    def get(self, resource: str, namespace: str, name: str) -> Object:
        """The object (namespace `""` for cluster-scoped kinds). Raises StatusError 404."""
        ...

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """As `get`, None where there is none."""
        ...

    def list(self, resource: str, namespace: str = "", *, labels: Mapping[str, str] | None = None) -> Sequence[Object]:
        """Objects of a namespace (`""`: of all) that carry all of `labels`, in key order."""
        ...

    def owned_by(self, resource: str, uid: str) -> Sequence[Object]:
        """Objects with an ownerReference (controller or not) to `uid`; costs only as much as it finds."""
        ...

    async def create(self, resource: str, obj: Object) -> Object:
        """Create `obj` (metadata.namespace set where the kind has one). Raises StatusError 409 AlreadyExists, 422."""
        ...

    async def update(self, resource: str, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object; `subresource="status"` replaces only its status. Raises StatusError 404, 409, 422.

        Kinds may have more (`Strategy.prepare_subresource_update`): `binding` sets a pod's spec.nodeName, which nothing
        else can, `finalize` a namespace's spec.finalizers.

        With a metadata.resourceVersion that is not the stored one: 409 Conflict. A write that changes nothing keeps it.
        """
        ...

    async def mutate(
        self, resource: str, namespace: str, name: str, change: Callable[[Object], None], *, subresource: str = ""
    ) -> Object:
        """Apply `change` (in place, synchronous) to the newest object and store it: never a conflict."""
        ...

    async def delete(
        self,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        grace_period_s: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] | None = None,
    ) -> None:
        """Delete, gracefully where the kind has a grace period (0: at once). Raises StatusError 404, 409 (other uid).

        A finalizer keeps the object, with its deletionTimestamp, until it is removed.
        """
        ...

    async def pause(self) -> None:
        """Return in a later pass of the event loop, in which no other caller's pause ends.

        For work on thousands of objects between two steps: no pass has more than one of the steps that follow.
        """
        ...

    def watch(self, resource: str, *, initial: bool = True) -> AsyncIterator[ObjectEvent]:
        """Changes of all namespaces from now on, without end; with `initial`, first an ADDED for each object there is.

        No change is lost or doubled. A consumer that falls too far behind is restarted with a fresh set of ADDED by the
        caller's own loop: the iterator then raises StatusError 410.
        """
        ...


class VirtualObjects(Protocol):
    """Objects that are not stored but computed on demand (PodMetrics, NodeMetrics), read-only over the API."""

    def list(self, namespace: str) -> Sequence[Object]:
        """Objects of the namespace (`""`: all), without apiVersion and kind: the server adds those asked for."""
        ...

    def get(self, namespace: str, name: str) -> Object | None:
        """One object, None where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What `GET .../pods/NAME/log` asked for; names as in core/v1 PodLogOptions."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_ns: int | None = None
    limit_bytes: int | None = None


class PodLogs(Protocol):
    """Where the API server reads containers' logs."""

    def stream(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The log's bytes in chunks; with `follow`, without end until the container's log ends.

        Raises StatusError 400 where there is no such container or no log to read.
        """
        ...


@dataclass(frozen=True, slots=True)
class MetricResource:
    """One metric as the discovery of a metrics API lists it.

    Attributes:
        subject: the `Resource.key` of what it describes (`pods`, `deployments.apps`); empty for external metrics.
        metric: its name.
        namespaced: whether what it describes lives in a namespace.
    """

    subject: str
    metric: str
    namespaced: bool = True


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """What a GET below a metrics API asks for: the parts of its path and its selectors, as they were sent.

    Attributes:
        resource: what the metric describes (`pods`, `services`), or `metrics` for the namespace itself; for external
            metrics the metric's name.
        name: the object's name, or `*`; for metrics of a namespace the metric's name.
        subresource: the metric's name, where it describes an object.
        label_selector: `labelSelector`: of the objects, for external metrics of the metric.
        metric_label_selector: `metricLabelSelector`.
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
    """Metrics APIs that the server serves beside its resources: custom.metrics.k8s.io and external.metrics.k8s.io."""

    @property
    def generation(self) -> int:
        """A number that rises whenever `resources` says something else."""
        ...

    @property
    def versions(self) -> Mapping[str, Sequence[str]]:
        """The versions of each group, preferred first; they stay the same."""
        ...

    @property
    def list_kinds(self) -> Mapping[str, str]:
        """The kind of the lists that each group answers with."""
        ...

    def resources(self, group: str) -> Sequence[MetricResource]:
        """The metrics of a group, by subject and name."""
        ...

    def answer(self, query: MetricQuery) -> Object:
        """The list of values. Raises StatusError: 400 for a selector that is none, 404 for what is not known."""
        ...
