"""Draws time series as lines of characters, for `podscaler.cli.top.detail_screen`, which calls `plot`.

A plot has one column of characters for each slice of time and one row for each step of the value; the left margin has
the largest and the smallest value of the axis. Where series meet, the later one of the list is on top. Each series has
its own character as well as its own colour, so that plots can be read without colours. A further kind of mark is a
`_draw` function that `plot` calls in the order of drawing.

Example: the replicas 0, 0, 2 in a plot of 3 columns and 3 rows, with the character `#`. The step from 0 to 2 is drawn
as a line, in the column of the later value:

    2 │  #
      │  #
    0 │###
"""

from collections.abc import Sequence
from typing import NamedTuple

Values = Sequence[float | None]

AXIS = " │"
"""The characters between the labels and the columns."""


class TextSeries(NamedTuple):
    """One series of a plot.

    Attributes:
        values: aligned with the instants of the plot; None: not known.
        sign: the character of the series.
        style: a style of Rich; empty: the default.
        is_filled: whether the columns are filled from the bottom up to the value.
    """

    name: str
    values: Values
    sign: str
    style: str
    is_filled: bool = False


class TextBand(NamedTuple):
    """A range of values that is shaded behind the series; `low` and `high` are aligned with the instants."""

    low: Values
    high: Values
    sign: str = "░"
    style: str = "bright_black"


class Cell(NamedTuple):
    """One character and its style (a colour name of Rich; empty: the default)."""

    sign: str
    style: str


class TimeWindow(NamedTuple):
    """The instants of all series, in milliseconds and ascending, and the range that a plot shows."""

    at_ms: Sequence[int]
    from_ms: int
    to_ms: int


class _Scale(NamedTuple):
    """The values of the lowest and the highest row."""

    low: float
    high: float
    rows: int

    def row(self, sample: float) -> int:
        """The row of a value, 0 at the bottom; values outside the scale are in the outermost rows."""
        span = self.high - self.low
        share = 0.0 if span <= 0 else (sample - self.low) / span
        return min(max(round(share * (self.rows - 1)), 0), self.rows - 1)


def plot(
    window: TimeWindow, series: Sequence[TextSeries], *, width: int, height: int, band: TextBand | None = None
) -> list[list[Cell]]:
    """The rows of a plot, the top one first; each has `width` cells, with the margin for the labels of the axis.

    Args:
        window: the instants of all values, and the range to show.
        series: in the order in which they are drawn.
        width: in characters; if the labels leave no room for columns, one is drawn nevertheless.
        height: in characters, at least 2.
        band: drawn behind all series; None: no band.
    """
    known_values = [sample for one_series in series for sample in one_series.values if sample is not None]
    if band is not None:
        known_values += [sample for sample in (*band.low, *band.high) if sample is not None]
    low, high = min(known_values, default=0.0), max(known_values, default=1.0)
    low = min(low, 0)  # the axis begins at 0 unless values are negative
    scale = _Scale(low, high if high > low else low + 1, height)  # labels differ even if all values are equal
    labels = {height - 1: value_text(scale.high), 0: value_text(scale.low)}  # by row, 0 at the bottom
    margin = max(len(label) for label in labels.values())
    columns = _columns(window, width - margin - len(AXIS))
    canvas = [[Cell(" ", "") for _ in columns] for _ in range(height)]
    if band is not None:
        _draw_band(canvas, columns, band, scale)
    for one_series in series:
        _draw_series(canvas, columns, one_series, scale)
    lines = []
    for row in reversed(range(height)):
        label = labels.get(row, "").rjust(margin)
        lines.append([*(Cell(sign, "bright_black") for sign in label + AXIS), *canvas[row]])
    return lines


def value_text(sample: float) -> str:
    """A value for an axis, with three significant digits: `0.5`, `120`, `1.2k`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(sample) >= size:
            return f"{sample / size:.3g}{unit}"
    return f"{sample:.0f}" if abs(sample) >= 100 else f"{sample:.3g}"


def _columns(window: TimeWindow, count: int) -> list[list[int]]:
    """For each column the indexes of its instants; one without an instant has the latest before it, if there is one."""
    span_ms = max(window.to_ms - window.from_ms, 1)
    columns: list[list[int]] = [[] for _ in range(max(count, 1))]
    latest_index: int | None = None
    for index, at_ms in enumerate(window.at_ms):
        if at_ms < window.from_ms:
            latest_index = index
        elif at_ms <= window.to_ms:
            columns[min((at_ms - window.from_ms) * len(columns) // span_ms, len(columns) - 1)].append(index)
    for column in columns:  # an empty column repeats the one before it
        if not column and latest_index is not None:
            column.append(latest_index)
        latest_index = column[-1] if column else None
    return columns


def _values_of_column(values: Values, column: Sequence[int]) -> list[float]:
    """The known values of a column, which is the indexes of its instants."""
    samples = [values[index] for index in column]
    return [sample for sample in samples if sample is not None]


def _draw_series(canvas: list[list[Cell]], columns: Sequence[Sequence[int]], series: TextSeries, scale: _Scale) -> None:
    """Put the values of each column on the canvas: all rows from the smallest one to the largest one."""
    cell = Cell(series.sign, series.style)
    previous_row: int | None = None
    for column_index, column in enumerate(columns):
        values = _values_of_column(series.values, column)
        if not values:
            previous_row = None
            continue
        bottom_row, top_row = scale.row(min(values)), scale.row(max(values))
        if series.is_filled:
            bottom_row = 0
        elif previous_row is not None:  # steps are joined, so that a jump is a line
            bottom_row, top_row = min(bottom_row, previous_row), max(top_row, previous_row)
        for row in range(bottom_row, top_row + 1):
            canvas[row][column_index] = cell
        previous_row = scale.row(values[-1])


def _draw_band(canvas: list[list[Cell]], columns: Sequence[Sequence[int]], band: TextBand, scale: _Scale) -> None:
    """Put a band on the canvas: the rows of each column from its lowest value to its highest one."""
    for column_index, column in enumerate(columns):
        low, high = _values_of_column(band.low, column), _values_of_column(band.high, column)
        if low and high:
            for row in range(scale.row(min(low)), scale.row(max(high)) + 1):
                canvas[row][column_index] = Cell(band.sign, band.style)
