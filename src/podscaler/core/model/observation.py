"""Defines the inputs of a decision as plain values: pods, samples, scale and the measurements of metrics.

The controller and the replay fill in an `Observation`; `podscaler.core.model.api_conversion` and
`podscaler.core.calculation.samples` make its parts from typed API objects. A new input is a field here that both fill
in. Numbers are parsed already: amounts are thousandths, instants and spans nanoseconds.

Invariant: all values are immutable.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus


class Fact(msgspec.Struct, frozen=True, gc=False):
    """The base class of the immutable values that decisions are made from; without cycles, hence `gc=False`."""


class ContainerRequests(Fact, frozen=True, gc=False):
    """The requests of one container, in thousandths of each resource."""

    name: str
    requests_milli: Mapping[str, int]


class PodLevelRequests(Fact, frozen=True, gc=False):
    """The effective requests of a pod that has `spec.resources.requests`, with and without its `spec.overhead`."""

    with_overhead_milli: Mapping[str, int]
    without_overhead_milli: Mapping[str, int]


class Pod(Fact, frozen=True, gc=False):
    """One pod.

    Attributes:
        name, labels, phase: as in the API.
        is_deleting: whether it has a deletionTimestamp.
        started_at: `status.startTime`; None if the pod has none.
        ready: the status of its Ready condition; None if the pod has no such condition.
        ready_changed_at: that condition's lastTransitionTime.
        containers: regular containers in order, then restartable init containers in order.
        requests_milli: the sums over `containers` of the resources for which all of them have a request.
        pod_level: the requests of the pod as a whole; None if only its containers have requests.
    """

    name: str
    labels: Mapping[str, str] = {}
    phase: str = "Running"
    is_deleting: bool = False
    started_at: int | None = None
    ready: str | None = None
    ready_changed_at: int = 0
    containers: tuple[ContainerRequests, ...] = ()
    requests_milli: Mapping[str, int] = {}
    pod_level: PodLevelRequests | None = None


class Scale(Fact, frozen=True, gc=False):
    """The scale subresource of the target.

    Attributes:
        replicas: `spec.replicas`.
        status_replicas: `status.replicas`.
        selector: `status.selector`, the text of a label selector such as `app=web`; empty if the target has none.
    """

    replicas: int
    status_replicas: int = 0
    selector: str = ""


class Failure(Fact, frozen=True, gc=False):
    """A request that failed.

    Attributes:
        message: the bare error text.
        reason: the Status' reason; NO_KIND_MATCH where the target's kind is not served.
        code: the HTTP status; 0 if no response was received.
    """

    message: str
    reason: str = ""
    code: int = 0


NO_KIND_MATCH = "NoKindMatch"


class Sample(Fact, frozen=True, gc=False):
    """The value of a metric for one pod.

    Attributes:
        value_milli: the average over the window, in thousandths (of a core, a byte, ...).
        taken_at: the end of the window.
        window_ns: the length of the window.
    """

    value_milli: int
    taken_at: int = 0
    window_ns: int = 0


class PodSamples(Fact, frozen=True, gc=False):
    """The measurement of a metric of pods.

    Attributes:
        samples: by pod name, without pods that lack a container or the resource.
        is_empty: whether the API listed no pod at all.
    """

    samples: Mapping[str, Sample]
    is_empty: bool = False


class Values(Fact, frozen=True, gc=False):
    """The measurement of an object's or an external metric.

    Attributes:
        values_milli: its values in thousandths, in order.
        query: the query behind the first value, and the system that answered it; empty if the response has no such
            label.
    """

    values_milli: tuple[int, ...]
    query: str = ""


Measurement = PodSamples | Values | Failure


class Neighbours(Protocol):
    """The stored selectors of the autoscalers of a namespace (see `podscaler.core.model.selector_store`)."""

    def sharing(self, key: str, pods: Sequence[Pod]) -> set[str]:
        """The keys of the autoscalers other than `key` whose stored selector matches at least one of the pods."""
        ...


class NoNeighbours:
    """The Neighbours of an autoscaler that is alone in its namespace."""

    def sharing(self, key: str, pods: Sequence[Pod]) -> set[str]:
        """The empty set."""
        del key, pods
        return set()


ALONE = NoNeighbours()


class Observation(msgspec.Struct, frozen=True):
    """The inputs of one sync.

    Attributes:
        status: the autoscaler's status as read.
        generation: its metadata.generation, 0 without one.
        scale: the target's scale, or the failure to read it.
        pods: pods of the namespace, in list order; a superset of those that the scale's selector matches.
        metrics: for each entry of `spec.metrics` its measurement, None if there was no query.
        neighbours: the stored selectors of the namespace; the autoscaler's own does not matter.
        is_registered: whether the informer still has the autoscaler.
    """

    scale: Scale | Failure
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()
    generation: int = 0
    pods: Sequence[Pod] = ()
    metrics: Sequence[Measurement | None] = ()
    neighbours: Neighbours = ALONE
    is_registered: bool = True


class IncompleteObservation(ValueError):
    """A decision needs a measurement that the observation does not have, or has of another type."""
