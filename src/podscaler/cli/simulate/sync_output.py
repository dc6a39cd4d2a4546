"""Writes the syncs of a simulation as JSON, CSV or Parquet.

Called by `podscaler simulate`. Rows are those of `podscaler.simulation.model.results.TimelineRow`, one for each sync of
each autoscaler; JSON and CSV are written as syncs come.
"""

import csv
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec

from podscaler.base.errors import UsageError
from podscaler.cli.simulate.run_summary import RunSummary
from podscaler.simulation.files.traces import INSTALL
from podscaler.simulation.model import results
from podscaler.simulation.model.results import SimulatedSync, TimelineRow

FORMS = ("table", "json", "csv", "parquet")
_COLUMNS = tuple(field.name for field in msgspec.structs.fields(TimelineRow))


class SyncWriter(Protocol):
    """Writes syncs, then the end."""

    def add(self, sync: SimulatedSync) -> None:
        """Write one sync."""
        ...

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        """Write the end. Raises UsageError where a file cannot be written."""
        ...


class JSONWriter:
    """One JSON object with `syncs`, `summaries`, and `failures` (sentences about expectations)."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._separator = '{"syncs": [\n'

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
        values = [getattr(row, name) for name in _COLUMNS]
        self._writer.writerow([_json(value) if isinstance(value, tuple) else value for value in values])

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        """CSV has rows only."""
        del summaries, failures


class ParquetWriter:
    """A Parquet file; `metrics` is a list of structs. Raises UsageError where polars is not installed."""

    def __init__(self, path: Path) -> None:
        try:
            import polars
        except ImportError:
            raise UsageError(f"Parquet is written with polars: {INSTALL}") from None
        self._polars = polars
        self._path = path
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def add(self, sync: SimulatedSync) -> None:
        """As in SyncWriter."""
        for name, value in msgspec.to_builtins(results.row(sync)).items():
            self._columns[name].append(value)

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        """As in SyncWriter; Parquet has rows only."""
        del summaries, failures
        try:
            self._polars.DataFrame(self._columns, infer_schema_length=None).write_parquet(self._path)
        except OSError as error:
            raise UsageError(f"cannot write {self._path}: {error.strerror or error}") from None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
