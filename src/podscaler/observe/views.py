"""Defines the data that views of autoscalers show, in the JSON form in which the dashboard's server sends it.

`podscaler.observe.live_cluster` and the modules that it calls make it; the page of the dashboard and the terminal view
read it. Invariants: instants are integer milliseconds since the epoch, counts are integers, None is "not known", and a
field that is known to be absent is an empty text or list. All texts are plain text, never HTML. A new field is filled
where the view is made, and shown by the dashboard's page and by `podscaler.cli.top`.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec


class View(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The base class of all views: camelCase in JSON, every field present."""


class MetricView(View, frozen=True, gc=False):
    """One metric of an autoscaler against its target.

    Attributes:
        name: the resource or the metric, with its container or object where it has one: `cpu`, `cpu of app`.
        type: as in `spec.metrics`.
        current, target: in `unit`; None if they are not known.
        unit: `percent` of the requests, or `milli`: thousandths of the metric's unit.
        text: as kubectl prints it: `63%/70%`.
    """

    name: str
    type: str
    current: int | None
    target: int | None
    unit: str
    text: str


class AutoscalerRow(View, frozen=True, gc=False):
    """One autoscaler in the list.

    Attributes:
        kind: HorizontalPodAutoscaler or PodAutoscaler.
        state: a word (`podscaler.observe.health`).
        severity: 0 (fine) to 3 (worst).
        reason: one sentence about the state; may be empty.
        target: `Deployment/web`.
        replicas: of the target's scale.
        desired: what the metrics propose before any limit; None if there is no conclusion.
        ready: the ready pods of the target.
        last_scale_at: the last rescale.
        changed_at: the latest change of state, replicas or desired replicas.
        sparkline: the replicas of the last 30 minutes, at most 30 values, oldest first.
        decided_by: the field manager that wrote the status; empty if it is not known.
    """

    namespace: str
    name: str
    kind: str
    state: str
    severity: int
    reason: str
    target: str
    replicas: int | None
    desired: int | None
    ready: int | None
    min: int
    max: int
    metrics: tuple[MetricView, ...]
    last_scale_at: int | None
    changed_at: int | None
    sparkline: tuple[int, ...]
    decided_by: str


class AutoscalerList(View, frozen=True, gc=False):
    """All autoscalers that the viewer may see.

    Attributes:
        now: the server's clock.
        cluster: the name of the context, or the server's address.
        since: from when on decisions are known; None if no decision is known yet.
        since_reason: why nothing before is known, in a sentence.
        rows: the worst first, then by namespace and name.
        event_id: the position from which events go on after this list; empty if there are no events.
    """

    now: int
    cluster: str
    since: int | None
    since_reason: str
    rows: tuple[AutoscalerRow, ...]
    event_id: str = ""


class PlottedMetric(View, frozen=True, gc=False):
    """A metric over time, aligned with `DecisionTimeline.at`.

    Attributes:
        tolerance_down, tolerance_up: as fractions of the target: 0.1 is 10 %.
    """

    name: str
    unit: str
    current: tuple[int | None, ...]
    target: tuple[int | None, ...]
    tolerance_down: float
    tolerance_up: float


class DecisionTimeline(View, frozen=True, gc=False):
    """Replicas and metrics over time; all lists have the length of `at`, at most 2,000.

    Attributes:
        replicas: of the target's scale, before the sync.
        desired: what the metrics propose before any limit.
        limited: after stabilization, policies and bounds: what is written.
    """

    at: tuple[int, ...]
    replicas: tuple[int | None, ...]
    desired: tuple[int | None, ...]
    limited: tuple[int | None, ...]
    ready: tuple[int | None, ...]
    min: tuple[int, ...]
    max: tuple[int, ...]
    metrics: tuple[PlottedMetric, ...]


class MarkKind(StrEnum):
    """What a decision did."""

    UP = "up"
    DOWN = "down"
    LIMITED = "limited"
    """A policy or a bound changed the count that the metrics propose."""
    HELD = "held"
    """A window, a cooldown or a failed metric keeps the count."""
    FAILED = "failed"
    SAME = "same"


