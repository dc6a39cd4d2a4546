"""Makes the printer (`kubectl get` table) of a custom resource from its additionalPrinterColumns.

    printer([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}], as_served)      columns Name and Size

Called by `records`. A new type of column: `_cell_of_value`.

Source: the API documentation of additionalPrinterColumns.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from podscaler.api.crd import json_path
from podscaler.api.crd.json_path import PathError
from podscaler.api.machinery import instants, printing, timestamps
from podscaler.api.resource.resources import Column, Object, Printer
from podscaler.api.text import json_text
from podscaler.base import clock

NAME = Column("Name", format="name", description="Name of the object.")
AGE = Column("Age", "date", description="Time since the object was created.")
_AGE_PATH = ".metadata.creationTimestamp"
_DEFAULT_COLUMNS = ({"name": "Age", "type": "date", "jsonPath": _AGE_PATH},)

CellFunction = Callable[[Object, int], Any]
"""From an object and now (nanoseconds since the epoch) to the cell; None for no value."""


def printer(definitions: Sequence[Object], as_served: Callable[[Object], Object]) -> Printer:
    """The printer of a version.

    Args:
        definitions: its additionalPrinterColumns; empty for a column with the age.
        as_served: converts a stored object to that version; may change it in place. Its exceptions escape from `row`.
    """
    columns = definitions or _DEFAULT_COLUMNS
    cell_functions = [_cell_function(column["jsonPath"], column["type"]) for column in columns]

    def row(obj: Object, now_ns: int) -> list[Any]:
        """The cells of one object, beginning with its name."""
        served_object = as_served(obj)
        return [
            served_object["metadata"].get("name", ""),
            *(cell_function(served_object, now_ns) for cell_function in cell_functions),
        ]

    return Printer((NAME, *(_make_column(column) for column in columns)), row)


def _make_column(definition: Object) -> Column:
    """The column of an additionalPrinterColumn."""
    path = definition["jsonPath"]
    description = definition.get("description") or (AGE.description if path == _AGE_PATH else "")
    return Column(
        definition["name"],
        type=definition["type"],
        format=definition.get("format", ""),
        description=description or f"Custom resource definition column (in JSONPath format): {path}",
        priority=definition.get("priority", 0),
    )


def _cell_function(path: str, column_type: str) -> CellFunction:
    """The function that makes the cells of a column from the first value at a JSON path."""

    def cell(obj: Object, now_ns: int) -> Any:
        """The cell of one object at an instant; None without a value, and for an invalid path."""
        try:
            values = json_path.values_at(obj, path)
        except PathError:
            return None
        first_value = values[0] if values else None
        return None if first_value is None else _cell_of_value(first_value, column_type, now_ns)

    return cell


def _cell_of_value(value: Any, column_type: str, now_ns: int) -> Any:
    """The cell of a value in a column; None if the value does not have the type of the column."""
    match column_type:
        case "string":
            return _cell_text(value)
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _age_text(value, now_ns)
    return None


def _cell_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json_text.encode(msgspec.to_builtins(value, order="sorted")).decode()


def _age_text(value: Any, now_ns: int) -> str | None:
    """The time since a timestamp (`5m`); `<unknown>` for "", `<invalid>` for another text, None for another type."""
    if not isinstance(value, str):
        return None
    if not value:
        return printing.UNKNOWN
    try:
        return printing.elapsed((now_ns - instants.parse(timestamps.normalize_time(value))) // clock.NANOSECONDS)
    except ValueError:
        return "<invalid>"
