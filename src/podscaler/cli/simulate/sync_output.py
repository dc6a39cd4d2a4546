"""Writes the syncs of a simulation as JSON, CSV or Parquet.

Called by `podscaler.cli.simulate.simulate`. Rows are those of `podscaler.simulation.model.results.TimelineRow`, one for
each sync of each autoscaler. All forms are written as syncs come, so that memory does not grow with the length of a
simulation. A new form: a name in FORMS, a SyncWriter, and a case in `_open_writer` of that module.
"""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Protocol, Self, get_args

import msgspec

from podscaler.base.errors import UsageError
from podscaler.cli.simulate.run_summary import RunSummary
from podscaler.simulation.files.traces import INSTALL_COMMAND
from podscaler.simulation.model import results
from podscaler.simulation.model.results import MetricReading, SimulatedSync, TimelineRow

FORMS = ("table", "json", "csv", "parquet")
GROUP_ROWS = 16_384
"""The most rows of a row group of a Parquet file."""

_COLUMNS = tuple(field.name for field in msgspec.structs.fields(TimelineRow))


class SyncWriter(Protocol):
    """Writes syncs, then the end."""

    def add(self, sync: SimulatedSync) -> None:
        """Write one sync."""
        ...

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        """Write the end. Raises UsageError if a file cannot be written."""
        ...


class JSONWriter:
    """One JSON object with `syncs`, `summaries`, and `failures` (sentences about expectations)."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._separator = '{"syncs": [\n'  # before the next sync: the begin of the object, later a comma

    def add(self, sync: SimulatedSync) -> None:
        """As in SyncWriter."""
        self._stream.write(self._separator + _json(results.row(sync)))
        self._separator = ",\n"

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        """As in SyncWriter."""
        begin = "\n]" if self._separator == ",\n" else self._separator + "]"
        self._stream.write(f'{begin},\n"summaries": {_json(summaries)},\n"failures": {_json(failures)}}}\n')


class CSVWriter:
    """A line of column names, then one line for each sync; the column `metrics` is JSON."""

    def __init__(self, stream: IO[str]) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(_COLUMNS)

    def add(self, sync: SimulatedSync) -> None:
        """As in SyncWriter."""
        row = results.row(sync)
        cells = [getattr(row, name) for name in _COLUMNS]
        self._writer.writerow([_json(cell) if isinstance(cell, tuple) else cell for cell in cells])

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        """CSV has rows only."""
        del summaries, failures


class ParquetWriter:
    """A Parquet file; `metrics` is a list of structs.

    polars cannot append to a Parquet file, so groups of rows are written to files in a temporary folder beside it,
    which polars then joins as a stream.

    Args:
        group_rows: the most rows that are held in memory.

    Raises UsageError if polars is not installed, or the file's folder cannot be written.
    """

    def __init__(self, path: Path, group_rows: int = GROUP_ROWS) -> None:
        try:
            import polars
        except ImportError:
            raise UsageError(f"Parquet is written with polars: {INSTALL_COMMAND}") from None
        self._polars = polars
        self._path = path
        self._group_rows = group_rows
        self._schema = {field.name: self._data_type(field.type) for field in msgspec.structs.fields(TimelineRow)}
        self._rows: list[dict[str, Any]] = []
        self._group_files: list[Path] = []
        with self._translated_errors():
            self._folder = TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.")

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the temporary folder."""
        self._folder.cleanup()

    @property
    def rows_held(self) -> int:
        """The number of rows that are in memory."""
        return len(self._rows)

    def add(self, sync: SimulatedSync) -> None:
        """As in SyncWriter. Raises UsageError if a file cannot be written."""
        self._rows.append(msgspec.to_builtins(results.row(sync)))
        if len(self._rows) >= self._group_rows:
            self._write_group()

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        """As in SyncWriter; Parquet has rows only."""
        del summaries, failures
        if self._rows or not self._group_files:  # without any rows, a file that has the columns
            self._write_group()
        with self._translated_errors():
            self._polars.scan_parquet(self._group_files).sink_parquet(self._path, row_group_size=self._group_rows)

    def _write_group(self) -> None:
        """Write the rows that are held in memory to a file of the temporary folder."""
        group_file = Path(self._folder.name) / f"{len(self._group_files):06}.parquet"
        with self._translated_errors():
            self._polars.DataFrame(self._rows, schema=self._schema).write_parquet(group_file)
        self._group_files.append(group_file)
        self._rows.clear()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise UsageError for an OSError of the block."""
        try:
            yield
        except OSError as error:
            raise UsageError(f"cannot write {self._path}: {error.strerror or error}") from None

    def _data_type(self, annotation: Any) -> Any:
        """The column type of a field of a row; that of `int | None` is that of `int`."""
        if annotation == tuple[MetricReading, ...]:
            of_reading = {field.name: self._data_type(field.type) for field in msgspec.structs.fields(MetricReading)}
            return self._polars.List(self._polars.Struct(of_reading))
        types = {str: self._polars.String, float: self._polars.Float64, int: self._polars.Int64}
        return next(types[python_type] for python_type in (annotation, *get_args(annotation)) if python_type in types)


def _json(cell: Any) -> str:
    return msgspec.json.encode(cell).decode()
