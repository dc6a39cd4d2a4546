"""Makes the printers of kinds whose `kubectl get` table has name and age, as most have.

Called by the records of kinds, which give the other columns and cells.

Source: the columns of kube-apiserver's tables (golden captures).
"""

from collections.abc import Callable, Sequence
from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.resource.resources import Column, Object, Printer

AGE = Column("Age")
"""Marks the position of the age in the arguments of `named`; without it the age is the last column."""
UNIQUE = ", unique within its namespace"
"""The usual end of the description of the column Name."""


def named(
    kind: str, *columns: Column, cells: Callable[[Object, int], Sequence[Any]] | None = None, note: str = UNIQUE
) -> Printer:
    """The printer of a table with the columns Name, `columns` and Age.

    Args:
        kind: the words for an object in descriptions (`config map`).
        columns: the columns after the name.
        cells: from an object and now (nanoseconds) to the cells of `columns`, without AGE; None without columns.
        note: the end of the description of the name.
    """
    other_columns = columns if AGE in columns else (*columns, AGE)
    age_index = other_columns.index(AGE)
    age = Column("Age", description=f"Time since the {kind} was created.")

    def row(obj: Object, now_ns: int) -> list[Any]:
        cell_values = cells(obj, now_ns) if cells else ()
        object_name = obj["metadata"].get("name", "")
        return [object_name, *cell_values[:age_index], printing.created_age(obj, now_ns), *cell_values[age_index:]]

    return Printer((_name_column(kind, note), *other_columns[:age_index], age, *other_columns[age_index + 1 :]), row)


def without_age(
    kind: str, *columns: Column, cells: Callable[[Object, int], Sequence[Any]], note: str = UNIQUE
) -> Printer:
    """As `named`, for a table without the column Age."""
    return Printer(
        (_name_column(kind, note), *columns),
        lambda obj, now_ns: [obj["metadata"].get("name", ""), *cells(obj, now_ns)],
    )


def _name_column(kind: str, note: str) -> Column:
    return Column("Name", format="name", description=f"Name of the {kind}{note}.")


def with_creation_time(kind: str, note: str = UNIQUE, *, unknown: str = "") -> Printer:
    """kube-apiserver's default printer: a table with the columns Name and Created At.

    Args:
        kind: the words for an object in descriptions.
        note: the end of the description of the name.
        unknown: the cell of an object without a creation time.
    """

    def row(obj: Object, _now_ns: int) -> list[Any]:
        metadata = obj["metadata"]
        return [metadata.get("name", ""), metadata.get("creationTimestamp") or unknown]

    return Printer(
        columns=(_name_column(kind, note), Column("Created At", "date", description=f"When the {kind} was created.")),
        row=row,
        empty_is_null=True,
    )
