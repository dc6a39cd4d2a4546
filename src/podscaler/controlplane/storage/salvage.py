"""Reads the readable objects of a damaged SQLite database; called by `storage.backup` with --salvage.

A row is one version of an object, its primary key the revision. A row is unreadable if its body is damaged (its name
may still be readable) or if SQLite cannot read its page. Pages are read from both sides of a damaged one; readable
pages between damaged ones are searched with doubling steps, then by halving. Revisions that are not found are reported
as lost. The newest readable version of an object is saved, which is an older one if only the newest is damaged and the
change log still has the older.
"""

import sqlite3
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from podscaler.controlplane.storage import database_file
from podscaler.controlplane.storage.database_file import Row

_MAX_PROBES = 20_000
"""The most revisions that are probed between damaged pages: less than a second."""
_ABOVE_ALL_REVISIONS = 1 << 62

_ASCENDING_QUERY = "SELECT revision FROM versions WHERE revision > ? AND revision < ? ORDER BY revision ASC"
_DESCENDING_QUERY = "SELECT revision FROM versions WHERE revision > ? AND revision < ? ORDER BY revision DESC"
_ROW_QUERY = (
    "SELECT revision, previous, at_ns, resource, namespace, name, CAST(body AS BLOB) FROM versions WHERE revision = ?"
)
_ROW_WITHOUT_BODY_QUERY = (
    "SELECT revision, previous, at_ns, resource, namespace, name, NULL FROM versions WHERE revision = ?"
)

