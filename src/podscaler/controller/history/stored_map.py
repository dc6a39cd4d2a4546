"""Holds one ConfigMap of histories in memory: its records, and the changes that are to be written into it.

It makes no requests: `podscaler.controller.history.config_map_store` reads and writes the ConfigMap, and holds `lock`
while it writes, so that the writes of a process never overtake each other. A further reason to write a record soon: in
`StoredMap.keep`.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podscaler.controller.history import history_record
from podscaler.controller.history.history_maps import ConfigMapContents
from podscaler.controller.history.history_record import HistoryRecord
from podscaler.controller.history.store import HistorySnapshot
from podscaler.core.model import stored_history
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

MAP_MAX_BYTES = 900_000
"""An API server takes no ConfigMap over 1 MiB."""


@dataclass(slots=True)
class WriteBatch:
    """Rescales whose histories are stored by one request.

    Attributes:
        keys: the keys of the autoscalers.
        task: stores the histories.
    """

    keys: set[Key]
    task: "asyncio.Task[None]"


@dataclass(slots=True)
class StoredMap:
    """The records of one ConfigMap of histories, and the changes that are not written yet.

    A data key is the key of an entry in the ConfigMap (`history_record.data_key`).

    Attributes:
        name: the name of the ConfigMap.
        version: the ConfigMap's resourceVersion when it was last read or written; None if the ConfigMap does not exist.
        stored: the records in the ConfigMap that this process wrote or continues.
        sizes_bytes: the size of each entry of the ConfigMap (key and JSON), by data key.
        unclaimed: the records of other processes that no sync here has looked up, by data key.
        latest: the snapshot of the last sync of each autoscaler.
        touched: the autoscalers that were synced since the last write.
        deleted: data keys of deleted autoscalers, to be removed.
        expired: data keys of unclaimed records that are too old to matter, to be removed.
        is_urgent: whether a change has to be written within `config_map_store.TICK_S`.
        written_at_s: when the last change was written, or failed to be.
        is_full: whether a record ever had no room.
        lock: held during a write.
        batch: the rescales that wait to be stored; None: no rescale waits.
        batched_at_s: when the last batch was stored; None: never.
    """

    name: str
    version: str | None = None
    stored: dict[Key, HistoryRecord] = field(default_factory=dict)
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    unclaimed: dict[str, HistoryRecord] = field(default_factory=dict)
    latest: dict[Key, HistorySnapshot] = field(default_factory=dict)
    touched: set[Key] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    is_urgent: bool = False
    written_at_s: float = 0.0
    is_full: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    batch: WriteBatch | None = None
    batched_at_s: float | None = None

    def claim(self, key: Key, uid: str) -> HistoryRecord | None:
        """Take over the record that another process left of an autoscaler; None if there is none."""
        data_key = history_record.data_key(key)
        record = self.unclaimed.pop(data_key, None)
        if record is None:
            return None
        self.is_urgent = True  # so that the record soon has this process as its writer, or is removed
        if record.uid != uid:
            log.info("the kept history of %s/%s is of another object of that name, and ignored", *key)
            self.deleted.add(data_key)
            return None
        self.stored[key] = record
        return record

    def keep(self, key: Key, latest: HistorySnapshot) -> None:
        """Take the history of the latest sync, to be written later."""
        is_new = key not in self.latest
        is_urgent = is_new or self._prolongs(key, latest) or self._begins_failure(key, latest)
        self.latest[key] = latest
        self.touched.add(key)
        if self.deleted:  # usually empty: then no data key is computed in each sync
            self.deleted.discard(history_record.data_key(key))
        self.is_urgent = self.is_urgent or is_urgent

    def forget(self, key: Key) -> None:
        """The autoscaler was deleted: have its record removed."""
        self.drop(key)
        self.deleted.add(history_record.data_key(key))

    def drop(self, key: Key) -> None:
        """Another process manages the autoscaler: its record stays."""
        self.touched.discard(key)
        self.latest.pop(key, None)
        self.stored.pop(key, None)
        self.deleted.discard(history_record.data_key(key))

    def load(self, contents: ConfigMapContents, now_ns: int) -> None:
        """Take a ConfigMap that was read. Records of this process that it lacks count as not written."""
        entries = contents.entries
        self.version = contents.version
        self.expired.clear()
        self.sizes_bytes = {data_key: len(data_key) + len(record_json) for data_key, record_json in entries.items()}
        for key, record in list(self.stored.items()):
            if entries.get(history_record.data_key(key)) != history_record.encode(record):
                del self.stored[key]  # the entry is lost, or another process wrote it
        our_data_keys = self.deleted.union(map(history_record.data_key, (*self.latest, *self.stored)))
        self.unclaimed = {}
        for data_key in entries.keys() - our_data_keys:
            unclaimed_record = self._decode_entry(data_key, entries[data_key], now_ns)
            if unclaimed_record is not None:
                self.unclaimed[data_key] = unclaimed_record

    def expire(self, data_keys: Iterable[str]) -> None:
        """Have unclaimed records removed that are too old to matter."""
        for data_key in data_keys:
            del self.unclaimed[data_key]
            self.expired.add(data_key)

    def prepare_entries(self, records: Mapping[Key, HistoryRecord]) -> dict[str, str | None]:
        """The entries to change, JSON by data key; None removes one. Deletions of absent entries are forgotten.

        A record that would make the ConfigMap too large is removed.
        """
        self.deleted &= self.sizes_bytes.keys()
        self.expired &= self.sizes_bytes.keys()
        entries: dict[str, str | None] = dict.fromkeys(self.deleted | self.expired)
        json_by_data_key = {
            history_record.data_key(key): history_record.encode(record) for key, record in records.items()
        }
        changing = entries.keys() | json_by_data_key.keys()
        total_bytes = sum(size for data_key, size in self.sizes_bytes.items() if data_key not in changing)
        for data_key, record_json in json_by_data_key.items():
            size_bytes = len(data_key) + len(record_json)
            if total_bytes + size_bytes <= MAP_MAX_BYTES:
                total_bytes += size_bytes
                entries[data_key] = record_json
                continue
            self._log_full()
            if data_key in self.sizes_bytes:
                entries[data_key] = None
        return entries

    def needs_write(self, key: Key, record: HistoryRecord, *, is_exact: bool) -> bool:
        """Whether a record has to be written; `is_exact`: also where only an instant differs."""
        stored_record = self.stored.get(key)
        if stored_record is None or not history_record.is_as_good(stored_record, record):
            return True
        return is_exact and stored_record.history != record.history

    def note_written(
        self, version: str, entries: Mapping[str, str | None], records: Mapping[Key, HistoryRecord]
    ) -> None:
        """Take note that the entries were written, which gave the ConfigMap the resourceVersion `version`."""
        self.version = version
        for data_key, record_json in entries.items():
            if record_json is None:
                self.deleted.discard(data_key)
                self.expired.discard(data_key)
                self.sizes_bytes.pop(data_key, None)
            else:
                self.sizes_bytes[data_key] = len(data_key) + len(record_json)
        for key, record in records.items():
            is_written = entries.get(history_record.data_key(key)) is not None
            if is_written and key in self.latest:
                self.stored[key] = record
            elif not is_written:
                self.stored.pop(key, None)

    def retry(self, keys: Iterable[Key]) -> None:
        """Take note that the records of these keys were not written: they are tried again, unless dropped meanwhile."""
        self.touched.update(key for key in keys if key in self.latest)

    def _prolongs(self, key: Key, latest: HistorySnapshot) -> bool:
        """Whether the latest recommendation holds replicas for a minute longer than the stored record does."""
        stored_record, replicas = self.stored.get(key), latest.replicas
        if stored_record is None or replicas is None:
            return False
        return history_record.prolongs(stored_record, latest.history, replicas=replicas, at=latest.at_ns)

    def _begins_failure(self, key: Key, latest: HistorySnapshot) -> bool:
        """Whether metrics began to fail after the stored record was written."""
        stored_record = self.stored.get(key)
        return stored_record is not None and history_record.lacks_failure(
            stored_record, latest.history, at=latest.at_ns
        )

    def _decode_entry(self, data_key: str, record_json: str, now_ns: int) -> HistoryRecord | None:
        """The record in an entry; None if it is invalid."""
        try:
            record = history_record.decode(record_json)
        except ValueError as error:
            log.warning("the history %s in the ConfigMap %s is invalid and ignored: %s", data_key, self.name, error)
            return None
        if history_record.is_from_future(record, now_ns):
            log.warning("the history %s in the ConfigMap %s is from the future and ignored", data_key, self.name)
            return None
        return record

    def _log_full(self) -> None:
        """Note that the ConfigMap is full, and log it the first time."""
        if not self.is_full:
            log.warning("the ConfigMap %s is full; the histories of some autoscalers end with the process", self.name)
        self.is_full = True


def record_of(latest: HistorySnapshot, writer: str, *, now_ns: int, reach_ns: int) -> HistoryRecord:
    """The record of a snapshot; instants before `now_ns - reach_ns` are left out."""
    compacted_history = stored_history.compacted(latest.history, now_ns - reach_ns)
    goes_on = any(recommendation.at == latest.at_ns for recommendation in compacted_history.recommendations[-1:])
    return HistoryRecord(
        uid=latest.uid,
        writer=writer,
        saved_at=now_ns,
        history=compacted_history,
        replicas=latest.replicas,
        goes_on=goes_on,
        rescaled_from=latest.rescaled_from,
    )
