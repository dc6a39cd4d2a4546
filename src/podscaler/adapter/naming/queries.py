"""Builds the PromQL expressions for values of metrics from the template of a rule.

`naming.rule_naming` and `providers.resource_metrics` have a QueryTemplate for each rule. A *direct* query asks for
certain objects, as prometheus-adapter does. A *batch* asks for the objects of a whole namespace or of all namespaces;
its result is divided by labels. There is a batch only where `promql.partition` finds that the values are the same, and
where the template does not use `LabelValuesByName`, whose values are the names of the objects.

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

_OBJECT_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:_-]{0,251}[A-Za-z0-9])?", re.ASCII).fullmatch
"""A DNS subdomain, or a name of RBAC, whose kinds alone have upper case and colons."""
_NEGATIVE = frozenset({Operator.NOT_EQUALS, Operator.NOT_IN})
_EQUAL = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS})
_UNSUPPORTED = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})


class SelectorNotSupported(ValueError):
    """A metric selector compares numbers, which PromQL's matchers cannot do."""


class QueryTarget(NamedTuple):
    """The series and labels of a query.

    Attributes:
        series: the name of the series.
        resource_label: the label with the names of the objects.
        namespace_label: the label with the objects' namespace; empty: the objects have no namespace.
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
        namespace_label: the label by which the result is divided into namespaces; empty: it has the objects of one
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
        self._uses_values = "LabelValuesByName" in self._template.fields
        self._partitioned: dict[tuple[str, ...], bool] = {}

    def direct(self, target: QueryTarget, namespace: str, names: Sequence[str]) -> str:
        """The expression for objects of a namespace (empty where they have none).

        Raises RuleError where the template cannot be executed, or has LabelValuesByName and a name is not one of an
        object, SelectorNotSupported.
        """
        restriction = [_matcher(each) for each in _sorted(target.selector)]
        values = {each.key: "|".join(sorted(each.values)) for each in _sorted(target.selector)}
        if target.namespace_label:
            restriction.append(f"{target.namespace_label}={quoted(namespace)}")
            values[target.namespace_label] = namespace
        names_pattern = "|".join(names)
        restriction.append(f"{target.resource_label}{'=~' if len(names) > 1 else '='}{quoted(names_pattern)}")
        values[target.resource_label] = names_pattern
        if self._uses_values:
            _check_names([namespace, *names] if target.namespace_label else names)
        return self._render(target.series, restriction, values, [target.resource_label, *target.extra_group_by])

    def external(self, series: str, namespace_label: str, namespace: str, selector: Selector) -> str:
        """The expression for an external metric; without a namespace where its label is empty.

        Raises RuleError as `direct`, SelectorNotSupported.
        """
        restriction = [_matcher(each) for each in _sorted(selector)]
        values = {each.key: "|".join(sorted(each.values)) for each in _sorted(selector)}
        if namespace_label:
            restriction.append(f"{namespace_label}={quoted(namespace)}")
            values[namespace_label] = namespace
            if self._uses_values:
                _check_names([namespace])
        return self._render(series, restriction, values, [])

    def find_batch(self, target: QueryTarget, namespace: str) -> BatchQuery | None:
        """The widest batch that has the values of direct queries; None where there is none.

        Raises RuleError where the template cannot be executed, SelectorNotSupported.
        """
        if self._uses_values:
            return None
        label, restriction = target.resource_label, [_matcher(each) for each in _sorted(target.selector)]
        group_by = [label, *target.extra_group_by]
        if target.namespace_label:
            wider = [*group_by, target.namespace_label]
            if self._is_partitioned(target.series, wider, keys=(label, target.namespace_label)):
                matchers = [*restriction, f'{target.namespace_label}!=""', f'{label}!=""']
                return BatchQuery(self._render(target.series, matchers, {}, wider), target.namespace_label, label)
            restriction.append(f"{target.namespace_label}={quoted(namespace)}")
        if not self._is_partitioned(target.series, group_by, keys=(label,)):
            return None
        return BatchQuery(self._render(target.series, [*restriction, f'{label}!=""'], {}, group_by), "", label)

    def _is_partitioned(self, series: str, group_by: Sequence[str], keys: tuple[str, ...]) -> bool:
        known_labels = (series, *group_by, *keys)
        if known_labels not in self._partitioned:
            promql = self._render(series, [partition.MARK_MATCHER], {}, group_by)
            self._partitioned[known_labels] = partition.is_partitioned(promql, frozenset(keys))
        return self._partitioned[known_labels]

    def _render(self, series: str, matchers: Sequence[str], values: dict[str, str], group_by: Sequence[str]) -> str:
        data = {
            "Series": series,
            "LabelMatchers": ",".join(matchers),
            "LabelValuesByName": values,
            "GroupBy": ",".join(group_by),
            "GroupBySlice": list(group_by),
        }
        try:
            promql = self._template.execute(data)
        except TemplateError as error:
            raise RuleError(f"the template {quoted(self._template.text)}: {error}") from error
        if not promql:
            raise RuleError(f"the template {quoted(self._template.text)} gives an empty query")
        return promql


def _check_names(names: Iterable[str]) -> None:
    """Raises RuleError for a name that no object has: a template may put it anywhere in an expression."""
    for name in names:
        if not _OBJECT_NAME(name):
            raise RuleError(f"{quoted(name)} is no name of an object, and the template has LabelValuesByName")


def _sorted(selector: Selector) -> list[Requirement]:
    return sorted(selector.requirements, key=lambda each: each.key)


def _matcher(requirement: Requirement) -> str:
    """The PromQL matcher of a requirement. Raises SelectorNotSupported."""
    operator, values = requirement.operator, sorted(requirement.values)
    if operator in _UNSUPPORTED:
        raise SelectorNotSupported(f"the operator {operator} is not supported by Prometheus")
    if not values:
        return f'{requirement.key}{"!=" if operator is Operator.EXISTS else "="}""'
    if len(values) == 1 and (operator in _EQUAL or operator is Operator.NOT_EQUALS):
        return f"{requirement.key}{'=' if operator in _EQUAL else '!='}{quoted(values[0])}"
    return f"{requirement.key}{'!~' if operator in _NEGATIVE else '=~'}{quoted('|'.join(values))}"
