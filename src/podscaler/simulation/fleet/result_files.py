"""Writes the rows of a partition to a Parquet file, with the fingerprint of their input.

Called by `partition_runs`. A file is written beside its place and renamed, so that it is whole or not there.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import polars

from podscaler.base.errors import UsageError
from podscaler.simulation.fleet.autoscalers import FleetRow

FOLDER = "results"
_FINGERPRINT = "podscaler.fingerprint"
_COLUMN_TYPES: dict[type, type[polars.DataType]] = {str: polars.String, float: polars.Float64, int: polars.Int64}


def _schema() -> dict[str, type[polars.DataType]]:
    """The columns: the fields of FleetRow."""
    columns = {}
    for field in msgspec.structs.fields(FleetRow):
        union_members = getattr(field.type, "__args__", ())  # of `float | None`: float and None
        column_type = next(
            polars_type
            for python_type, polars_type in _COLUMN_TYPES.items()
            if python_type is field.type or python_type in union_members
        )
        columns[field.name] = column_type
    return columns


SCHEMA = _schema()


def path_of(folder: Path, name: str) -> Path:
    """The file of a partition."""
    return folder / FOLDER / f"{name}.parquet"


def is_present(folder: Path, name: str, fingerprint: str) -> bool:
    """Whether the file of a partition exists with that fingerprint; False if it cannot be read."""
    path = path_of(folder, name)
    if not path.exists():
        return False
    try:
        return polars.read_parquet_metadata(path).get(_FINGERPRINT) == fingerprint
    except (OSError, polars.exceptions.PolarsError):
        return False


def frame_of(rows: Sequence[FleetRow]) -> polars.DataFrame:
    """The rows as a table."""
    return polars.DataFrame([msgspec.structs.asdict(row) for row in rows], schema=SCHEMA)


def write(folder: Path, name: str, fingerprint: str, rows: Sequence[FleetRow]) -> None:
    """Write the file of a partition in place of one that is there. Raises UsageError."""
    path = path_of(folder, name)
    partial_path = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        frame_of(rows).write_parquet(partial_path, metadata={_FINGERPRINT: fingerprint})
        with partial_path.open("rb") as file:
            os.fsync(file.fileno())
        partial_path.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from None
