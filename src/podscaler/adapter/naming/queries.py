"""Builds the PromQL expressions for values of metrics from the template of a rule.

`naming.rule_naming` and `providers.resource_metrics` have a QueryTemplate for each rule. A *direct* query is for
certain objects, as prometheus-adapter does: `sum(rate(http_requests{namespace="shop",pod=~"a|b"}[2m])) by (pod)`. A
*batch* is for the objects of a whole namespace or of all namespaces; its result is divided by labels. A rule has a
batch only if dividing gives the same values as direct queries, which `promql.partition` decides from the expression,
and if the template does not use `LabelValuesByName`, whose values are the names of the objects.

Source: prometheus-adapter v0.12.0 (querying).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podscaler.adapter.go_template.lexing import TemplateError
from podscaler.adapter.go_template.template import Template
from podscaler.adapter.naming.metric_names import RuleError
from podscaler.adapter.promql import partition
from podscaler.api.machinery.requirements import Operator, Requirement
from podscaler.api.machinery.selectors import Selector
from podscaler.api.text.quoting import quoted

_is_object_name = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:_-]{0,251}[A-Za-z0-9])?", re.ASCII).fullmatch
"""A DNS subdomain, or a name of RBAC, whose kinds alone have upper case and colons."""
_NEGATIVE_OPERATORS = frozenset({Operator.NOT_EQUALS, Operator.NOT_IN})
_EQUAL_OPERATORS = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS})
_UNSUPPORTED_OPERATORS = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})


class SelectorNotSupported(ValueError):
    """A metric selector compares numbers, which PromQL's matchers cannot do."""


class QueryTarget(NamedTuple):
    """The series and labels of a query.

    Attributes:
        series: the name of the series.
        resource_label: the label with the names of the objects.
        namespace_label: the label with the objects' namespace; empty if the objects have no namespace.
        selector: selects series by their labels.
        extra_group_by: further labels to group by.
    """

    series: str
    resource_label: str
    namespace_label: str
    selector: Selector
    extra_group_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchQuery:
    """A query whose result serves many objects.

    Attributes:
        promql: the expression.
        namespace_label: the label by which the result is divided into namespaces; empty if it has the objects of one
            namespace, or of none.
        resource_label: the label with the names of the objects.
    """

    promql: str
    namespace_label: str
    resource_label: str


