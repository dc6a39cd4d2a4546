"""Reads the points of a trace: rows of a CSV or Parquet file, one after the other.

Called by `loads`; `trace_series` turns points into a series. A file may be larger than memory: rows are read as they
are needed.
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

INSTALL = "pip install 'podscaler[simulation]'"
_MISSING = frozenset({"", "nan", "null", "none", "na", "n/a"})
_SUFFIX = re.compile(r"[-+]?[0-9.]+([A-Za-z]*)")
_BATCH_ROWS = 65_536
_SECONDS_MAX = 1e11
"""Seconds since 1970 beyond this are in the year 5138: they are milliseconds."""


class TracePoint(NamedTuple):
    """One point.

    Attributes:
        at_ms: since the epoch, or since any other instant.
        value: None if it is missing; 1 for a row that is a request.
        place: of the point in its source, for messages: `line 7`.
    """

    at_ms: int
    value: float | None
    place: str


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """A file and its columns.

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
        """The error that names file, place and column."""
        of_column = f"column {column}: " if column else ""
        return UsageError(f"{self.path}: {location}: {of_column}{sentence}" if location else f"{self.path}: {sentence}")


def csv_points(columns: TraceColumns) -> Iterator[TracePoint]:
    """The points of a CSV file with a line of column names; a file named `.gz` is decompressed. Raises UsageError."""
    try:
        with _opened(columns.path) as file:
            yield from _of_rows(csv.reader(file), columns)
    except OSError as error:
        raise UsageError(f"cannot read {columns.path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{columns.path} is not a CSV file in UTF-8") from None


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _of_rows(rows: Any, columns: TraceColumns) -> Iterator[TracePoint]:
    """The points of the rows of a CSV file. Raises UsageError with the line."""
    header = next(rows, None)
    if header is None:
        raise UsageError(f"{columns.path} is empty; a line with the names of columns is needed")
    names = [name.strip() for name in header]
    time = _column(columns, columns.time, names)
    value = None if columns.value is None else _column(columns, columns.value, names)
    parser = _ValueParser(columns)
    try:
        for row in rows:
            if not row:
                continue
            location = f"line {rows.line_num}"
            if len(row) != len(names):
                raise columns.error(location, None, f"{len(row)} columns, but the first line names {len(names)}")
            at_ms = parse_instant_ms(row[time], columns, location)
            yield TracePoint(at_ms, 1 if value is None else parser.value(row[value], location), location)
    except csv.Error as error:
        raise columns.error(f"line {rows.line_num}", None, str(error)) from None


def _column(columns: TraceColumns, name: str, names: list[str]) -> int:
    if name not in names:
        raise UsageError(f"{columns.path} has no column {name}; it has {', '.join(names)}")
    if names.count(name) > 1:
        raise UsageError(f"{columns.path} has {names.count(name)} columns {name}; one is needed")
    return names.index(name)


def parse_instant_ms(text: str, columns: TraceColumns, location: str) -> int:
    """The milliseconds of an instant: seconds as a number, or ISO 8601. Raises UsageError."""
    seconds = _find_number(text)
    if seconds is not None:
        if abs(seconds) >= _SECONDS_MAX:
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

    def value(self, text: str, location: str) -> float | None:
        """The number of a cell, None for a missing one; all cells of a column have the same unit."""
        text = text.strip()
        if text.lower() in _MISSING:
            return None
        suffix, value = "", 0.0
        try:
            value = float(text)
        except ValueError:
            suffix, value = self._quantity(text, location)
        if self._suffix is None:
            self._suffix = suffix
        elif suffix != self._suffix:
            unit_text = f"the unit {suffix}" if suffix else "no unit"
            earlier = f"the unit {self._suffix}" if self._suffix else "none"
            raise self._error(
                location, f"{text!r} has {unit_text}, and the rows before it have {earlier}; use one unit"
            )
        if math.isinf(value):
            raise self._error(location, f"{text!r} is infinite")
        if value < 0:
            raise self._error(location, f"{text} is negative; 0 or more is needed")
        return value

    def _quantity(self, text: str, location: str) -> tuple[str, float]:
        matched = _SUFFIX.fullmatch(text)
        try:
            return matched[1] if matched else "", float(parse_amount(text))
        except ValueError:
            raise self._error(location, f"{text!r} is not a number") from None

    def _error(self, location: str, sentence: str) -> UsageError:
        return self._columns.error(location, self._columns.value, sentence)


def parquet_points(columns: TraceColumns) -> Iterator[TracePoint]:
    """The points of a Parquet file, read in batches. Raises UsageError, also if polars is not installed."""
    try:
        import polars
    except ImportError:
        raise UsageError(f"{columns.path}: Parquet files are read with polars: {INSTALL}") from None
    try:
        frame = polars.scan_parquet(columns.path)
        names = frame.collect_schema().names()
        column_names = [columns.time] + ([] if columns.value is None else [columns.value])
        for name in column_names:
            _column(columns, name, names)
        parser = _ValueParser(columns)
        for first in range(0, frame.select(polars.len()).collect().item(), _BATCH_ROWS):
            batch = frame.select(column_names).slice(first, _BATCH_ROWS).collect()
            for index, row in enumerate(batch.iter_rows(), first + 1):
                yield _of_typed_row(row, columns, parser, f"row {index}")
    except OSError as error:
        raise UsageError(f"cannot read {columns.path}: {error.strerror or error}") from None
    except polars.exceptions.PolarsError as error:
        raise UsageError(f"{columns.path} is not a Parquet file that can be read: {error}") from None


def _of_typed_row(row: tuple[Any, ...], columns: TraceColumns, parser: _ValueParser, location: str) -> TracePoint:
    """The point of a row of a Parquet file, whose cells have types."""
    at = row[0]
    if isinstance(at, datetime):
        at_ms = round((at if at.tzinfo else at.replace(tzinfo=columns.timezone)).timestamp() * 1000)
    elif at is None:
        raise columns.error(location, columns.time, "the instant is missing")
    else:
        at_ms = parse_instant_ms(str(at), columns, location)
    if columns.value is None:
        return TracePoint(at_ms, 1, location)
    value = row[1]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise columns.error(location, columns.value, f"{value!r} is not a number")
    return TracePoint(at_ms, parser.value("" if value is None else str(value), location), location)
