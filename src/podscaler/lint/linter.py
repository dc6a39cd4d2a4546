"""Runs all rules on a set of objects and sorts their findings by file and line.

Called by `podscaler lint`; `podscaler.lint.rulebook` lists the rules.

Invariant: a finding is reported unless the annotation of an object that it is about names its rule, or the API server
rejects the field that it is about.
"""

from collections.abc import Iterable, Iterator, Sequence

from podscaler.api.text.field_lines import Lines
from podscaler.lint import rulebook
from podscaler.lint.model.findings import Finding, Rule, RuleFinding
from podscaler.lint.model.items import Item
from podscaler.lint.model.lint_context import LintContext, LintedCluster
from podscaler.lint.rules import validity


def lint(items: Iterable[Item], cluster: LintedCluster | None = None, *, files_only: bool = False) -> list[Finding]:
    """All findings, by file, line and rule.

    Args:
        items: all objects.
        cluster: what is known of the cluster; None for files alone.
        files_only: whether findings about objects of the cluster alone are left out; these objects are context only.
    """
    context = LintContext(items, cluster)
    lines: dict[tuple[str, int], Lines] = {}
    found = [
        _finding(rule, each, lines)
        for rule, each in _all(rulebook.RULES, context)
        if not (files_only and _is_all_live(each))
    ]
    return sorted(dict.fromkeys(found), key=_place)


def _all(rules: Sequence[Rule], context: LintContext) -> Iterator[tuple[Rule, RuleFinding]]:
    for rule in rules:
        for found in rule.check(context):
            if not _is_ignored(rule, found) and not _is_rejected(rule, found):
                yield rule, found


def _is_ignored(rule: Rule, found: RuleFinding) -> bool:
    return any(rule.id in item.ignored for item in (found.item, found.other) if item)


def _is_rejected(rule: Rule, found: RuleFinding) -> bool:
    """Whether the finding is about a field that the API server rejects: that value has a finding already."""
    if rule in (validity.refused, validity.zero_without_waking_metric) or not found.field:
        return False
    return any(
        fault.field and (_is_within(found.field, fault.field) or _is_within(fault.field, found.field))
        for fault in found.item.faults
    )


def _is_within(field: str, parent: str) -> bool:
    return field == parent or field.startswith((f"{parent}.", f"{parent}["))


def _is_all_live(found: RuleFinding) -> bool:
    return found.item.origin.is_live and (found.other is None or found.other.origin.is_live)


def _finding(rule: Rule, found: RuleFinding, lines: dict[tuple[str, int], Lines]) -> Finding:
    item = found.item
    return Finding(
        rule,
        item.api_version,
        item.kind,
        item.namespace,
        item.name,
        found.field,
        found.message,
        found.fix,
        item.origin.file,
        _line(item, found.field, lines),
    )


def _line(item: Item, field: str, lines: dict[tuple[str, int], Lines]) -> int:
    origin = item.origin
    if origin.is_live:
        return 0
    document = lines.setdefault((origin.file, origin.line), Lines(origin.text, origin.line))
    return document.line_of(f"{origin.path}.{field}" if origin.path and field else origin.path or field)


def _place(finding: Finding) -> tuple[str, int, str, str, str]:
    return finding.file, finding.line, finding.subject, finding.rule.id, finding.message
