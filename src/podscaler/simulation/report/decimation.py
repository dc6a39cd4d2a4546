"""Reduces plots to a number of instants that a browser draws quickly, without losing peaks or changes of pods.

Called by `html_page`. The instants are divided into spans of equal count; of each span the instants of the lowest and
the highest value of each series are kept. Before that, every instant at which a series with `keeps_changes` changes
is kept, unless these alone are too many.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from podscaler.simulation.report.page_data import DrawnSyncs, PlotBand, PlotSeries, TimePlot

POINTS_MAX = 5_000
_CHANGES_SHARE = 0.8
"""The share of the instants that changes may take; the others show peaks."""

_Values = Sequence[float | None]


def drawn(plot: TimePlot, points_max: int = POINTS_MAX) -> TimePlot:
    """The plot with at most `points_max` instants (at least 2), and with values that JSON has: finite, or None."""
    kept_indexes, every_change = _kept_indexes(plot, points_max)
    total = len(plot.at_s)
    return msgspec.structs.replace(
        plot,
        at_s=[_short(plot.at_s[index]) for index in kept_indexes],
        series=tuple([_reduced(series, kept_indexes) for series in plot.series]),
        band=None if plot.band is None else _reduced_band(plot.band, kept_indexes),
        drawn=None
        if len(kept_indexes) == total
        else DrawnSyncs(drawn=len(kept_indexes), total=total, every_change=every_change),
    )


def _kept_indexes(plot: TimePlot, points_max: int) -> tuple[Sequence[int], bool]:
    """The indexes that are kept, increasing, and whether each change is among them."""
    size = len(plot.at_s)
    if size <= points_max:
        return range(size), True
    ends = {0, size - 1}
    exact = [one_series.values for one_series in plot.series if one_series.keeps_changes]
    other_series = [one_series.values for one_series in plot.series if not one_series.keeps_changes]
    changes = ends | set(_changes(exact, size))
    every_change = len(changes) <= points_max * _CHANGES_SHARE
    kept_indexes = changes if every_change else ends
    extremes = other_series if every_change else [*exact, *other_series]
    if plot.band is not None:
        extremes = [*extremes, plot.band.low, plot.band.high]
    return sorted(kept_indexes.union(_extremes(extremes, size, points_max - len(kept_indexes)))), every_change


def _changes(columns: Sequence[_Values], size: int) -> Iterator[int]:
    """The indexes at which a column has another value than at the index before."""
    for column in columns:
        last = _number(column[0])
        for index in range(1, size):
            value = _number(column[index])
            if value != last:
                yield index
                last = value


def _extremes(columns: Sequence[_Values], size: int, budget: int) -> Iterator[int]:
    """At most `budget` indexes of the lowest and highest values of each column, in spans of equal count."""
    spans = budget // (2 * len(columns)) if columns else 0
    for span in range(spans):
        begin, end = size * span // spans, size * (span + 1) // spans
        for column in columns:
            values = [(value, index) for index in range(begin, end) if (value := _number(column[index])) is not None]
            if values:
                yield min(values)[1]
                yield max(values)[1]


def _reduced(series: PlotSeries, kept_indexes: Sequence[int]) -> PlotSeries:
    return msgspec.structs.replace(series, values=_picked(series.values, kept_indexes))


def _reduced_band(band: PlotBand, kept_indexes: Sequence[int]) -> PlotBand:
    return msgspec.structs.replace(band, low=_picked(band.low, kept_indexes), high=_picked(band.high, kept_indexes))


def _picked(values: _Values, kept_indexes: Sequence[int]) -> list[float | None]:
    return [None if (value := _number(values[index])) is None else _short(value) for index in kept_indexes]


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _short(value: float) -> float:
    """The value with six digits, whole numbers in full."""
    return int(value) if value == int(value) else float(f"{value:.6g}")
