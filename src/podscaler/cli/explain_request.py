"""What `podscaler explain` is asked: which autoscaler, when, and what else it shall decide about.

Made by `podscaler.cli.explain`; `explain_recording` and `explain_cluster` answer it.
"""

import re
from dataclasses import dataclass

from podscaler.api import instants
from podscaler.api.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.clock import NANOSECONDS
from podscaler.core import decide, what_if
from podscaler.core import spec as specs
from podscaler.core.decision import Decision
from podscaler.core.explanation.comparison import Comparison
from podscaler.core.explanation.explained import Explanation
from podscaler.core.history import History
from podscaler.core.model import IncompleteObservation, Observation
from podscaler.core.settings import Settings
from podscaler.core.what_if import Assignment
from podscaler.errors import UsageError

_MINUTE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_SECOND = re.compile(rf"({_MINUTE.pattern}:\d\d)(Z|z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True, slots=True)
class Request:
    """See the module.

    Attributes:
        name, namespace: of the autoscaler; None where they are not given.
        at: the last instant that matters; None: the latest.
        question: what to decide again with; empty: nothing.
    """

    name: str | None = None
    namespace: str | None = None
    at: int | None = None
    question: tuple[Assignment, ...] = ()

    def matches(self, key: str) -> bool:
        """Whether an autoscaler `namespace/name` may be meant."""
        namespace, _, name = key.partition("/")
        return self.name in (None, name) and self.namespace in (None, namespace)

    @property
    def shown(self) -> str:
        """The autoscaler that is asked for, as far as it is named."""
        if self.name is None:
            return f"in namespace {self.namespace}" if self.namespace else ""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Answer:
    """One explanation, and the comparison that was asked for."""

    explanation: Explanation
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a decision is made from."""

    wire: HorizontalPodAutoscalerSpec
    namespace: str
    name: str
    observation: Observation
    past: History
    now: int
    flags: Settings


def decide_again(question: tuple[Assignment, ...], facts: Facts) -> Decision:
    """The decision with another spec about the same facts.

    Raises UsageError for assignments that cannot be used, and where the other spec needs a metric that nobody read.
    """
    wire, flags = what_if.apply(question, facts.wire, facts.flags)
    try:
        spec = specs.read(facts.namespace, facts.name, wire, flags.emulation)
        return decide.decide(spec, facts.observation, facts.past, facts.now, flags)
    except IncompleteObservation as error:
        raise UsageError(f"what-if: this spec would look at a metric that was not read then: {error}") from None


def parse_name(name: str | None, namespace: str | None) -> tuple[str | None, str | None]:
    """Name and namespace of NAME or NAMESPACE/NAME. Raises UsageError where they contradict each other."""
    if name is None or "/" not in name:
        return name, namespace
    found, _, rest = name.partition("/")
    if namespace not in (None, found):
        raise UsageError(f"{name} is not in the namespace {namespace}")
    return rest, found


def parse_time(text: str) -> int:
    """The last instant (ns) that `2026-01-31T12:00:00Z` means; without a zone it is UTC, without seconds the minute.

    Raises UsageError for anything else.
    """
    try:
        if _MINUTE.fullmatch(text):
            return instants.parse(f"{text}:00Z") + 60 * NANOSECONDS - 1
        second = _SECOND.fullmatch(text)
        if second is None:
            return instants.parse(text)
        return instants.parse(f"{second[1]}{second[2] or 'Z'}") + NANOSECONDS - 1
    except ValueError:
        raise UsageError(f'--at "{text}" is not a time such as 2026-01-31T12:00:00Z') from None
