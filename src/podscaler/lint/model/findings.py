"""Defines what a lint rule is, and the findings that it yields and that the command reports.

Rules (`podscaler.lint.rules`) are functions with the decorator `rule` that yield `RuleFinding`s;
`podscaler.lint.linter` makes `Finding`s of them, with file and line, for the output of the command.
`podscaler.lint.rulebook` says where a new rule goes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import Item

DOCS = "docs/lint.md"


class Severity(StrEnum):
    """How bad a finding is.

    error: it does not work as written. warning: it works, but not as probably intended. info: it may be unintended.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One finding as a rule returns it.

    Attributes:
        item: the object in which the problem can be corrected.
        field: the path of the field within it, as autoscaling/v2 names it; empty: the whole object.
        message: the problem and its effect.
        fix: what the user can do about it.
        other_item: another object that is involved, whose annotation switches the rule off, too; None if there is none.
    """

    item: Item
    field: str
    message: str
    fix: str
    other_item: Item | None = None


Check = Callable[[LintContext], Iterator[RuleFinding]]
"""A function that yields all findings of a rule, in any order."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One lint rule.

    Attributes:
        id: `PSL` and three digits; it never changes and is never used for another rule.
        name: in lower case with hyphens; with the id it is the anchor of its section in DOCS.
        severity: the severity of all its findings.
        summary: what it finds, in one sentence.
        check: yields the findings, in any order.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    check: Check

    @property
    def docs(self) -> str:
        """The section of DOCS about the rule."""
        return f"{DOCS}#{self.id.lower()}-{self.name}"


def rule(identifier: str, name: str, severity: Severity, summary: str) -> Callable[[Check], Rule]:
    """Decorator that makes a Rule of its check; the arguments are the attributes of the Rule."""
    return lambda check: Rule(identifier, name, severity, summary, check)


def about(autoscaler: LintedAutoscaler, path: str, message: str, fix: str) -> RuleFinding:
    """A finding about the field at `path` of an autoscaler; the annotation of its target switches it off, too."""
    return RuleFinding(autoscaler.item, path, message, fix, other_item=autoscaler.target)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding as it is reported.

    Attributes:
        api_version, kind, namespace, name: identify the object; empty if the file cannot be read as objects.
        field: the path of the field (`spec.metrics[0].type`); empty: the whole object.
        message, fix: as in RuleFinding.
        file: empty for an object of a cluster.
        line: counted from 1; 0 if there is no file.
    """

    rule: Rule
    api_version: str
    kind: str
    namespace: str
    name: str
    field: str
    message: str
    fix: str
    file: str
    line: int

    @property
    def subject(self) -> str:
        """The object, `Deployment shop/web`; empty without one."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}" if self.kind else ""
