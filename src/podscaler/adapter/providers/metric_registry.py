"""Builds the registry of the metrics that the adapter serves, by name, with the rule and the series of each.

`providers.metric_relisting` builds a MetricRegistry from each list of series; `custom_metrics` and `external_metrics`
find metrics in it.

Source: prometheus-adapter v0.12.0: where several series are a metric of one name, the last one of the last rule
counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from podscaler.adapter.config.rules import GroupResource
from podscaler.adapter.naming.rule_naming import RuleNaming
from podscaler.adapter.naming.series import SeriesKind


class MetricSeries(NamedTuple):
    """How a metric is queried: its compiled rule, and the name of its series in Prometheus."""

    naming: RuleNaming
    series: str


class CustomMetric(NamedTuple):
    """A custom metric: the resource whose objects it describes, and the metric's name."""

    resource: GroupResource
    name: str


RuleSeries = Iterable[tuple[RuleNaming, Sequence[SeriesKind]]]
"""Rules in their order, with the series that each selects."""


@dataclass(frozen=True, slots=True)
class MetricRegistry:
    """The metrics of one list of series.

    Attributes:
        custom: rule and series by custom metric.
        external: rule and series by the name of the external metric.
    """

    custom: Mapping[CustomMetric, MetricSeries] = field(default_factory=dict)
    external: Mapping[str, MetricSeries] = field(default_factory=dict)


def build(rules: RuleSeries, external_rules: RuleSeries) -> MetricRegistry:
    """The registry of these series."""
    custom: dict[CustomMetric, MetricSeries] = {}
    for naming, series_kinds in rules:
        for series_kind in series_kinds:
            name = naming.names.find_name(series_kind.name)
            if name is not None:
                metric_series = MetricSeries(naming, series_kind.name)
                custom |= {CustomMetric(resource, name): metric_series for resource in naming.resources(series_kind)}
    external: dict[str, MetricSeries] = {}
    for naming, series_kinds in external_rules:
        for series_kind in series_kinds:
            name = naming.names.find_name(series_kind.name)
            if name is not None:
                external[name] = MetricSeries(naming, series_kind.name)
    return MetricRegistry(custom, external)
