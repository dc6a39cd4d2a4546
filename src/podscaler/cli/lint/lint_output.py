"""Formats the findings of `podscaler lint` as text, JSON or YAML; `podscaler.cli.lint.lint_sarif` formats SARIF.

Called by `podscaler.cli.lint.lint`. Text is a paragraph for each finding: `web.yaml:7: error PSL001 ...`, the message,
`fix: ...`, `see: ...`. A new field of findings: a line in `_paragraph`, and an entry in `_finding_fields`.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.text import yaml_output
from podscaler.lint.model.findings import Finding, Severity

_PLURALS = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "infos"}


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings, and how many objects and autoscalers were checked."""

    findings: Sequence[Finding]
    object_count: int
    autoscaler_count: int


def text(report: LintReport) -> str:
    """A paragraph for each finding, and one line that counts them."""
    paragraphs = [_paragraph(finding) for finding in report.findings]
    return "\n\n".join([*paragraphs, _summary(report)])


def _paragraph(finding: Finding) -> str:
    """The lines of one finding: where, what, how to fix it, and where to read more."""
    position = f"{finding.file}:{finding.line}: " if finding.file else ""
    subject = " ".join(part for part in (finding.subject, finding.field) if part)
    lines = [
        f"{position}{finding.rule.severity} {finding.rule.id}{f' {subject}' if subject else ''}",
        f"  {_indented(finding.message)}",
        f"  fix: {finding.fix}",
        f"  see: {finding.rule.docs}",
    ]
    return "\n".join(lines)


def _indented(message: str) -> str:
    return message.replace("\n", "\n  ")


def _summary(report: LintReport) -> str:
    """The last line of the text: how many findings of each severity in how many objects."""
    checked_text = f"{_count_text(report.object_count, 'object')}, {_count_text(report.autoscaler_count, 'autoscaler')}"
    if not report.findings:
        return f"no findings in {checked_text}"
    counts = _count_by_severity(report)
    count_texts = [_count_text(counts[severity], severity) for severity in Severity if counts[severity]]
    return f"{', '.join(count_texts)} in {checked_text}"


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _count_by_severity(report: LintReport) -> Counter[Severity]:
    return Counter(finding.rule.severity for finding in report.findings)


def data(report: LintReport, form: str) -> str:
    """The report as one object in the form `json` or `yaml`."""
    counts = _count_by_severity(report)
    fields = {
        "findings": [_finding_fields(finding) for finding in report.findings],
        "summary": {
            "objects": report.object_count,
            "autoscalers": report.autoscaler_count,
            **{_PLURALS[severity]: counts[severity] for severity in Severity},
        },
    }
    if form == "yaml":
        return yaml_output.write(fields, sort_keys=False).decode()
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def _finding_fields(finding: Finding) -> dict[str, Any]:
    """One finding as JSON-ready data, without empty fields."""
    fields: dict[str, Any] = {
        "rule": finding.rule.id,
        "name": finding.rule.name,
        "severity": str(finding.rule.severity),
        "apiVersion": finding.api_version,
        "kind": finding.kind,
        "namespace": finding.namespace,
        "object": finding.name,
        "field": finding.field,
        "file": finding.file,
        "line": finding.line,
        "message": finding.message,
        "fix": finding.fix,
        "docs": finding.rule.docs,
    }
    return {name: field for name, field in fields.items() if field}
