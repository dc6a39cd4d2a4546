"""Views of autoscalers that a test states, in place of those of a cluster (`podscaler.observe.views.ViewSource`).

Example: `ScriptedViews([row("shop", "web")])` is a cluster with one autoscaler, which has no decisions yet.
"""

from collections.abc import Sequence

import msgspec

from podscaler.base.errors import PodscalerError
from podscaler.observe.views import (
    AutoscalerRow,
    DecisionTimeline,
    DecisionView,
    Detail,
    Mark,
    MarkKind,
    MetricView,
    PlottedMetric,
)

START_MS = 1_795_417_200_000
"""The instant of the last point of every timeline that `detail` makes."""
SYNC_MS = 15_000
"""The distance of the points of these timelines."""


class ScriptedViews:
    """A ViewSource whose answers a test states, and may change at any time.

    Attributes:
        listed: the rows.
        details, explanations: by namespace and name, and by the ID of the mark.
        error: raised by `detail` and `explanation`; None: they succeed.
    """

    def __init__(self, rows: Sequence[AutoscalerRow] = ()) -> None:
        self.listed: Sequence[AutoscalerRow] = rows
        self.details: dict[tuple[str, str], Detail] = {}
        self.explanations: dict[str, DecisionView] = {}
        self.error: PodscalerError | None = None

    def rows(self) -> Sequence[AutoscalerRow]:
        """The stated rows."""
        return self.listed

    async def detail(self, namespace: str, name: str, from_ms: int | None, to_ms: int | None) -> Detail:
        """The stated detail. Raises the stated error, and PodscalerError where none is stated."""
        del from_ms, to_ms
        if self.error is not None:
            raise self.error
        if (namespace, name) not in self.details:
            raise PodscalerError(f"there is no autoscaler {namespace}/{name} any more")
        return self.details[namespace, name]

    async def explanation(self, namespace: str, name: str, mark_id: str) -> DecisionView:
        """The stated explanation. Raises the stated error, and PodscalerError where none is stated."""
        if self.error is not None:
            raise self.error
        if mark_id not in self.explanations:
            raise PodscalerError(f"the decision {mark_id} about {namespace}/{name} is not kept any more")
        return self.explanations[mark_id]


def row(namespace: str, name: str, **changes: object) -> AutoscalerRow:
    """An AutoscalerRow of a Deployment with 4 ready pods at 63 of 70 percent; `changes` replace its fields."""
    default_row = AutoscalerRow(
        namespace=namespace,
        name=name,
        kind="HorizontalPodAutoscaler",
        state="Steady",
        severity=0,
        reason="",
        target=f"Deployment/{name}",
        replicas=4,
        desired=4,
        ready=4,
        min=2,
        max=10,
        metrics=(MetricView("cpu", "Resource", 63, 70, "percent", "63%/70%"),),
        last_scale_at=START_MS - 600_000,
        changed_at=START_MS - 60_000,
        sparkline=(2, 3, 4, 4),
        decided_by="podscaler",
    )
    return msgspec.structs.replace(default_row, **changes)


def detail(of: AutoscalerRow, replicas: Sequence[int] = (2, 3, 4, 4), **changes: object) -> Detail:
    """A Detail with one sync for each of `replicas`, the last one at START_MS; `changes` replace its fields."""
    count = len(replicas)
    timeline = DecisionTimeline(
        at=tuple(START_MS - (count - 1 - index) * SYNC_MS for index in range(count)),
        replicas=tuple(replicas),
        desired=tuple(replicas),
        limited=tuple(replicas),
        ready=tuple(replicas),
        min=(of.min,) * count,
        max=(of.max,) * count,
        metrics=(PlottedMetric("cpu", "percent", (63,) * count, (70,) * count, 0.1, 0.1),),
    )
    marks = tuple(
        Mark(str(at_ms), at_ms, MarkKind.UP, before, after, f"{of.namespace}/{of.name} goes to {after}.", True)
        for at_ms, before, after in zip(timeline.at[1:], replicas, replicas[1:], strict=False)
        if before != after
    )
    default_detail = Detail(
        now=START_MS,
        row=of,
        timeline=timeline,
        decisions=marks,
        events=(),
        pods=(),
        lint=(),
        conditions=(),
        yaml=f"kind: HorizontalPodAutoscaler\nmetadata:\n  name: {of.name}\n",
        since=timeline.at[0],
        since_reason="",
    )
    return msgspec.structs.replace(default_detail, **changes)
