"""The data type of custom and external metrics: a series is a metric, the objects it describes and its value over time.

`parsing` (ConfigMaps) and `scraped.scraper` (pods) create series, `index` stores them, `lookup` evaluates them. A new
kind of subject: a class here, and a case of `parsing._parse_subject`. A metric `queue_depth` of `deployment/web` with
the constant value 5 is

    Series("queue_depth", NamedObject(DEPLOYMENTS, "web"), labels={}, schedule=Constant(Quantity 5))
"""

from collections.abc import Mapping
from dataclasses import dataclass

from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Resource
from podscaler.controlplane.metrics.custom.schedule import Schedule

PODS = "pods"
OUTSIDE = ""
"""In place of a `Resource.key`: the metric describes no object of the cluster (external.metrics.k8s.io)."""


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The metric describes each running pod that the selector matches."""

    selector: Selector

    @property
    def key(self) -> str:
        """The `Resource.key` of the described kind."""
        return PODS

    def describes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it has a value for the object of that name and those labels."""
        del name
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class NamedObject:
    """The metric describes one object of the series' namespace, or that namespace itself."""

    resource: Resource
    name: str

    @property
    def key(self) -> str:
        """The `Resource.key` of the described kind."""
        return self.resource.key

    def describes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it has a value for the object of that name and those labels."""
        del labels
        return name == self.name


@dataclass(frozen=True, slots=True)
class Outside:
    """The metric describes no object of the cluster; series of the same name differ by their labels."""

    @property
    def key(self) -> str:
        """OUTSIDE, in place of a `Resource.key`."""
        return OUTSIDE

    def describes(self, name: str, labels: Mapping[str, str]) -> bool:
        """False: the metric describes no object."""
        del name, labels
        return False


Subject = PodSelection | NamedObject | Outside


@dataclass(frozen=True, slots=True)
class Series:
    """One metric with its labels, the objects that it describes, and its value over time.

    Attributes:
        metric: the metric's name.
        subject: the described objects.
        labels: the metric's own labels (not those of the object), for metric selectors.
        schedule: the value over time.
        shared_by: the value is a total that the ready pods matched by this selector share equally; None if each
            described object has the whole value.
        window_s: the seconds over which the value was measured; None to omit windowSeconds from responses.
    """

    metric: str
    subject: Subject
    labels: Mapping[str, str]
    schedule: Schedule
    shared_by: Selector | None = None
    window_s: int | None = None
