"""Configurations of prometheus-adapter: what is read, and errors with file, line and field."""

import pytest

from podscaler.adapter.cluster.rest_mapper import ServedResources, mapping_of
from podscaler.adapter.config import config_file
from podscaler.adapter.config.rules import (
    AdapterConfig,
    DiscoveryRule,
    GroupResource,
    Place,
    ResourceMapping,
    SeriesFilter,
)
from podscaler.adapter.naming import rule_naming
from podscaler.base.errors import UsageError

SERVED: ServedResources = mapping_of({"pods": ("v1", "Pod", True), "namespaces": ("v1", "Namespace", False)})
RULE = """
rules:
- seriesQuery: 'hits{pod!=""}'
  seriesFilters: [{isNot: "_total$"}]
  resources: {overrides: {pod: {resource: pod}}, template: "x_<<.Resource>>", namespaced: no}
  name: {matches: "^(.*)$", as: "$1"}
  metricsQuery: sum(<<.Series>>)
"""


def test_a_rule_is_read() -> None:
    """Every field of a rule, with the places of the rule and of its query."""
    resources = ResourceMapping("x_<<.Resource>>", {"pod": GroupResource("", "pod")}, is_namespaced=False)
    rule = DiscoveryRule(
        place=Place("f", 3, "rules[0]"),
        series_query='hits{pod!=""}',
        filters=(SeriesFilter("", "_total$"),),
        resources=resources,
        name_matches="^(.*)$",
        name_as="$1",
        metrics_query="sum(<<.Series>>)",
        query_place=Place("f", 7, "rules[0].metricsQuery"),
    )
    assert config_file.parse(RULE, "f") == AdapterConfig((rule,), (), None)


@pytest.mark.parametrize("text", ["", "rules:", "{}", "rules: []\nexternalRules: null"])
def test_nothing_is_a_configuration(text: str) -> None:
    """A configuration may lack everything."""
    assert config_file.parse(text, "f") == AdapterConfig((), (), None)


@pytest.mark.parametrize(
    ("text", "window_ns"),
    [
        ("0", 0),
        ("5m", 300_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("250ms", 250_000_000),
        ("1d", 86_400_000_000_000),
    ],
)
def test_windows(text: str, window_ns: int) -> None:
    """The window of resource rules is a duration of Prometheus."""
    rules = config_file.parse(f"resourceRules: {{window: {text}}}", "f").resource_rules
    assert rules is not None
    assert rules.window_ns == window_ns


def test_keys_are_merged() -> None:
    """Anchors and merge keys work, as in every YAML file."""
    text = "rules:\n- &one {seriesQuery: a, metricsQuery: b}\n- <<: *one\n  metricsQuery: c\n"
    assert [(each.series_query, each.metrics_query) for each in config_file.parse(text, "f").rules] == [
        ("a", "b"),
        ("a", "c"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("rules: [", "f:1: not YAML: expected the node content, but found '<stream end>'"),
        ("- 1", "f:1: a mapping is expected"),
        ("rules: 1", "f:1: rules: a list is expected"),
        ("rulez: []", 'f:1: unknown field "rulez"; known: rules, externalRules, resourceRules'),
        (
            "rules:\n- seriesQuery: a\n  series: b",
            'f:3: rules[0]: unknown field "series"; known: seriesQuery, seriesFilters, resources, name, metricsQuery',
        ),
        ("rules:\n- seriesQuery: a\n  seriesQuery: b", 'f:3: rules[0]: the field "seriesQuery" stands twice'),
        ("rules:\n- name: {as: [a]}", "f:2: rules[0].name.as: a text is expected"),
        ("rules:\n- resources: {namespaced: 1}", "f:2: rules[0].resources.namespaced: true or false is expected"),
        ('resourceRules:\n  window: "5"', 'f:2: resourceRules.window: "5" is not a duration such as "5m" or "1h30m"'),
    ],
    ids=["no YAML", "a list", "no list", "top", "rule", "twice", "list for text", "number for boolean", "window"],
)
def test_errors_have_their_place(text: str, error: str) -> None:
    """A file that cannot be parsed is one sentence with file, line and field."""
    with pytest.raises(UsageError) as raised:
        config_file.parse(text, "f")
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ("metricsQuery: '<<.Series'", 'f:2: rules[0].metricsQuery: the template "<<.Series": unclosed action'),
        ("metricsQuery: '<<nope .Series>>'", 'the template "<<nope .Series>>": function "nope" not defined'),
        ("name: {matches: '('}", 'f:2: rules[0]: name.matches "(": error parsing regexp: missing closing ): `(`'),
        ("name: {matches: '(a)(b)'}", 'name.as is needed: name.matches "(a)(b)" has 2 groups'),
        ("seriesFilters: [{}]", "seriesFilters[0]: exactly one of `is` and `isNot` is needed"),
        ("seriesFilters: [{is: '['}]", 'seriesFilters[0] "[": error parsing regexp: missing closing ]: `[`'),
        ("resources: {template: '<<.Group>>'}", 'resources.template "<<.Group>>" lacks .Resource'),
        ("resources: {template: '<<.Kind>>'}", 'resources.template "<<.Kind>>": can\'t evaluate field Kind'),
        (
            "resources: {overrides: {app: {group: apps, resource: deployment}}}",
            'resources.overrides.app: the API server does not serve "deployment.apps"',
        ),
    ],
    ids=["action", "function", "name", "groups", "no filter", "filter", "template", "field", "override"],
)
def test_a_bad_rule_does_not_harm_others(fields: str, error: str) -> None:
    """A rule that cannot be used is reported with its place, and the next one is used."""
    rules = config_file.parse(f"rules:\n- {{seriesQuery: a, {fields}}}\n- {{seriesQuery: b}}", "f").rules
    usable, errors = rule_naming.compile_rules(rules, SERVED)
    assert [each.rule.series_query for each in usable] == ["b"]
    assert len(errors) == 1
    assert errors[0].startswith("f:2: rules[0]")
    assert errors[0].endswith(error)
