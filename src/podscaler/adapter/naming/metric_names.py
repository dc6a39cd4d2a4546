"""Derives the names of metrics from the names of series, and filters series by name, as a rule says.

Called by `naming.rule_naming`. With `matches: "^(.*)_total$"` and `as: "${1}_per_second"` the series
`http_requests_total` is the metric `http_requests_per_second`.

Source: prometheus-adapter v0.12.0 (naming, series filters); Go's Regexp.Expand.
"""

from podscaler.adapter.config.rules import DiscoveryRule, SeriesFilter
from podscaler.api.machinery import re2_patterns
from podscaler.api.machinery.re2_patterns import Pattern, PatternError
from podscaler.api.text.quoting import quoted


class RuleError(ValueError):
    """A rule cannot be used; str() says why, and names the field."""


class MetricNames:
    """The names of metrics by one rule.

    Args:
        rule: its `name` and `seriesFilters` apply.

    Raises:
        RuleError: a regular expression is invalid, a filter has none or two, or `as` is missing.
    """

    def __init__(self, rule: DiscoveryRule) -> None:
        self._filters = [_compile_filter(index, series_filter) for index, series_filter in enumerate(rule.filters)]
        try:
            self._pattern = re2_patterns.compile_with_groups(rule.name_matches or ".*")
        except PatternError as error:
            raise RuleError(f"name.matches {quoted(rule.name_matches)}: {error}") from error
        self._template = rule.name_as
        if not self._template:
            if self._pattern.group_count > 1:
                groups = f"{self._pattern.group_count} groups"
                raise RuleError(f"name.as is needed: name.matches {quoted(rule.name_matches)} has {groups}")
            self._template = f"${self._pattern.group_count}"  # $1, the only group; $0, the whole name, without groups

    def find_name(self, series: str) -> str | None:
        """The name of the metric; None if a filter or `name.matches` excludes the series."""
        if not all(pattern.matches(series) is is_wanted for pattern, is_wanted in self._filters):
            return None
        groups = self._pattern.find_groups(series)
        return None if groups is None else self._pattern.expand(self._template, groups)


def _compile_filter(index: int, series_filter: SeriesFilter) -> tuple[Pattern, bool]:
    """The filter's pattern, and whether series must match it (`is`) or must not (`isNot`). Raises RuleError."""
    field = f"seriesFilters[{index}]"
    if bool(series_filter.matching) == bool(series_filter.not_matching):
        raise RuleError(f"{field}: exactly one of `is` and `isNot` is needed")
    pattern_text = series_filter.matching or series_filter.not_matching
    try:
        return re2_patterns.compile_cached(pattern_text), bool(series_filter.matching)
    except PatternError as error:
        raise RuleError(f"{field} {quoted(pattern_text)}: {error}") from error
