"""Reads what can be read of a damaged database.

Called by `backup`. A row may be unreadable for its body (bytes were changed) or for the page that it is on (SQLite
refuses it); of the latter the name may be readable still. Rows on both sides of a damaged page are found by halving
what lies between. The newest readable version of an object is saved, so that an object of which only the newest is
damaged comes back as it was before, as long as history holds that.
"""

import sqlite3
from collections import deque
from dataclasses import dataclass

from podscaler.controlplane.storage import database as databases
from podscaler.controlplane.storage.database import Row

_MOST_LOOKS = 100_000
"""How often windows around damage are halved at most: seconds."""
_BEYOND_ALL = 1 << 62

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was read.

    Attributes:
        rows: the newest readable version of each object that was not deleted, oldest first.
        lost: a line for each object or part that could not be read.
    """

    rows: tuple[Row, ...]
    lost: tuple[str, ...]


def read(database: sqlite3.Connection) -> Salvage:
    """All that can be read of a database of any format."""
    rows, unreadable = _read_rows(database)
    newest: dict[Key, Row] = {}
    damaged: dict[Key, Row] = {}
    for revision in sorted({*rows, *unreadable}):
        row = rows.get(revision) or _named_row(database, revision)
        if row is None:
            continue
        key = (row.resource, row.namespace, row.name)
        if revision in unreadable or not _is_sound(row):
            damaged[key] = row
            unreadable.discard(revision)
            continue
        damaged.pop(key, None)
        newest.pop(key, None)
        if row.body is not None:
            newest[key] = row
    lost = [_told(row, newest.get(key)) for key, row in damaged.items()]
    return Salvage(tuple(newest.values()), (*lost, *_told_ranges(sorted(unreadable))))


def _read_rows(database: sqlite3.Connection) -> tuple[dict[int, Row], set[int]]:
    """Rows by revision, and the revisions (there may be rows of them or not) that SQLite cannot read."""
    rows: dict[int, Row] = {}
    unreadable: set[int] = set()
    windows = deque([(0, _BEYOND_ALL)])
    for _ in range(_MOST_LOOKS):
        if not windows:
            break
        low, high = windows.popleft()
        if high - low <= 2:
            if high - low == 2 and not _read_one(database, low + 1, rows):
                unreadable.add(low + 1)
            continue
        if _read_until_damage(database, (low, high), "ASC", rows):
            continue
        low = max((revision for revision in rows if low < revision < high), default=low)
        _read_until_damage(database, (low, high), "DESC", rows)
        high = min((revision for revision in rows if low < revision < high), default=high)
        middle = (low + high) // 2
        windows += [(low, high)] if high - low <= 2 else [(low, middle + 1), (middle, high)]
    return rows, unreadable


def _read_until_damage(database: sqlite3.Connection, window: tuple[int, int], order: str, rows: dict[int, Row]) -> bool:
    """Add the rows strictly inside the window as far as they can be read; whether these are all."""
    query = f"{databases.SELECT_ROWS} WHERE revision > ? AND revision < ? ORDER BY revision {order}"
    try:
        for values in database.execute(query, window):
            rows[values[0]] = Row(*values)
    except sqlite3.DatabaseError:
        return False
    return True


def _read_one(database: sqlite3.Connection, revision: int, rows: dict[int, Row]) -> bool:
    """Add the row, if there is one; False if it cannot be read. Looks at no page beyond, as a window's end does."""
    try:
        values = database.execute(f"{databases.SELECT_ROWS} WHERE revision = ?", (revision,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    if values:
        rows[revision] = Row(*values)
    return True


def _named_row(database: sqlite3.Connection, revision: int) -> Row | None:
    """The row without its body, None where that cannot be read either."""
    query = "SELECT revision, previous, at_ns, resource, namespace, name, NULL FROM versions WHERE revision = ?"
    try:
        values = database.execute(query, (revision,)).fetchone()
    except sqlite3.DatabaseError:
        return None
    return Row(*values) if values else None


def _is_sound(row: Row) -> bool:
    try:
        databases.entry_of(row)
    except ValueError:
        return False
    return True


def _told(row: Row, older: Row | None) -> str:
    saved = f"; as of revision {older.revision} it is saved" if older else ""
    return f"{row.title} (revision {row.revision}) cannot be read{saved}"


def _told_ranges(revisions: list[int]) -> list[str]:
    """One line for revisions that follow each other."""
    ranges: list[tuple[int, int]] = []
    for revision in revisions:
        if ranges and ranges[-1][1] == revision - 1:
            ranges[-1] = (ranges[-1][0], revision)
        else:
            ranges.append((revision, revision))
    return [f"what was written at revisions {first} to {last} cannot be read" for first, last in ranges]
