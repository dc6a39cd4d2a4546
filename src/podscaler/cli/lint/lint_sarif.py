"""Formats the findings of `podscaler lint` as SARIF 2.1.0, which code hosts show beside the lines of a change.

Called by `podscaler.cli.lint.lint`. A new severity needs its level in _LEVEL_BY_SEVERITY; new rules need nothing here.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from podscaler.base.version import __version__
from podscaler.lint import rulebook
from podscaler.lint.model.findings import Finding, Rule, Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL_BY_SEVERITY = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def log_text(findings: Sequence[Finding]) -> str:
    """The SARIF log, a JSON text: one run with a descriptor of every rule and a result for each finding."""
    run = {
        "tool": {
            "driver": {
                "name": "podscaler lint",
                "version": __version__,
                "rules": [_descriptor(rule) for rule in rulebook.RULES],
            }
        },
        "results": [_result(finding) for finding in findings],
        "columnKind": "unicodeCodePoints",
    }
    sarif_log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(sarif_log, indent=2, ensure_ascii=False) + "\n"


def _descriptor(rule: Rule) -> dict[str, Any]:
    """A rule as a reportingDescriptor of SARIF."""
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": f"See {rule.docs}"},
        "defaultConfiguration": {"level": _LEVEL_BY_SEVERITY[rule.severity]},
    }


def _result(finding: Finding) -> dict[str, Any]:
    """A finding as a result of SARIF."""
    return {
        "ruleId": finding.rule.id,
        "ruleIndex": rulebook.RULES.index(finding.rule),
        "level": _LEVEL_BY_SEVERITY[finding.rule.severity],
        "message": {"text": f"{finding.subject or finding.file}: {finding.message}. To do: {finding.fix}."},
        "locations": [_location(finding)],
    }


def _location(finding: Finding) -> dict[str, Any]:
    """The location of a finding in SARIF: the file and line, the object and field."""
    location: dict[str, Any] = {}
    if finding.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {"startLine": finding.line},
        }
    if finding.subject:
        name = f"{finding.subject} {finding.field}" if finding.field else finding.subject
        location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "object"}]
    return location


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
