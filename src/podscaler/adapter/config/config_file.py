"""Loads the adapter's configuration file, whose format is prometheus-adapter's.

Called by `podscaler adapter` at its start. A file that cannot be parsed is an error with file, line and field; regular
expressions and templates are checked later (`naming.rule_naming`), so that an invalid rule does not affect the others.
A new field: an attribute in `config.rules`, and its name and its type in the function here that makes that class.

Source: prometheus-adapter v0.12.0, the format of its configuration.
"""

import re
from pathlib import Path

from podscaler.adapter.config import yaml_nodes
from podscaler.adapter.config.rules import (
    AdapterConfig,
    DiscoveryRule,
    GroupResource,
    ResourceMapping,
    ResourceRule,
    ResourceRules,
    SeriesFilter,
)
from podscaler.adapter.config.yaml_nodes import YamlNode
from podscaler.api.text.quoting import quoted
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError

# the largest unit first: a duration has each unit once at most, in this order
_UNITS_S = (
    ("y", 31_536_000.0),
    ("w", 604_800.0),
    ("d", 86_400.0),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
    ("ms", 0.001),
)
_DURATION = re.compile("".join(f"(?:([0-9]+){unit})?" for unit, _ in _UNITS_S))


def load(path: Path) -> AdapterConfig:
    """The configuration of a file. The call blocks. Raises UsageError."""
    try:
        config_text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"--config {path}: {cause}") from error
    return parse(config_text, str(path))


def parse(config_text: str, file: str) -> AdapterConfig:
    """The configuration in the text of a file; `file` is its name for messages. Raises UsageError."""
    fields = yaml_nodes.root(config_text, file).fields("rules", "externalRules", "resourceRules")
    return AdapterConfig(
        rules=tuple(_rule(rule_node) for rule_node in fields["rules"].items()),
        external_rules=tuple(_rule(rule_node) for rule_node in fields["externalRules"].items()),
        resource_rules=None if fields["resourceRules"].is_absent else _resource_rules(fields["resourceRules"]),
    )


def _rule(node: YamlNode) -> DiscoveryRule:
    """A rule for discovered metrics."""
    fields = node.fields("seriesQuery", "seriesFilters", "resources", "name", "metricsQuery")
    name_fields = fields["name"].fields("matches", "as")
    return DiscoveryRule(
        place=node.place,
        series_query=fields["seriesQuery"].text(),
        filters=tuple(_filter(filter_node) for filter_node in fields["seriesFilters"].items()),
        resources=_resource_mapping(fields["resources"]),
        name_matches=name_fields["matches"].text(),
        name_as=name_fields["as"].text(),
        metrics_query=fields["metricsQuery"].text(),
        query_place=fields["metricsQuery"].place,
    )


def _filter(node: YamlNode) -> SeriesFilter:
    """A filter of `seriesFilters`."""
    fields = node.fields("is", "isNot")
    return SeriesFilter(fields["is"].text(), fields["isNot"].text())


def _resource_mapping(node: YamlNode) -> ResourceMapping:
    """The labels of resources that a rule's `resources` states; `namespaced` is true where it is absent."""
    fields = node.fields("template", "overrides", "namespaced")
    is_namespaced = fields["namespaced"].find_boolean()
    overrides = {label: _group_resource(resource) for label, resource in fields["overrides"].entries().items()}
    return ResourceMapping(fields["template"].text(), overrides, is_namespaced is not False)


def _group_resource(node: YamlNode) -> GroupResource:
    """A resource of `overrides`."""
    fields = node.fields("group", "resource")
    return GroupResource(fields["group"].text(), fields["resource"].text())


def _resource_rules(node: YamlNode) -> ResourceRules:
    """The rules for CPU and memory of `resourceRules`."""
    fields = node.fields("cpu", "memory", "window")
    return ResourceRules(
        _resource_rule(fields["cpu"]), _resource_rule(fields["memory"]), window_ns=_window_ns(fields["window"])
    )


def _resource_rule(node: YamlNode) -> ResourceRule:
    """The rule for CPU or memory."""
    fields = node.fields("containerQuery", "nodeQuery", "resources", "containerLabel")
    return ResourceRule(
        place=node.place,
        container_query=fields["containerQuery"].text(),
        node_query=fields["nodeQuery"].text(),
        resources=_resource_mapping(fields["resources"]),
        container_label=fields["containerLabel"].text(),
    )


def _window_ns(node: YamlNode) -> int:
    """A duration as Prometheus writes it, in nanoseconds; 0 if it is absent. Raises UsageError, also for ""."""
    window_text = node.text()  # empty if it is absent
    if window_text == "0":  # the only number that Prometheus accepts without a unit
        return 0
    match = _DURATION.fullmatch(window_text)
    if match is None or (not window_text and not node.is_absent):
        raise UsageError(f'{node.place}: {quoted(window_text)} is not a duration such as "5m" or "1h30m"')
    amounts = zip(match.groups(), _UNITS_S, strict=True)
    return sum(round(int(number) * unit_s * NANOSECONDS) for number, (_, unit_s) in amounts if number)
