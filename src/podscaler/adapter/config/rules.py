"""Defines the data classes of the adapter's configuration: rules, with their positions in the file for error messages.

`config.config_file` makes them (a new field is also read there); `adapter.naming` and `adapter.providers` use them.
Texts are as in the file: regular expressions and templates are not compiled yet, so that one invalid rule does not
affect the others.

Source: prometheus-adapter v0.12.0, the format of its configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the configuration file; its text is `rules.yaml:12: rules[2].name`.

    Attributes:
        file: the name of the file, as it was given.
        line: the line, counted from 1.
        path: the fields and indexes that lead to the position (`rules[2].name`).
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
    """A filter of series by name: a regular expression that names must match, or must not; the other one is empty."""

    matching: str
    not_matching: str


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """Which labels of a Prometheus series contain the names of Kubernetes objects.

    Attributes:
        template: the Go template of the label of a resource, such as `kube_<<.Resource>>`; empty: only `overrides`
            apply.
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
        place: the position of the rule in the file.
        series_query: the selector of the series in Prometheus, such as `{__name__=~"^http_.*"}`.
        filters: filters of the names of these series.
        resources: which objects the series describe.
        name_matches: a regular expression for the names of series; empty if all names match.
        name_as: the name of the metric, in which `$1` stands for a group; empty: `$1` if `name_matches` has a group,
            else `$0`, the whole match.
        metrics_query: the template of the PromQL expression for values.
        query_place: the position of `metrics_query` in the file.
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
        place: the position of the rule in the file.
        container_query, node_query: templates of PromQL expressions for the usage of containers and nodes.
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
