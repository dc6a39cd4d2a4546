"""Reduces plots to a number of instants that a browser draws quickly, without losing peaks or changes of pods.

Called by `html_page`. The instants are divided into spans of equal count; of each span the instants of the lowest and
the highest value of each series are kept. Before that, every instant at which a series with `keeps_changes` changes
is kept, unless these alone are too many.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from podscaler.simulation.report.page_data import DrawnSyncs, PlotBand, TimePlot

POINTS_MAX = 5_000
_CHANGES_SHARE = 0.8
"""The share of the instants that changes may take; the others show peaks."""

_Values = Sequence[float | None]
"""The values of one line, one for each instant of the plot; None, NaN and infinities are no values."""


def reduce_plot(plot: TimePlot, points_max: int = POINTS_MAX) -> TimePlot:
    """The plot with at most `points_max` instants (at least 2), and with values that JSON has: finite, or None."""
    kept_indexes, every_change = _kept_indexes(plot, points_max)
    total = len(plot.at_s)
    return msgspec.structs.replace(
        plot,
        at_s=[_round_to_six_digits(plot.at_s[index]) for index in kept_indexes],
        series=tuple(
            [msgspec.structs.replace(line, values=_pick_values(line.values, kept_indexes)) for line in plot.series]
        ),
        band=None if plot.band is None else _reduce_band(plot.band, kept_indexes),
        drawn=None
        if len(kept_indexes) == total
        else DrawnSyncs(drawn=len(kept_indexes), total=total, every_change=every_change),
    )


def _kept_indexes(plot: TimePlot, points_max: int) -> tuple[Sequence[int], bool]:
    """The indexes that are kept, increasing, and whether each change is among them."""
    size = len(plot.at_s)
    if size <= points_max:
        return range(size), True
    end_indexes = {0, size - 1}
    exact_columns = [one_series.values for one_series in plot.series if one_series.keeps_changes]
    other_columns = [one_series.values for one_series in plot.series if not one_series.keeps_changes]
    change_indexes = end_indexes | set(_change_indexes(exact_columns, size))
    every_change = len(change_indexes) <= points_max * _CHANGES_SHARE
    kept_indexes = change_indexes if every_change else end_indexes
    columns = other_columns if every_change else [*exact_columns, *other_columns]
    if plot.band is not None:
        columns = [*columns, plot.band.low, plot.band.high]
    return sorted(kept_indexes.union(_extreme_indexes(columns, size, points_max - len(kept_indexes)))), every_change


def _change_indexes(columns: Sequence[_Values], size: int) -> Iterator[int]:
    """The indexes at which a column has another value than at the index before; they may repeat."""
    for column in columns:
        last_value = _finite_or_none(column[0])
        for index in range(1, size):
            value = _finite_or_none(column[index])
            if value != last_value:
                yield index
                last_value = value


def _extreme_indexes(columns: Sequence[_Values], size: int, budget: int) -> Iterator[int]:
    """At most `budget` indexes: those of the lowest and the highest value of each column in each span."""
    span_count = budget // (2 * len(columns)) if columns else 0  # two indexes for each column of a span
    for span in range(span_count):
        begin, end = size * span // span_count, size * (span + 1) // span_count
        for column in columns:
            value_by_index = {index: _finite_or_none(column[index]) for index in range(begin, end)}
            values = [(value, index) for index, value in value_by_index.items() if value is not None]
            if values:
                _, lowest_index = min(values)
                _, highest_index = max(values)
                yield lowest_index
                yield highest_index


def _reduce_band(band: PlotBand, kept_indexes: Sequence[int]) -> PlotBand:
    return msgspec.structs.replace(
        band, low=_pick_values(band.low, kept_indexes), high=_pick_values(band.high, kept_indexes)
    )


def _pick_values(values: _Values, kept_indexes: Sequence[int]) -> list[float | None]:
    """The values at the kept indexes, rounded; None where there is no value."""
    finite_values = [_finite_or_none(values[index]) for index in kept_indexes]
    return [None if value is None else _round_to_six_digits(value) for value in finite_values]


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _round_to_six_digits(value: float) -> float:
    """The value with six digits, whole numbers in full."""
    return int(value) if value == int(value) else float(f"{value:.6g}")
