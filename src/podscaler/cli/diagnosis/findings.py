"""What `podscaler doctor` reports: findings, each with what to do about it, and sections of facts.

Made by the checks (`metric_checks`, `pod_checks`, `scale_writers`, `capacity_checks`, `events`), which are pure
functions of what was read; `podscaler.cli.diagnosis.examination` calls them and sorts the findings,
`podscaler.cli.diagnosis.doctor` prints them. Sections have the form of those of `podscaler explain`. A new check has an
Area at its place in the order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from podscaler.explain.explanation_parts import Line, Section


class FindingLevel(StrEnum):
    """How bad a finding is, the worst first; NOTE does not count as unhealthy."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Area(StrEnum):
    """What a finding is about, in the order in which findings of the same level are shown."""

    STATE = "state"
    METRICS = "metrics"
    PODS = "pods"
    WRITERS = "writers"
    CAPACITY = "capacity"
    EVENTS = "events"
    LINT = "lint"


class DoctorFinding(msgspec.Struct, frozen=True):
    """One finding.

    Attributes:
        message: one sentence without its full stop.
        fix: what to do: a command, or a change of a field; empty if nothing is known.
    """

    level: FindingLevel
    area: Area
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: its section of facts, and its findings in any order."""

    section: Section
    findings: tuple[DoctorFinding, ...] = ()


_LEVEL_ORDER, _AREA_ORDER = list(FindingLevel), list(Area)


def ordered(findings: Sequence[DoctorFinding]) -> tuple[DoctorFinding, ...]:
    """The findings without repetitions, the most important first: by level, then by area."""

    def rank(finding: DoctorFinding) -> tuple[int, int]:
        return _LEVEL_ORDER.index(finding.level), _AREA_ORDER.index(finding.area)

    return tuple(sorted(dict.fromkeys(findings), key=rank))


def section(title: str, lines: Sequence[tuple[str, str]]) -> Section:
    """A section of labels and texts."""
    return Section(title, tuple([Line(label, description) for label, description in lines]))