class QueryTemplate:
    """The template of a rule's query, from which expressions are made.

    Args:
        text: the template, such as `sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)`.

    Raises:
        RuleError: the template cannot be parsed.
    """

    def __init__(self, text: str) -> None:
        try:
            self._template = Template(text)
        except TemplateError as error:
            raise RuleError(f"the template {quoted(text)}: {error}") from error
        self._uses_label_values = "LabelValuesByName" in self._template.fields
        self._partitioned: dict[tuple[str, ...], bool] = {}

    def direct(self, target: QueryTarget, namespace: str, names: Sequence[str]) -> str:
        """The expression for objects of a namespace (empty if they have none).

        Raises RuleError if the template cannot be executed, or if it uses LabelValuesByName and a name is not the name
        of an object. Raises SelectorNotSupported for a selector that compares numbers.
        """
        matchers = [_matcher(requirement) for requirement in _sorted_requirements(target.selector)]
        values_by_label = _values_by_label(target.selector)
        if target.namespace_label:
            matchers.append(f"{target.namespace_label}={quoted(namespace)}")
            values_by_label[target.namespace_label] = namespace
        names_pattern = "|".join(names)  # not escaped, as in prometheus-adapter: "." matches itself, too
        matchers.append(f"{target.resource_label}{'=~' if len(names) > 1 else '='}{quoted(names_pattern)}")
        values_by_label[target.resource_label] = names_pattern
        if self._uses_label_values:
            _check_names([namespace, *names] if target.namespace_label else names)
        return self._render(target.series, matchers, values_by_label, [target.resource_label, *target.extra_group_by])

    def external(self, series: str, namespace_label: str, namespace: str, selector: Selector) -> str:
        """The expression for an external metric; without a namespace where its label is empty.

        Raises the exceptions of `direct`.
        """
        matchers = [_matcher(requirement) for requirement in _sorted_requirements(selector)]
        values_by_label = _values_by_label(selector)
        if namespace_label:
            matchers.append(f"{namespace_label}={quoted(namespace)}")
            values_by_label[namespace_label] = namespace
            if self._uses_label_values:
                _check_names([namespace])
        return self._render(series, matchers, values_by_label, [])

    def find_batch(self, target: QueryTarget, namespace: str) -> BatchQuery | None:
        """The widest batch that has the values of direct queries; None if there is none.

        Raises RuleError if the template cannot be executed, and SelectorNotSupported.
        """
        if self._uses_label_values:
            return None
        label = target.resource_label
        matchers = [_matcher(requirement) for requirement in _sorted_requirements(target.selector)]
        group_by = [label, *target.extra_group_by]
        if target.namespace_label:
            by_namespace = [*group_by, target.namespace_label]
            if self._is_partitioned(target.series, by_namespace, keys=(label, target.namespace_label)):
                of_all_namespaces = [*matchers, f'{target.namespace_label}!=""', f'{label}!=""']
                promql = self._render(target.series, of_all_namespaces, {}, by_namespace)
                return BatchQuery(promql, target.namespace_label, label)
            matchers.append(f"{target.namespace_label}={quoted(namespace)}")
        if not self._is_partitioned(target.series, group_by, keys=(label,)):
            return None
        promql = self._render(target.series, [*matchers, f'{label}!=""'], {}, group_by)
        return BatchQuery(promql, namespace_label="", resource_label=label)

    def _is_partitioned(self, series: str, group_by: Sequence[str], keys: tuple[str, ...]) -> bool:
        """Whether a query for several objects has the values of queries for one; kept for later. Raises RuleError."""
        cache_key = (series, *group_by, *keys)
        if cache_key not in self._partitioned:
            # the mark stands for the matchers of objects; partitioning depends on where they are in the expression
            promql = self._render(series, [partition.MARK_MATCHER], {}, group_by)
            self._partitioned[cache_key] = partition.is_partitioned(promql, frozenset(keys))
        return self._partitioned[cache_key]

    def _render(
        self, series: str, matchers: Sequence[str], values_by_label: dict[str, str], group_by: Sequence[str]
    ) -> str:
        """The PromQL of the template. Raises RuleError."""
        template_data = {
            "Series": series,
            "LabelMatchers": ",".join(matchers),
            "LabelValuesByName": values_by_label,
            "GroupBy": ",".join(group_by),
            "GroupBySlice": list(group_by),
        }
        try:
            promql = self._template.execute(template_data)
        except TemplateError as error:
            raise RuleError(f"the template {quoted(self._template.text)}: {error}") from error
        if not promql:
            raise RuleError(f"the template {quoted(self._template.text)} gives an empty query")
        return promql


def _check_names(names: Iterable[str]) -> None:
    """Raise RuleError for a name that no object has: a template may put it anywhere in an expression."""
    for name in names:
        if not _is_object_name(name):
            raise RuleError(f"{quoted(name)} is no name of an object, and the template has LabelValuesByName")


def _sorted_requirements(selector: Selector) -> list[Requirement]:
    """The requirements in the order of their labels, so that equal selectors give equal queries."""
    return sorted(selector.requirements, key=lambda requirement: requirement.key)


def _values_by_label(selector: Selector) -> dict[str, str]:
    """The values of each label that a selector mentions, as a regular expression: `a|b`; of excluded values, too."""
    return {requirement.key: "|".join(sorted(requirement.values)) for requirement in _sorted_requirements(selector)}


def _matcher(requirement: Requirement) -> str:
    """The PromQL matcher of a requirement. Raises SelectorNotSupported."""
    operator, values = requirement.operator, sorted(requirement.values)
    if operator in _UNSUPPORTED_OPERATORS:
        raise SelectorNotSupported(f"the operator {operator} is not supported by Prometheus")
    if not values:  # Exists, DoesNotExist
        return f'{requirement.key}{"!=" if operator is Operator.EXISTS else "="}""'
    if len(values) == 1 and (operator in _EQUAL_OPERATORS or operator is Operator.NOT_EQUALS):
        return f"{requirement.key}{'=' if operator in _EQUAL_OPERATORS else '!='}{quoted(values[0])}"
    return f"{requirement.key}{'!~' if operator in _NEGATIVE_OPERATORS else '=~'}{quoted('|'.join(values))}"
