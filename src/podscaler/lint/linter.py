"""Runs all rules on a set of objects and sorts their findings by file and line.

Called by `podscaler.cli.lint.lint` and `podscaler.cli.diagnosis.examination`; `podscaler.lint.rulebook` lists the
rules. Example: an autoscaler with equal minReplicas and maxReplicas gives the Finding PSL014 with the file and the line
of `spec.maxReplicas`.

Invariant: a finding is reported unless the annotation of an object that it is about names its rule, or the API server
rejects the field that it is about.
"""

from collections.abc import Iterable, Iterator, Sequence

from podscaler.api.text.field_lines import FieldLines
from podscaler.lint import rulebook
from podscaler.lint.model.findings import Finding, Rule, RuleFinding
from podscaler.lint.model.lint_context import LintContext, LintedCluster
from podscaler.lint.model.linted_item import Item
from podscaler.lint.rules import validity


def lint(items: Iterable[Item], cluster: LintedCluster | None = None, *, files_only: bool = False) -> list[Finding]:
    """All findings, by file, line and rule.

    Args:
        items: the objects of files and of the cluster.
        cluster: what discovery shows of the cluster; None if only files are linted.
        files_only: whether findings about objects of the cluster alone are left out; these objects are context only.
    """
    context = LintContext(items, cluster)
    lines: dict[tuple[str, int], FieldLines] = {}
    findings = []
    for rule, finding in _findings(rulebook.RULES, context):
        if not (files_only and _is_about_cluster_only(finding)):
            findings.append(_with_line(rule, finding, lines))
    return sorted(dict.fromkeys(findings), key=_sort_key)


def _findings(rules: Sequence[Rule], context: LintContext) -> Iterator[tuple[Rule, RuleFinding]]:
    """The findings of all rules, without those that an annotation switches off, or that an API error covers."""
    for rule in rules:
        for finding in rule.check(context):
            if not _is_ignored(rule, finding) and not _is_rejected(rule, finding):
                yield rule, finding


def _is_ignored(rule: Rule, finding: RuleFinding) -> bool:
    """Whether an annotation of an object that the finding is about switches the rule off."""
    return any(rule.id in item.ignored_rule_ids for item in (finding.item, finding.other_item) if item)


def _is_rejected(rule: Rule, finding: RuleFinding) -> bool:
    """Whether the finding is about a field that the API server rejects: that value has a finding already."""
    is_of_api_error = rule in (validity.refused, validity.zero_without_waking_metric)  # these report the API errors
    if is_of_api_error or not finding.field:
        return False
    rejected_fields = [api_error.field for api_error in finding.item.api_errors if api_error.field]
    return any(_is_within(finding.field, field) or _is_within(field, finding.field) for field in rejected_fields)


def _is_within(field: str, parent: str) -> bool:
    return field == parent or field.startswith((f"{parent}.", f"{parent}["))


def _is_about_cluster_only(finding: RuleFinding) -> bool:
    return finding.item.origin.is_live and (finding.other_item is None or finding.other_item.origin.is_live)


def _with_line(rule: Rule, finding: RuleFinding, lines: dict[tuple[str, int], FieldLines]) -> Finding:
    """The finding of a rule with the line of its field."""
    item = finding.item
    return Finding(
        rule=rule,
        api_version=item.api_version,
        kind=item.kind,
        namespace=item.namespace,
        name=item.name,
        field=finding.field,
        message=finding.message,
        fix=finding.fix,
        file=item.origin.file,
        line=_line(item, finding.field, lines),
    )


def _line(item: Item, field: str, lines: dict[tuple[str, int], FieldLines]) -> int:
    """The line of a field in its file; 0 for an object of a cluster. `lines` caches the lines of each document."""
    origin = item.origin
    if origin.is_live:
        return 0
    field_lines = lines.setdefault((origin.file, origin.line), FieldLines(origin.text, origin.line))
    return field_lines.line_of(".".join(filter(None, (origin.path, field))))


def _sort_key(finding: Finding) -> tuple[str, int, str, str, str]:
    return finding.file, finding.line, finding.subject, finding.rule.id, finding.message
