"""Tables of `kubectl get` for kinds that show name and age, as most do.

Called by the records of kinds. The printer fills in the name and the age; the record gives the other cells.

Source: the columns of kube-apiserver's tables (golden captures).
"""

from collections.abc import Callable, Sequence
from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.resource.resources import Column, Object, Printer

AGE = Column("Age")
"""Where the age stands among the columns; the last one where it is not named."""
UNIQUE = ", unique within its namespace"


def named(
    kind: str, *columns: Column, cells: Callable[[Object, int], Sequence[Any]] | None = None, note: str = UNIQUE
) -> Printer:
    """The printer of a kind.

    Args:
        kind: what descriptions call an object (`config map`).
        columns: those after the name.
        cells: from an object and now (nanoseconds) to the cells of `columns`, without that of AGE.
        note: ends the description of the name.
    """
    others = columns if AGE in columns else (*columns, AGE)
    place = others.index(AGE)
    age = Column("Age", description=f"Time since the {kind} was created.")
    name = Column("Name", format="name", description=f"Name of the {kind}{note}.")

    def row(obj: Object, now_ns: int) -> list[Any]:
        found = cells(obj, now_ns) if cells else ()
        own = obj["metadata"].get("name", "")
        return [own, *found[:place], printing.created_age(obj, now_ns), *found[place:]]

    return Printer((name, *others[:place], age, *others[place + 1 :]), row)


def with_creation_time(kind: str, note: str = UNIQUE, *, unknown: str = "") -> Printer:
    """The printer of a kind without a printer of its own upstream: its tables show name and creation time.

    Args:
        kind: what descriptions call an object.
        note: ends the description of the name.
        unknown: the cell of an object without a creation time.
    """

    def row(obj: Object, _now_ns: int) -> list[Any]:
        metadata = obj["metadata"]
        return [metadata.get("name", ""), metadata.get("creationTimestamp") or unknown]

    return Printer(
        columns=(
            Column("Name", format="name", description=f"Name of the {kind}{note}."),
            Column("Created At", "date", description=f"When the {kind} was created."),
        ),
        row=row,
        empty_is_null=True,
    )