Key = tuple[str, str, str]
"""Resource, namespace and name."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """The readable part of a database.

    Attributes:
        rows: the newest readable version of each object that was not deleted, oldest first.
        lost: for users: a line for each object or range of revisions that could not be read.
    """

    rows: tuple[Row, ...]
    lost: tuple[str, ...]


def read(database: sqlite3.Connection, newest_revision: int) -> Salvage:
    """The readable rows of a database of any format of `database_file`; errors of SQLite count as damage.

    Args:
        database: opened for reading.
        newest_revision: the newest assigned revision, 0 if unknown.
    """
    pages = _PageReader(database)
    pages.read_all(newest_revision)
    newest: dict[Key, Row] = {}
    damaged: dict[Key, Row] = {}
    for revision in sorted(pages.revisions):  # in this order, so that the newest version of an object counts
        complete = _read_row(database, revision, _ROW_QUERY)
        row = complete or _read_row(database, revision, _ROW_WITHOUT_BODY_QUERY)
        if row is None:
            pages.lost_ranges.append((revision, revision))
            continue
        key = (row.resource, row.namespace, row.name)
        if complete is None or not _is_sound(complete):
            damaged[key] = row
            continue
        damaged.pop(key, None)
        newest.pop(key, None)
        if row.body is not None:  # else the object was deleted
            newest[key] = row
    lost = [_object_line(row, newest.get(key)) for key, row in damaged.items()]
    return Salvage(tuple(newest.values()), (*lost, *_range_lines(pages.lost_ranges)))


class _PageReader:
    """Finds the revisions on the readable pages of the table. A window is the open range between two revisions.

    Attributes:
        revisions: the revisions found.
        lost_ranges: the first and last revision of each range that was not readable, or not probed; in any order.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._windows: deque[tuple[int, int]] = deque()
        self._probes_left = _MAX_PROBES
        self.revisions: set[int] = set()
        self.lost_ranges: list[tuple[int, int]] = []

    def read_all(self, newest_revision: int) -> None:
        """Set `revisions` and `lost_ranges`; `newest_revision` is 0 if unknown."""
        low = self._read_window(0, _ABOVE_ALL_REVISIONS, _ASCENDING_QUERY)
        if low is None:  # all of it was read
            return
        high = self._read_window(low, _ABOVE_ALL_REVISIONS, _DESCENDING_QUERY)
        if high is None or high == _ABOVE_ALL_REVISIONS:  # nothing was read from the upper end either
            high = max(newest_revision or 2 * low, low + 1) + 1  # unknown: at most as many as were read are assumed
        if high - low <= 1:
            self.lost_ranges.append((low, max(low, high)))  # a page is damaged whose revisions are out of order
        self._step_through(low, high)
        while self._windows and self._probes_left > 0:
            self._halve(*self._windows.popleft())
        self.lost_ranges += [(low + 1, high - 1) for low, high in self._windows]

    def _step_through(self, low: int, high: int) -> None:
        """Probe revisions at doubling distances from the last readable one, as their density is unknown."""
        step, window_low = 1, low
        while low + step < high and self._probes_left > 0:
            revision = low + step
            if not self._probe_page(revision):  # another damaged page: the window before it is halved later
                self._add_window(window_low, revision)
                window_low, step = revision, 2 * step
                continue
            # a readable page: read from it in both directions, up to the next damaged pages
            self._add_window(window_low, self._read_window(window_low, revision, _DESCENDING_QUERY))
            end = self._read_window(revision, high, _ASCENDING_QUERY)
            if end is None:
                return
            window_low = end
            low, step = (end, 1) if end > revision else (low, 2 * step)
        self._add_window(window_low, high)

    def _halve(self, low: int, high: int) -> None:
        """Probe the middle of a window, and add the windows around the pages that are then still unread."""
        middle = (low + high) // 2
        if self._probe_page(middle):
            self._add_window(low, self._read_window(low, middle, _DESCENDING_QUERY))
            self._add_window(self._read_window(middle, high, _ASCENDING_QUERY), high)
        else:
            self._add_window(low, middle)
            self._add_window(middle, high)

    def _add_window(self, low: int | None, high: int | None) -> None:
        """Add a window to halve, unless it is empty or (None) was read completely."""
        if low is not None and high is not None and high - low > 1:
            self._windows.append((low, high))

    def _probe_page(self, revision: int) -> bool:
        """Read the page on which the revision is, or would be; returns whether that is possible.

        A revision that is found is added to `revisions`; one on an unreadable page to `lost_ranges`.
        """
        self._probes_left -= 1
        query = "SELECT revision FROM versions WHERE revision = ?"
        try:
            self.revisions.update(revision_found for (revision_found,) in self._database.execute(query, (revision,)))
        except sqlite3.DatabaseError:
            self.lost_ranges.append((revision, revision))
            return False
        return True

    def _read_window(self, low: int, high: int, query: str) -> int | None:
        """Read the window until a damaged page; returns the last revision read, None if all of it was read."""
        last_read = low if query == _ASCENDING_QUERY else high
        try:
            for (last_read,) in self._database.execute(query, (low, high)):
                self.revisions.add(last_read)
        except sqlite3.DatabaseError:
            return last_read
        return None


def _read_row(database: sqlite3.Connection, revision: int, query: str) -> Row | None:
    """The row, None if it cannot be read."""
    try:
        columns = database.execute(query, (revision,)).fetchone()
    except sqlite3.DatabaseError:
        return None
    return Row(*columns) if columns else None


def _is_sound(row: Row) -> bool:
    """Whether the body of a row can be decoded."""
    try:
        database_file.entry_of(row)
    except ValueError:
        return False
    return True


def _object_line(row: Row, older: Row | None) -> str:
    """The line about an object whose newest version is damaged; `older` is the saved version, None if there is none."""
    saved = f"; as of revision {older.revision} it is saved" if older else ""
    return f"{row.title} (revision {row.revision}) cannot be read{saved}"


def _range_lines(lost_ranges: Iterable[tuple[int, int]]) -> list[str]:
    """A line for each range, adjacent ones merged."""
    merged_ranges: list[tuple[int, int]] = []
    for first, last in sorted(lost_ranges):
        if merged_ranges and first <= merged_ranges[-1][1] + 1:
            merged_ranges[-1] = (merged_ranges[-1][0], max(last, merged_ranges[-1][1]))
        else:
            merged_ranges.append((first, last))
    return [f"what was written at revisions {first} to {last} cannot be read" for first, last in merged_ranges]
