"""Reads the points of a trace: rows of a CSV or Parquet file, one after the other.

Called by `loads`; `trace_series` turns points into a series. A file may be larger than memory: rows are read as they
are needed. A new format: a function here, and its kind in `loads`.
"""

import csv
import gzip
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from podscaler.base.errors import UsageError
from podscaler.simulation.files.file_fields import parse_amount

INSTALL_COMMAND = "pip install 'podscaler[simulation]'"
_MISSING_TEXTS = frozenset({"", "nan", "null", "none", "na", "n/a"})
_SUFFIX = re.compile(r"[-+]?[0-9.]+([A-Za-z]*)")
_BATCH_ROWS = 65_536
_SECONDS_LIMIT = 1e11
"""Seconds since 1970 from here on are in the year 5138: they are taken for milliseconds."""


class TracePoint(NamedTuple):
    """One point.

    Attributes:
        at_ms: since the epoch, or since any other instant.
        value: None if it is missing; 1 for a row that is a request.
        location: of the point in its source, for messages: `line 7`.
    """

    at_ms: int
    value: float | None
    location: str


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """A trace file, and the names of the columns that are read from it.

    Attributes:
        path: of the file.
        time: the column of instants.
        value: the column of values; None: each row is one request.
        timezone: of instants that state none.
    """

    path: Path
    time: str
    value: str | None
    timezone: tzinfo = UTC

    def error(self, location: str, column: str | None, sentence: str) -> UsageError:
        """The error that names the file, a location in it (`line 7`; may be empty) and a column, if there is one."""
        of_column = f"column {column}: " if column else ""
        return UsageError(f"{self.path}: {location}: {of_column}{sentence}" if location else f"{self.path}: {sentence}")


def csv_points(columns: TraceColumns) -> Iterator[TracePoint]:
    """The points of a CSV file with a line of column names; a file named `.gz` is decompressed. Raises UsageError."""
    try:
        with _open_text(columns.path) as file:
            yield from _points_of_rows(csv.reader(file), columns)
    except OSError as error:
        raise UsageError(f"cannot read {columns.path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{columns.path} is not a CSV file in UTF-8") from None


def _open_text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _points_of_rows(rows: Any, columns: TraceColumns) -> Iterator[TracePoint]:
    """The points of the rows of a CSV file. Raises UsageError with the line."""
    header = next(rows, None)
    if header is None:
        raise UsageError(f"{columns.path} is empty; a line with the names of columns is needed")
    names = [name.strip() for name in header]
    time_index = _find_column(columns, columns.time, names)
    value_index = None if columns.value is None else _find_column(columns, columns.value, names)
    parser = _ValueParser(columns)
    try:
        for row in rows:
            if not row:
                continue
            location = f"line {rows.line_num}"
            if len(row) != len(names):
                raise columns.error(location, None, f"{len(row)} columns, but the first line names {len(names)}")
            at_ms = parse_instant_ms(row[time_index], columns, location)
            yield TracePoint(at_ms, 1 if value_index is None else parser.value(row[value_index], location), location)
    except csv.Error as error:
        raise columns.error(f"line {rows.line_num}", None, str(error)) from None


def _find_column(columns: TraceColumns, name: str, names: list[str]) -> int:
    """The index of a column among the names of the file. Raises UsageError if it is not there exactly once."""
    if name not in names:
        raise UsageError(f"{columns.path} has no column {name}; it has {', '.join(names)}")
    if names.count(name) > 1:
        raise UsageError(f"{columns.path} has {names.count(name)} columns {name}; one is needed")
    return names.index(name)


def parse_instant_ms(text: str, columns: TraceColumns, location: str) -> int:
    """The milliseconds since the epoch of an instant: seconds as a number, or ISO 8601. Raises UsageError.

    `columns` has the time zone and, with `location`, the place in the error.
    """
    seconds = _find_number(text)
    if seconds is not None:
        if abs(seconds) >= _SECONDS_LIMIT:
            raise columns.error(location, columns.time, f"{text} is too large for seconds; divide milliseconds by 1000")
        return round(seconds * 1000)
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        sentence = f"{text!r} is not an instant: seconds as a number, or ISO 8601 such as 2026-01-31 18:00:00"
        raise columns.error(location, columns.time, sentence) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=columns.timezone)
    return round(instant.timestamp() * 1000)


