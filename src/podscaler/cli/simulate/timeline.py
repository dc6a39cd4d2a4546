"""Formats the timeline of a simulation as lines of text: one for each sync at which something changed.

Called by `podscaler.cli.simulate.simulate`. A line shows the load, the metrics, the pods, and what the sync did, in the
words of `podscaler demo` and of the autoscaler's events. A further part of the line: in `lines`, and in
`visible_values` if its change alone is to have a line.
"""

from collections.abc import Iterator

from podscaler.simulation.model import results
from podscaler.simulation.model.expectations import clock_text
from podscaler.simulation.model.results import MetricReading, SimulatedSync, TimelineRow

_BAR_PODS_MAX = 40
"""More pods are a number in place of a bar of signs."""
_GIB = 1 << 30
_NO_AVERAGE = 1 << 62
"""Amounts of at least this size, with either sign, are no values: an average over no pods is the smallest int64, as in
the status that kube-controller-manager writes."""


class Timeline:
    """Makes lines of syncs, which come in order.

    Args:
        has_names: whether lines name their autoscaler.
        shows_all: whether syncs without a change have lines, too.
    """

    def __init__(self, *, has_names: bool, shows_all: bool) -> None:
        self._has_names = has_names
        self._shows_all = shows_all
        self._last_values: dict[str, tuple[object, ...]] = {}
        self._failing: set[str] = set()

    def lines(self, sync: SimulatedSync) -> Iterator[str]:
        """The lines of the next sync; none if nothing changed since the autoscaler's sync before."""
        row = results.row(sync)
        visible_values = (row.replicas, row.pods, row.ready, row.unscheduled, row.nodes, row.error)
        outcome = self._outcome(sync, row)
        if not outcome and not self._shows_all and self._last_values.get(row.autoscaler) == visible_values:
            return
        self._last_values[row.autoscaler] = visible_values
        name = f"{row.autoscaler}   " if self._has_names else ""
        metrics = "   ".join(_metric_text(metric) for metric in row.metrics)
        parts = [f"{clock_text(sync.at_ms):>8}   {name}{_load_text(row)}", metrics, _pods_text(row)]
        yield "   ".join(filter(None, parts)).rstrip()
        if outcome:
            yield f"{clock_text(sync.at_ms):>8}   {name}=> {outcome}"

    def _outcome(self, sync: SimulatedSync, row: TimelineRow) -> str:
        """What the sync did that users see as an event; empty for nothing new. Notes whether the sync failed."""
        was_failing = row.autoscaler in self._failing
        if row.error:
            self._failing.add(row.autoscaler)
        else:
            self._failing.discard(row.autoscaler)
        if sync.decision.replicas is not None:
            return f"{sync.decision.replicas} pod{'' if sync.decision.replicas == 1 else 's'}: {row.reason}"
        if row.error and not was_failing:
            return row.error
        return "metrics can be read again" if was_failing and not row.error else ""


def _load_text(row: TimelineRow) -> str:
    """The load in a line: requests, cores, memory."""
    parts = []
    if row.requests_per_s:
        parts.append(f"{row.requests_per_s:6.1f} requests/s")
    parts.append(f"{row.demand_cores:6.3f} cores")
    if row.demand_bytes:
        parts.append(f"{row.demand_bytes / _GIB:.2f} GiB")
    return "   ".join(parts)


def _metric_text(reading: MetricReading) -> str:
    """`cpu 305 %/50 %`; the first word of the name says which metric it is."""
    name = reading.name.partition(" ")[0]
    return f"{name} {_amount_text(reading.current, reading.unit)}/{_amount_text(reading.target, reading.unit)}"


def _amount_text(amount: int | None, unit: str) -> str:
    """A value of a metric in its unit (`percent`, or thousandths); `?` for none, and for an average over no pods."""
    if amount is None or abs(amount) >= _NO_AVERAGE:
        return "?"
    if unit == "percent":
        return f"{amount} %"
    return f"{amount // 1000}" if amount % 1000 == 0 else f"{amount}m"


def _pods_text(row: TimelineRow) -> str:
    """The pods in a line: a sign for each, `#` for a ready one, or a number if there are many."""
    pods_text = f"pods {row.replicas:2d}  "
    if max(row.replicas, row.ready) <= _BAR_PODS_MAX:
        pods_text += "#" * row.ready + "." * max(row.replicas - row.ready, 0)
    else:
        pods_text += f"{row.ready} ready"
    if row.unscheduled:
        pods_text += f"   {row.unscheduled} without a node"
    return pods_text + (f"   nodes {row.nodes}" if row.nodes is not None else "")
