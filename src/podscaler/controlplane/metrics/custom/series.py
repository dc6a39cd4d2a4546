"""One metric of one ConfigMap, read: what it is called, what it describes, and its value over time.

Made by `parsing`, kept by `index`, asked by `lookup`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Resource
from podscaler.controlplane.metrics.custom.schedule import Schedule

PODS = "pods"
OUTSIDE = ""
"""In place of a `Resource.key`: the metric describes nothing in the cluster (external.metrics.k8s.io)."""


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The metric has one value for each running pod that the selector picks."""

    selector: Selector

    @property
    def key(self) -> str:
        """The `Resource.key` of what is described."""
        return PODS

    def describes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it has a value for the object of that name and those labels."""
        del name
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class NamedObject:
    """The metric describes one object: of the ConfigMap's namespace, or that namespace itself."""

    resource: Resource
    name: str

    @property
    def key(self) -> str:
        """The `Resource.key` of what is described."""
        return self.resource.key

    def describes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it has a value for the object of that name and those labels."""
        del labels
        return name == self.name


@dataclass(frozen=True, slots=True)
class Outside:
    """The metric belongs to no object: its labels tell it from others of its name."""

    @property
    def key(self) -> str:
        """OUTSIDE."""
        return OUTSIDE

    def describes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Nothing in the cluster."""
        del name, labels
        return False


Subject = PodSelection | NamedObject | Outside


@dataclass(frozen=True, slots=True)
class Series:
    """See the module.

    Attributes:
        metric: its name.
        subject: what it describes.
        labels: the metric's own labels, which metric selectors look at.
        schedule: its value over time.
        shared_by: picks the pods whose ready ones share the value as a total; None where it is each one's own.
        window_s: the span over which it counts as measured; None says nothing about it.
    """

    metric: str
    subject: Subject
    labels: Mapping[str, str]
    schedule: Schedule
    shared_by: Selector | None = None
    window_s: int | None = None
