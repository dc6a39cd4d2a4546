"""What linting reports, and what a rule is.

Rules (`podscaler.lint.rules`) yield what they found as `RuleFinding`; `linter` makes `Finding`s of it, which the
command line prints.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from podscaler.lint.model.items import Item
from podscaler.lint.model.lint_context import Material

DOCS = "docs/lint.md"


class Severity(StrEnum):
    """How bad a finding is.

    error: it does not work as written. warning: it works, with a surprise. info: worth a look.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One thing that a rule found.

    Attributes:
        item: the object in which it is to be mended.
        field: the path of the field within it, as autoscaling/v2 names it; may be empty.
        message: what is wrong, and what follows from it.
        fix: what to do.
        other: another object that is concerned; its annotation switches the rule off too.
    """

    item: Item
    field: str
    message: str
    fix: str
    other: Item | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: stable; never used for anything else.
        name: for people, and the anchor of its section in DOCS.
        severity: of all its findings.
        summary: one sentence.
        check: everything that it finds, in any order.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    check: Callable[[Material], Iterator[RuleFinding]]

    @property
    def docs(self) -> str:
        """Where it is explained."""
        return f"{DOCS}#{self.id.lower()}-{self.name}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding as it is reported.

    Attributes:
        rule: what found it.
        api_version, kind, namespace, name: the object; empty where a file cannot be read as objects.
        field: the path of the field; may be empty.
        message, fix: for people.
        file: empty for an object of a cluster.
        line: counted from 1; 0 where there is no file.
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
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}" if self.kind else ""