class Mark(View, frozen=True, gc=False):
    """One decision whose explanation is known.

    Attributes:
        id: opaque; for the request of the explanation.
        from_, to: the replicas before and after; None if they are not known.
        summary: one sentence, as `podscaler explain` prints it.
        carried_out: whether this process wrote it.
    """

    id: str
    at: int
    kind: MarkKind
    from_: int | None = msgspec.field(name="from")
    to: int | None
    summary: str
    carried_out: bool


class EventView(View, frozen=True, gc=False):
    """One Event on the autoscaler or its target; `object` is `Kind/name`."""

    at: int | None
    type: str
    reason: str
    message: str
    count: int
    object: str


class PodView(View, frozen=True, gc=False):
    """One pod of the target.

    Attributes:
        requests, usage: in thousandths by the name of the resource.
        ignored: why its sample does not count as it is; empty if it counts.
    """

    name: str
    phase: str
    ready: bool
    reason: str
    started_at: int | None
    requests: dict[str, int]
    usage: dict[str, int]
    ignored: str


class LintView(View, frozen=True, gc=False):
    """One lint finding; `place` is the path of the field."""

    rule: str
    severity: str
    message: str
    fix: str
    place: str


class ConditionView(View, frozen=True, gc=False):
    """One condition of the autoscaler's status."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_at: int | None


class Detail(View, frozen=True, gc=False):
    """One autoscaler, over a range of time.

    Attributes:
        decisions: oldest first.
        events: newest first.
        yaml: the object without managedFields.
        since, since_reason: as in AutoscalerList, of this autoscaler.
        notes: what could not be read, a sentence each.
    """

    now: int
    row: AutoscalerRow
    timeline: DecisionTimeline
    decisions: tuple[Mark, ...]
    events: tuple[EventView, ...]
    pods: tuple[PodView, ...]
    lint: tuple[LintView, ...]
    conditions: tuple[ConditionView, ...]
    yaml: str
    since: int | None
    since_reason: str
    notes: tuple[str, ...] = ()


class DecisionView(View, frozen=True, gc=False):
    """The explanation of one decision.

    Attributes:
        explanation: the JSON object that `podscaler explain -o json` prints.
        text: the text that `podscaler explain` prints.
    """

    explanation: dict[str, Any]
    text: str


class WhatIfNow(View, frozen=True, gc=False):
    """The latest recorded sync decided again with another spec.

    Attributes:
        before, after: explanations.
        differences: one phrase each; empty if the outcome is the same.
        text: what `podscaler explain --what-if` prints.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    differences: tuple[str, ...]
    text: str


class WhatIfOverTime(View, frozen=True, gc=False):
    """The recorded syncs decided again with another spec, each with the facts that were recorded.

    Attributes:
        limited: the replicas that would be written, aligned with `at`.
        assumption: what the result does not consider, in a sentence.
    """

    at: tuple[int, ...]
    limited: tuple[int | None, ...]
    assumption: str


class WhatIfView(View, frozen=True, gc=False):
    """The result of a what-if; `patch` is YAML for `kubectl patch --type merge`."""

    now: WhatIfNow
    over_time: WhatIfOverTime
    patch: str


class Notice(View, frozen=True, gc=False):
    """A message about the connection to the cluster; `level` is `info`, `warning` or `error`."""

    level: str
    text: str


class Gone(View, frozen=True, gc=False):
    """An autoscaler was deleted, or may not be seen any more."""

    namespace: str
    name: str


class TimelineChange(View, frozen=True, gc=False):
    """The points and marks of one autoscaler after the last ones that were sent."""

    namespace: str
    name: str
    timeline: DecisionTimeline
    decisions: tuple[Mark, ...]


class ViewSource(Protocol):
    """What a terminal view and the dashboard's server read."""

    def rows(self) -> Sequence[AutoscalerRow]:
        """All autoscalers that are known, the worst first."""
        ...

    async def detail(self, namespace: str, name: str, from_ms: int | None, to_ms: int | None) -> Detail:
        """One autoscaler. Raises `UnknownAutoscaler`."""
        ...

    async def explanation(self, namespace: str, name: str, mark_id: str) -> DecisionView:
        """The explanation of a mark. Raises `UnknownAutoscaler`, `UnknownDecision`."""
        ...
