"""Selects, orders and formats rows of autoscalers, for the list on the screen and the table that `--once` prints.

`podscaler.cli.top.list_screen`, `detail_screen` and `top` (`--once`) call it. A new column is a name in COLUMNS and a
cell in `cells`; a new order is a line in ORDERS and in `podscaler.cli.top.text_screens.HELP`. Example: a row with a
metric of 63 of 70 percent gives the cell `cpu 63%/70%`, and one with 4 replicas whose metrics ask for 6 the cell
`4 (6)`.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from podscaler.observe.views import AutoscalerRow, MetricView

COLUMNS = ("NAMESPACE", "NAME", "STATE", "REPLICAS (WANTED)", "READY", "MIN-MAX", "METRICS", "LAST 30 MIN", "CHANGED")
SEVERITY_SIGNS = ("ok", "i", "!", "!!")
"""By severity; beside the word of the state, so that colour is not needed."""
PROBLEM_SEVERITY = 2
"""Rows of this severity and above have a problem (`podscaler.observe.health`)."""
BARS = "▁▂▃▄▅▆▇█"
METRICS_WIDTH = 34
SPARKLINE_WIDTH = 15
UNKNOWN = "-"


class ListView(msgspec.Struct, frozen=True, kw_only=True):
    """The filter and the order of the rows, as the user chose them.

    Attributes:
        namespace: only this one; empty: all.
        words: each must be in a row's namespace, name, state, target or metrics.
        order: a name of ORDERS.
        only_problems: only rows of PROBLEM_SEVERITY and above.
    """

    namespace: str = ""
    words: tuple[str, ...] = ()
    order: str = "problems"
    only_problems: bool = False


_SortKey = Callable[[AutoscalerRow], tuple[Any, ...]]

# unknown replicas and instants come last
ORDERS: dict[str, _SortKey] = {
    "problems": lambda row: (-row.severity, row.namespace, row.name),
    "name": lambda row: (row.namespace, row.name),
    "replicas": lambda row: (-(row.replicas or 0), row.namespace, row.name),
    "changed": lambda row: (-(row.changed_at or 0), row.namespace, row.name),
}


def select(rows: Iterable[AutoscalerRow], view: ListView) -> list[AutoscalerRow]:
    """The rows that the view selects, in its order."""
    return sorted((row for row in rows if _is_selected(row, view)), key=ORDERS[view.order])


def next_order(order: str) -> str:
    """The order after `order`; after the last one the first."""
    names = list(ORDERS)
    return names[(names.index(order) + 1) % len(names)]


def _is_selected(row: AutoscalerRow, view: ListView) -> bool:
    """Whether a row is in the namespace, has a problem if only problems are wanted, and has all words of the filter."""
    if (view.namespace and row.namespace != view.namespace) or (view.only_problems and row.severity < PROBLEM_SEVERITY):
        return False
    metrics = " ".join(metric.name for metric in row.metrics)
    searched_text = f"{row.namespace}/{row.name} {row.state} {row.target} {metrics}".lower()
    return all(word.lower() in searched_text for word in view.words)


def cells(row: AutoscalerRow, now_ms: int) -> tuple[str, ...]:
    """The texts of a row, one for each of COLUMNS."""
    return (
        row.namespace,
        row.name,
        f"{SEVERITY_SIGNS[row.severity]} {row.state}",
        replicas_text(row),
        count_text(row.ready),
        f"{row.min}-{row.max}",
        metrics_text(row.metrics, METRICS_WIDTH),
        sparkline(row.sparkline, SPARKLINE_WIDTH),
        UNKNOWN if row.changed_at is None else age(now_ms - row.changed_at),
    )


def replicas_text(row: AutoscalerRow) -> str:
    """The replicas, and in parentheses what the metrics want where that is another count: `4` or `4 (6)`."""
    if row.desired is None or row.desired == row.replicas:
        return count_text(row.replicas)
    return f"{count_text(row.replicas)} ({row.desired})"


def count_text(count: int | None) -> str:
    """A count, or UNKNOWN."""
    return UNKNOWN if count is None else str(count)


def metrics_text(metrics: Sequence[MetricView], width: int) -> str:
    """The metrics against their targets, in at most `width` characters: `cpu 63%/70%, +2` has two more metrics.

    Where not even the first metric has room, its name is left out, and then its end.
    """
    metric_texts = [f"{metric.name} {metric.text}" for metric in metrics]
    for count in range(len(metric_texts), 0, -1):
        further_text = f" +{len(metric_texts) - count}" if count < len(metric_texts) else ""
        if len(line := ", ".join(metric_texts[:count]) + further_text) <= width:
            return line
    if not metric_texts:
        return UNKNOWN
    further_text = f" +{len(metric_texts) - 1}" if len(metric_texts) > 1 else ""
    first_text = metrics[0].text + further_text
    return first_text if len(first_text) <= width else first_text[: width - 1] + "…"


def sparkline(values: Sequence[int], width: int) -> str:
    """The last values as bars of eight heights, from 0 to their largest one; each column has the largest of its values.

    Returns at most `width` characters, one for each value where there are fewer.
    """
    if not values:
        return ""
    columns = min(width, len(values))
    column_edges = [index * len(values) // columns for index in range(columns + 1)]
    peaks = [max(values[begin:end]) for begin, end in itertools.pairwise(column_edges)]
    highest = max(*peaks, 1)
    return "".join(BARS[peak * (len(BARS) - 1) // highest] for peak in peaks)


def age(age_ms: int) -> str:
    """A duration in the largest unit of which there are at least two: `119s`, `12m`, `5h`, `3d`; negative: `0s`."""
    seconds = max(age_ms, 0) // 1000
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 2 * 3600:
        return f"{seconds // 60}m"
    if seconds < 2 * 86400:
        return f"{seconds // 3600}h"
    return f"{seconds // 86400}d"


def table(rows: Sequence[AutoscalerRow], now_ms: int) -> str:
    """All rows as lines of aligned text, with a header; no rows: a sentence."""
    if not rows:
        return "no autoscalers"
    lines = [COLUMNS, *(cells(row, now_ms) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
