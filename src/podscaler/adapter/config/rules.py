"""The rules of a configuration as data, with the places in the file that they come from.

`config.loading` makes them; `adapter.naming` and `adapter.providers` use them. Texts are as in the file: regular
expressions and templates are not compiled yet, so that one bad rule does not harm the others.

Source: prometheus-adapter v0.12.0, the format of its configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the configuration.

    Attributes:
        file: as it was given.
        line: from 1.
        path: the fields and indexes that lead to it (`rules[2].name`).
    """

    file: str
    line: int
    path: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.path}" if self.path else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class GroupResource:
    """A resource of the Kubernetes API; `resource` may be singular or plural where it is configured."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """A filter of series by name: exactly one of the two regular expressions is given in a valid rule."""

    matching: str
    not_matching: str


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """Says which labels of a Prometheus series hold the names of Kubernetes objects.

    Attributes:
        template: the Go template of the label of a resource, such as `kube_<<.Resource>>`; empty:
            only `overrides` count.
        overrides: label -> the resource whose objects its values name.
        is_namespaced: whether the namespace of a request restricts the series of an external metric.
    """

    template: str = ""
    overrides: Mapping[str, GroupResource] = field(default_factory=dict)
    is_namespaced: bool = True


@dataclass(frozen=True, slots=True)
class DiscoveryRule:
    """A rule of `rules` or `externalRules`.

    Attributes:
        place: of the rule.
        series_query: selects the series in Prometheus.
        filters: of the names of these series.
        resources: which objects the series belong to.
        name_matches: a regular expression for the names of series; empty: all.
        name_as: the name of the metric, in which `$1` stands for a group; empty: by the number of groups.
        metrics_query: the template of the PromQL expression.
        query_place: of `metrics_query`.
    """

    place: Place
    series_query: str
    filters: tuple[SeriesFilter, ...]
    resources: ResourceMapping
    name_matches: str
    name_as: str
    metrics_query: str
    query_place: Place


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """How cpu or memory is queried.

    Attributes:
        place: of the rule.
        container_query, node_query: templates of PromQL expressions.
        resources: the labels of pods, namespaces and nodes.
        container_label: the label with the name of the container.
    """

    place: Place
    container_query: str
    node_query: str
    resources: ResourceMapping
    container_label: str


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """The rules of metrics.k8s.io; `window_ns` is reported in its responses."""

    cpu: ResourceRule
    memory: ResourceRule
    window_ns: int


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """A whole configuration; `resource_rules` is None where metrics.k8s.io is not served."""

    rules: tuple[DiscoveryRule, ...] = ()
    external_rules: tuple[DiscoveryRule, ...] = ()
    resource_rules: ResourceRules | None = None
