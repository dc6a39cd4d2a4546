"""Compiles a rule of the configuration, so that it gives the metrics of its series and the queries for their values.

`providers.metric_relisting` compiles the rules of a configuration with `compile_rules`, again whenever the resources of
the API server have changed. A rule that cannot be used is skipped, and its error returned with its position.

Source: prometheus-adapter v0.12.0. Differs: there, one rule that cannot be used ends the program.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from podscaler.adapter.cluster.rest_mapper import ServedResources
from podscaler.adapter.config.rules import DiscoveryRule, GroupResource
from podscaler.adapter.naming.metric_names import MetricNames, RuleError
from podscaler.adapter.naming.queries import QueryTarget, QueryTemplate
from podscaler.adapter.naming.resource_labels import CLUSTER_SCOPED, NAMESPACES, ResourceLabels
from podscaler.adapter.naming.series import SeriesKind
from podscaler.api.machinery.selectors import Selector


@dataclass(frozen=True, slots=True)
class RuleNaming:
    """A compiled rule.

    Attributes:
        rule: the rule as configured.
        names: derives the names of metrics.
        labels: associates labels with resources.
        template: makes queries.
    """

    rule: DiscoveryRule
    names: MetricNames
    labels: ResourceLabels
    template: QueryTemplate

    def resources(self, series: SeriesKind) -> list[GroupResource]:
        """The resources that a series describes, in the order of its labels; one for each label that names objects."""
        resources = (self.labels.find_resource(label) for label in sorted(series.labels))
        return [resource for resource in resources if resource is not None]

    def target(self, series: str, resource: GroupResource, selector: Selector) -> QueryTarget:
        """The target of a query about objects of a resource. Raises RuleError if a label is not known."""
        namespace_label = "" if resource in CLUSTER_SCOPED else self.labels.get_label(NAMESPACES)
        return QueryTarget(series, self.labels.get_label(resource), namespace_label, selector)

    def external_query(self, series: str, namespace: str, selector: Selector) -> str:
        """The expression for an external metric. Raises RuleError, SelectorNotSupported."""
        restricts = self.rule.resources.is_namespaced and bool(namespace)
        label = self.labels.get_label(NAMESPACES) if restricts else ""
        return self.template.external(series, label, namespace, selector)


def compile_rule(rule: DiscoveryRule, served_resources: ServedResources) -> RuleNaming:
    """The compiled rule. Raises RuleError with the position of the rule or of its query."""
    try:
        labels = ResourceLabels(rule.resources, served_resources)
        names = MetricNames(rule)
    except RuleError as error:
        raise RuleError(f"{rule.place}: {error}") from error
    try:
        return RuleNaming(rule, names, labels, QueryTemplate(rule.metrics_query))
    except RuleError as error:
        raise RuleError(f"{rule.query_place}: {error}") from error


def compile_rules(
    rules: Iterable[DiscoveryRule], served_resources: ServedResources
) -> tuple[list[RuleNaming], list[str]]:
    """The compiled rules that can be used, and the errors of the others."""
    usable: list[RuleNaming] = []
    errors: list[str] = []
    for rule in rules:
        try:
            usable.append(compile_rule(rule, served_resources))
        except RuleError as error:
            errors.append(str(error))
    return usable, errors
