"""Holds the current objects of one kind in memory, indexed by key (sorted) and by the uid of the owner.

`storage.store` has a `Table` for each kind, and updates it when a commit is durable; lists read it by namespace, the
garbage collector by owner. Another index is updated where `_index_owners` and `_unindex_owners` are called. The cost of
a read is proportional to its result (plus a binary search for lists); a write costs one binary search in the keys.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

from podscaler.controlplane.storage.entries import Entry


class Table:
    """The current entries of one kind; keys are `namespace/name`, or `name` for cluster-scoped kinds."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._keys: list[str] = []
        self._keys_by_owner: dict[str, dict[str, None]] = {}  # the inner dict is a set that keeps its order

    def __len__(self) -> int:
        """The number of objects."""
        return len(self._entries)

    def find(self, key: str) -> Entry | None:
        """The entry at `key`, None if there is none."""
        return self._entries.get(key)

    def select(self, namespace: str) -> list[Entry]:
        """The entries of a namespace (`""`: all), in key order."""
        if not namespace:
            return [self._entries[key] for key in self._keys]
        start = bisect_left(self._keys, f"{namespace}/")
        end = bisect_left(self._keys, f"{namespace}0", start)  # "0" follows "/"
        return [self._entries[key] for key in self._keys[start:end]]

    def owned_by(self, uid: str) -> list[Entry]:
        """The entries with an ownerReference to `uid`, in the order in which they got it; after a restart in any."""
        return [self._entries[key] for key in self._keys_by_owner.get(uid, ())]

    def put(self, entry: Entry) -> None:
        """Make `entry` the current version of its key, in place of an earlier one."""
        previous = self._entries.get(entry.key)
        if previous is None:
            insort(self._keys, entry.key)
        elif previous.owner_uids != entry.owner_uids:
            self._unindex_owners(previous)
        self._entries[entry.key] = entry
        self._index_owners(entry)

    def remove(self, key: str) -> None:
        """Remove the entry at `key`, which must exist."""
        entry = self._entries.pop(key)
        del self._keys[bisect_left(self._keys, key)]
        self._unindex_owners(entry)

    def fill(self, entries: Iterable[Entry]) -> None:
        """Load the initial entries into an empty table, in any order; faster than `put` for each."""
        self._entries = {entry.key: entry for entry in entries}
        self._keys = sorted(self._entries)
        for entry in self._entries.values():
            self._index_owners(entry)

    def _index_owners(self, entry: Entry) -> None:
        """Add an object to the index of owners."""
        for uid in entry.owner_uids:
            self._keys_by_owner.setdefault(uid, {})[entry.key] = None

    def _unindex_owners(self, entry: Entry) -> None:
        """Remove an object from the index of owners."""
        for uid in entry.owner_uids:
            owned_keys = self._keys_by_owner.get(uid)
            if owned_keys is not None:
                owned_keys.pop(entry.key, None)
                if not owned_keys:
                    del self._keys_by_owner[uid]
