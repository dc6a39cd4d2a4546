"""Defines and parses the request of `podscaler explain` (which autoscaler, at which time, the what-if), and its result.

`podscaler.cli.explain.explain` makes the request; `explain_recording` and `explain_cluster` return the result.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.cli.explain.managing_controller import ManagingController
from podscaler.controller.options import autoscaler_kinds
from podscaler.controller.options.autoscaler_kinds import HPA, NAMES, AutoscalerKind
from podscaler.core.model.settings import Settings
from podscaler.explain.comparison import Comparison
from podscaler.explain.explained import Explanation
from podscaler.explain.what_if import Assignment
from podscaler.kube.informers.cache import Key

_TO_MINUTE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_TO_SECOND = re.compile(rf"({_TO_MINUTE.pattern}:\d\d)(Z|z|[+-]\d\d:\d\d)?")


class AutoscalerName(NamedTuple):
    """The name of an autoscaler; None for parts that are not given."""

    name: str | None = None
    namespace: str | None = None
    kind: AutoscalerKind | None = None


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """The parsed arguments of one `podscaler explain`.

    Attributes:
        name, namespace, kind: identify the autoscaler; None for those that the user did not give.
        at_ns: the last instant to explain; None for the latest sync.
        assignments: the changes of the what-if; empty for none.
    """

    name: str | None = None
    namespace: str | None = None
    at_ns: int | None = None
    assignments: tuple[Assignment, ...] = ()
    kind: AutoscalerKind | None = None

    def matches(self, key: str) -> bool:
        """Whether an autoscaler `namespace/name` or `namespace/podautoscaler/name` may be meant."""
        namespace, _, prefixed_name = key.partition("/")
        kind = autoscaler_kinds.of_key((namespace, prefixed_name))
        _, name = autoscaler_kinds.object_key((namespace, prefixed_name))
        return self.name in (None, name) and self.namespace in (None, namespace) and self.kind in (None, kind)

    @property
    def description(self) -> str:
        """The requested autoscaler for messages, as far as it is named; empty if it is not."""
        if self.name is None:
            return f"in namespace {self.namespace}" if self.namespace else ""
        name_text = self.name if self.kind in (None, HPA) else f"{self.kind.flag}/{self.name}"
        return f"{self.namespace}/{name_text}" if self.namespace else name_text


@dataclass(frozen=True, slots=True)
class SettingsWithOrigin:
    """The settings of decisions.

    Attributes:
        origin: where they come from ("the flags of this command"), or the assumption ("X has default settings").
        is_assumed: whether `origin` is an assumption.
    """

    decision: Settings
    origin: str
    is_assumed: bool = False

    @property
    def assumption(self) -> str:
        """A sentence about what is assumed; empty if nothing is."""
        if not self.is_assumed:
            return ""
        return f"Assumes that {self.origin}, as they are not visible: give the flags that it was started with."


@dataclass(frozen=True, slots=True)
class ExplainResult:
    """One explanation, with the further results that were requested.

    Attributes:
        comparison: with the what-if; None if there was no what-if.
        manager: the controller that manages the autoscaler; None for a recording.
        settings: the settings of the decision; None for a recording, which has its own.
    """

    explanation: Explanation
    comparison: Comparison | None = None
    manager: ManagingController | None = None
    settings: SettingsWithOrigin | None = None


def parse_name(name_text: str | None, namespace: str | None) -> AutoscalerName:
    """Parse NAME, NAMESPACE/NAME, KIND/NAME or NAMESPACE/KIND/NAME; KIND is `hpa` or `podautoscaler`, for example.

    None means no name. A namespace with the name of a kind must be given as `namespace`, the value of `-n`. Raises
    UsageError for anything else, and if `name_text` and `namespace` name different namespaces.
    """
    if name_text is None:
        return AutoscalerName(None, namespace)
    *qualifiers, name = name_text.split("/")
    kind = NAMES.get(qualifiers[-1]) if qualifiers else None
    prefix = qualifiers if kind is None else qualifiers[:-1]  # the namespace, or nothing
    if not name or len(prefix) > 1 or "" in prefix:
        raise UsageError(f'"{name_text}" is none of NAME, NAMESPACE/NAME, KIND/NAME and NAMESPACE/KIND/NAME')
    if prefix and namespace not in (None, prefix[0]):
        raise UsageError(f"{name_text} is not in the namespace {namespace}")
    return AutoscalerName(name, prefix[0] if prefix else namespace, kind)


def distinct_names(keys: Sequence[str]) -> list[str]:
    """Names of autoscalers that `parse_name` distinguishes, sorted: with their kinds if there are two kinds.

    Args:
        keys: `namespace/name` or `namespace/podautoscaler/name`, as the controller's keys.
    """
    pairs = [(namespace, name) for namespace, _, name in (key.partition("/") for key in keys)]
    is_mixed = len({autoscaler_kinds.of_key(pair) for pair in pairs}) > 1
    return sorted("/".join(_with_kind(pair) if is_mixed else pair) for pair in pairs)


def _with_kind(key: Key) -> Key:
    """The key with the kind in the name; that of a PodAutoscaler has it in any case."""
    namespace, name = key
    return key if autoscaler_kinds.of_key(key) is not HPA else (namespace, f"{HPA.flag}/{name}")


def parse_time(time_text: str) -> int:
    """The last instant (ns) that `2026-01-31T12:00:00Z` means; without a zone it is UTC, without seconds the minute.

    Raises UsageError for anything else.
    """
    try:
        if _TO_MINUTE.fullmatch(time_text):
            return instants.parse(f"{time_text}:00Z") + 60 * NANOSECONDS - 1
        match = _TO_SECOND.fullmatch(time_text)
        if match is None:  # with a fraction of a second, or invalid
            return instants.parse(time_text)
        seconds_text, zone = match.groups(default="Z")
        return instants.parse(f"{seconds_text}{zone}") + NANOSECONDS - 1
    except ValueError:
        raise UsageError(f'--at "{time_text}" is not a time such as 2026-01-31T12:00:00Z') from None