def _find_number(text: str) -> float | None:
    """The finite number of a text; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class _ValueParser:
    """Parses the values of one column, which all have the same suffix."""

    def __init__(self, columns: TraceColumns) -> None:
        self._columns = columns
        self._suffix: str | None = None

    def value(self, cell: str, location: str) -> float | None:
        """The number of a cell, None for a missing one; all cells of a column have the same unit."""
        cell = cell.strip()
        if cell.lower() in _MISSING_TEXTS:
            return None
        suffix, number = "", 0.0
        try:
            number = float(cell)
        except ValueError:
            suffix, number = self._parse_quantity(cell, location)
        if self._suffix is None:
            self._suffix = suffix
        elif suffix != self._suffix:
            unit_text = f"the unit {suffix}" if suffix else "no unit"
            earlier_unit = f"the unit {self._suffix}" if self._suffix else "none"
            raise self._error(
                location, f"{cell!r} has {unit_text}, and the rows before it have {earlier_unit}; use one unit"
            )
        if math.isinf(number):
            raise self._error(location, f"{cell!r} is infinite")
        if number < 0:
            raise self._error(location, f"{cell} is negative; 0 or more is needed")
        return number

    def _parse_quantity(self, cell: str, location: str) -> tuple[str, float]:
        """The suffix and the number of a quantity such as `250m`. Raises UsageError."""
        suffix_match = _SUFFIX.fullmatch(cell)
        try:
            return suffix_match[1] if suffix_match else "", float(parse_amount(cell))
        except ValueError:
            raise self._error(location, f"{cell!r} is not a number") from None

    def _error(self, location: str, sentence: str) -> UsageError:
        return self._columns.error(location, self._columns.value, sentence)


def parquet_points(columns: TraceColumns) -> Iterator[TracePoint]:
    """The points of a Parquet file, read in batches. Raises UsageError, also if polars is not installed."""
    try:
        import polars
    except ImportError:
        raise UsageError(f"{columns.path}: Parquet files are read with polars: {INSTALL_COMMAND}") from None
    try:
        frame = polars.scan_parquet(columns.path)
        names = frame.collect_schema().names()
        column_names = [columns.time] + ([] if columns.value is None else [columns.value])
        for name in column_names:
            _find_column(columns, name, names)
        parser = _ValueParser(columns)
        for first_row in range(0, frame.select(polars.len()).collect().item(), _BATCH_ROWS):
            batch = frame.select(column_names).slice(first_row, _BATCH_ROWS).collect()
            for row_number, row in enumerate(batch.iter_rows(), first_row + 1):
                yield _point_of_typed_row(row, columns, parser, f"row {row_number}")
    except OSError as error:
        raise UsageError(f"cannot read {columns.path}: {error.strerror or error}") from None
    except polars.exceptions.PolarsError as error:
        raise UsageError(f"{columns.path} is not a Parquet file that can be read: {error}") from None


def _point_of_typed_row(row: tuple[Any, ...], columns: TraceColumns, parser: _ValueParser, location: str) -> TracePoint:
    """The point of a row of a Parquet file, whose cells have types. Raises UsageError."""
    instant = row[0]
    if isinstance(instant, datetime):
        at_ms = round((instant if instant.tzinfo else instant.replace(tzinfo=columns.timezone)).timestamp() * 1000)
    elif instant is None:
        raise columns.error(location, columns.time, "the instant is missing")
    else:
        at_ms = parse_instant_ms(str(instant), columns, location)
    if columns.value is None:
        return TracePoint(at_ms, 1, location)
    cell = row[1]
    if cell is not None and (isinstance(cell, bool) or not isinstance(cell, int | float)):
        raise columns.error(location, columns.value, f"{cell!r} is not a number")
    return TracePoint(at_ms, parser.value("" if cell is None else str(cell), location), location)
