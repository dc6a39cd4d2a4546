"""Defines a cache whose values expire, and which has a limited total size.

`query_cache` and `object_values` keep results of queries in it. Entries that are expired are dropped whenever an entry
is read or stored, and the oldest ones where the sum of the sizes is over the limit; the newest entry always stays.

`base.lru` bounds the number of entries by their use instead, for values that do not expire.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Entry(NamedTuple, Generic[V]):
    """A value, the instant of the monotonic clock until which it is kept, and its size."""

    value: V
    until_s: float
    size: int


class ExpiringValues(Generic[K, V]):
    """Values by key, each until an instant.

    An entry that expires before an older one is dropped with it: entries should live for similar times.

    Args:
        size_max: the sum of the sizes of all entries, unless the newest alone is larger; at least 1.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._size = 0
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: K, now_s: float) -> V | None:
        """The value of that key; None if there is none, or it is expired."""
        self._drop_expired(now_s)
        entry = self._entries.get(key)
        return entry.value if entry is not None and now_s < entry.until_s else None

    def put(self, key: K, value: V, *, size: int, now_s: float, until_s: float) -> None:
        """Store a value of that size, at least 1, in place of an older one; not where it is expired."""
        self._drop_expired(now_s)
        self._drop(key)
        if now_s >= until_s:
            return
        while self._entries and self._size + size > self._size_max:
            self._drop(next(iter(self._entries)))
        self._entries[key] = _Entry(value, until_s, size)
        self._size += size

    def _drop_expired(self, now_s: float) -> None:
        """Drop expired entries, the oldest first, up to the first one that is not expired."""
        while self._entries:
            key, oldest = next(iter(self._entries.items()))
            if now_s < oldest.until_s:
                return
            self._drop(key)

    def _drop(self, key: K) -> None:
        """Remove a value, if there is one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= entry.size
