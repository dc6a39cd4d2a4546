"""The archive in ConfigMaps: a restart, or another leader, goes on where this process was.

`find` and `keep` work on what is in memory, but for the first look at each ConfigMap; `run` writes beside the work.

1. Nothing is written over what has not been read.
2. A change that a rescale made, and the first record of an autoscaler, is written within about 10 s, any other within a
   minute, and nothing is written while nothing changes but the instants of recommendations that every sync renews.
   Changes of all autoscalers of a ConfigMap are one request.
3. What cannot be read or written is said once in the log, and tried again; meanwhile the memory serves, as upstream's.
4. Records that make no sense are ignored with a warning, and those of another object of the same name are not used.
5. Records of autoscalers that nobody asks for go when no window can reach them any more; they are read again before,
   as another process may keep them.
6. What is handed over is written as it is at that instant, under a writer's name that says that this is all
   (`HANDED_OVER`): another process decides as this one would have.

Differs: upstream forgets its history with the process. `--history=memory` does so too.

Source: docs/decisions/history.md; spec/controller.md 1.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from podscaler.clock import NANOSECONDS, Clock
from podscaler.controller import history_maps, history_record
from podscaler.controller.archive import Latest
from podscaler.controller.history_maps import HistoryMaps
from podscaler.controller.history_record import HEARTBEAT_S, LAZY_S, Beat, Found, Record
from podscaler.controller.leading.fence import Deposed
from podscaler.core import lasting_history
from podscaler.errors import StatusError
from podscaler.kube.cache import Key
from podscaler.kube.sharing import SingleFlight

log = logging.getLogger(__name__)

TICK_S = 10.0
RETRY_READ_S = 30.0
MAP_MAX_BYTES = 900_000
"""An API server takes no ConfigMap over 1 MiB."""
RECORDS_AT_ONCE = 100
HANDED_OVER = "-handed-over"
"""What the name of a writer ends in where nothing follows what it has written."""
WINDOW_MAX_NS = 3600 * NANOSECONDS
"""The longest stabilization window and policy period that the API admits."""


@dataclass(slots=True)
class _Map:
    """One ConfigMap, as this process knows it.

    Attributes:
        kept: the records in it that this process wrote, or has taken over.
        sizes_bytes: of all its entries, by data key.
        unclaimed: the records that nobody asked for yet, by data key.
        latest: what the last sync of each autoscaler left.
        touched: the autoscalers that were synced since the last look.
        gone: data keys to be removed.
        is_urgent: whether a change must not wait.
        written_at_s: when the last change was written, or failed to be.
        is_full: whether a record ever had no room.
    """

    name: str
    kept: dict[Key, Record] = field(default_factory=dict)
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    unclaimed: dict[str, Record] = field(default_factory=dict)
    latest: dict[Key, Latest] = field(default_factory=dict)
    touched: set[Key] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    is_urgent: bool = False
    written_at_s: float = 0.0
    is_full: bool = False


class ConfigMapArchive:
    """See the module's rules.

    Args:
        maps: the ConfigMaps.
        clock: all of the archive's time.
        writer: a name for this process, another for each.
        flag_window_ns: the longest window that a flag asks for.
    """

    def __init__(self, maps: HistoryMaps, clock: Clock, *, writer: str, flag_window_ns: int) -> None:
        self._maps = maps
        self._clock = clock
        self._writer = writer
        self._reach_ns = max(WINDOW_MAX_NS, flag_window_ns)
        self._loaded: dict[str, _Map] = {}
        self._beats: dict[str, Beat] = {}
        self._obsolete_writers: set[str] = set()
        self._flights: SingleFlight[str, _Map] = SingleFlight()
        self._read_failures: dict[str, tuple[float, StatusError]] = {}
        self._beaten_at_s: float | None = None
        self._failing: dict[str, str] = {}
        self._outdated: set[str] = set()

    async def find(self, key: Key, uid: str) -> Found | None:
        """What is kept of an autoscaler. Raises StatusError where that cannot be known now."""
        found, data_key = await self._map(history_maps.map_of(key)), history_record.data_key(key)
        record = found.unclaimed.pop(data_key, None)
        if record is None:
            return None
        found.is_urgent = True  # from now on it is this process that renews it
        if record.uid != uid:
            log.info("the kept history of %s/%s is of another object of that name, and ignored", *key)
            found.gone.add(data_key)
            return None
        found.kept[key] = record
        beat = self._beats.get(record.writer)
        return Found(history_record.meant(record, beat, self._clock.now_ns()), record.replicas)

    def keep(self, key: Key, latest: Latest, *, is_urgent: bool) -> None:
        """Have it written in time; only after `find` told what there was."""
        found = self._loaded.get(history_maps.map_of(key))
        if found is not None:
            is_new = key not in found.latest
            found.latest[key] = latest
            found.touched.add(key)
            found.is_urgent = found.is_urgent or is_urgent or is_new

    def forget(self, key: Key) -> None:
        """The autoscaler is gone."""
        found = self._loaded.get(history_maps.map_of(key))
        if found is not None:
            found.touched.discard(key)
            found.latest.pop(key, None)
            found.kept.pop(key, None)
            found.gone.add(history_record.data_key(key))

    def expect_changes(self) -> None:
        """Another process may have written since: what is asked for from now on is read again."""
        self._outdated |= self._loaded.keys()
        self._read_failures.clear()

    async def hand_over(self, keys: Sequence[Key]) -> None:
        """Write everything about these as it is now: another process goes on from there."""
        by_map: dict[str, set[Key]] = {}
        for key in keys:
            by_map.setdefault(history_maps.map_of(key), set()).add(key)
        maps = [(self._loaded[name], mine) for name, mine in by_map.items() if name in self._loaded]
        writer = f"{self._writer}{HANDED_OVER}"
        if maps and all(await asyncio.gather(*(self._save(each, mine, writer) for each, mine in maps))):
            await self._beat(writer, ended=True)

    def drop(self, key: Key) -> None:
        """The autoscaler is another process's: write nothing about it any more."""
        found = self._loaded.get(history_maps.map_of(key))
        if found is not None:
            found.touched.discard(key)
            found.latest.pop(key, None)
            found.kept.pop(key, None)
            found.gone.discard(history_record.data_key(key))

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._clock.sleep(TICK_S)
            await self._tick()

    async def close(self) -> None:
        """Write everything as it is now, the instants that syncs renewed too, and say that this is all."""
        maps = list(self._loaded.values())
        saved = await asyncio.gather(*(self._save(each, set(each.latest), self._writer) for each in maps))
        if all(saved) and any(found.kept for found in maps):
            await self._beat(self._writer, ended=True)

    async def _tick(self) -> None:
        now_s = self._clock.monotonic_s()
        due = [each for each in self._loaded.values() if each.is_urgent or now_s - each.written_at_s >= LAZY_S]
        await asyncio.gather(*(self._save(each) for each in due))
        if self._beaten_at_s is None or now_s - self._beaten_at_s >= HEARTBEAT_S:
            await self._drop_unclaimed()
            if any(found.kept for found in self._loaded.values()):
                await self._beat(self._writer)

    async def _map(self, name: str) -> _Map:
        """The ConfigMap, read when it is first asked for. Raises StatusError, for a while without asking again."""
        found = self._loaded.get(name)
        if found is not None and name not in self._outdated:
            return found
        failed_at_s, error = self._read_failures.get(name, (0.0, None))
        if error is not None and self._clock.monotonic_s() - failed_at_s < RETRY_READ_S:
            raise error
        try:
            return await self._flights.run(name, lambda: self._load(name))
        except StatusError as failure:
            self._read_failures[name] = self._clock.monotonic_s(), failure
            self._say(name, failure)
            raise

    async def _load(self, name: str) -> _Map:
        entries, beats = await self._maps.read(name), await self._maps.beats()
        now_ns = self._clock.now_ns()
        self._obsolete_writers |= {each for each, beat in beats.items() if beat.at < now_ns - 2 * self._reach_ns}
        self._beats |= beats
        found = self._loaded.get(name) or _Map(name, written_at_s=self._clock.monotonic_s())
        found.sizes_bytes = {data_key: len(data_key) + len(text) for data_key, text in entries.items()}
        ours = found.gone.union(map(history_record.data_key, (*found.latest, *found.kept)))
        others = {data_key: _read(name, data_key, entries[data_key], now_ns) for data_key in entries.keys() - ours}
        found.unclaimed = {data_key: record for data_key, record in others.items() if record is not None}
        self._loaded[name] = found
        self._outdated.discard(name)
        self._read_failures.pop(name, None)
        self._say(name, None)
        return found

    async def _save(self, found: _Map, exactly: Collection[Key] = (), writer: str = "") -> bool:
        """Write what changed in a ConfigMap, some of it `exactly` and by `writer`; whether it says everything now."""
        touched, gone, was_urgent = found.touched, found.gone, found.is_urgent
        found.touched, found.gone, found.is_urgent = set(), set(), False
        records = await self._changed(found, touched.union(exactly), exactly, writer)
        entries = self._entries(found, gone, records)
        if not entries:
            return True
        found.written_at_s = self._clock.monotonic_s()
        try:
            await self._maps.change(found.name, entries)
        except (StatusError, Deposed) as error:
            found.touched |= touched
            found.gone |= gone
            found.is_urgent = found.is_urgent or was_urgent
            self._say(found.name, error)
            return False
        self._say(found.name, None)
        _note(found, entries, records)
        return True

    async def _changed(
        self, found: _Map, keys: Iterable[Key], exactly: Collection[Key], writer: str
    ) -> dict[Key, Record]:
        """The records that say something new, be it, of those to be kept `exactly`, only another instant."""
        changed: dict[Key, Record] = {}
        for number, key in enumerate(keys, 1):
            if number % RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)  # others get their turn
            latest, kept = found.latest.get(key), found.kept.get(key)
            if latest is None:
                continue
            is_exact = key in exactly
            record = self._record(latest, writer if is_exact else self._writer)
            is_same = kept is not None and history_record.is_as_good(kept, record)
            if not is_same or (is_exact and kept is not None and kept.history != record.history):
                changed[key] = record
        return changed

    def _entries(self, found: _Map, gone: set[str], records: Mapping[Key, Record]) -> dict[str, str | None]:
        """The entries to change; those that would make the ConfigMap too large go, rather than stay as they were."""
        entries: dict[str, str | None] = dict.fromkeys(gone)
        texts = {history_record.data_key(key): history_record.encode(record) for key, record in records.items()}
        changing = entries.keys() | texts.keys()
        total_bytes = sum(size for data_key, size in found.sizes_bytes.items() if data_key not in changing)
        for data_key, text in texts.items():
            size_bytes = len(data_key) + len(text)
            if total_bytes + size_bytes <= MAP_MAX_BYTES:
                total_bytes += size_bytes
                entries[data_key] = text
                continue
            self._say_full(found)
            if data_key in found.sizes_bytes:
                entries[data_key] = None
        return entries

    def _record(self, latest: Latest, writer: str) -> Record:
        now_ns = self._clock.now_ns()
        kept = lasting_history.essence(latest.history, now_ns - self._reach_ns)
        goes_on = any(each.at == latest.at_ns for each in kept.recommendations[-1:])
        return Record(latest.uid, writer, now_ns, kept, latest.replicas, goes_on)

    async def _drop_unclaimed(self) -> None:
        """Have records removed that nobody asked for, and that no window can reach any more."""
        for found in list(self._loaded.values()):
            if self._too_old(found):
                try:
                    await self._load(found.name)
                except StatusError as error:
                    self._say(found.name, error)
                    continue
                for data_key in self._too_old(found):
                    del found.unclaimed[data_key]
                    found.gone.add(data_key)

    def _too_old(self, found: _Map) -> list[str]:
        now_ns = self._clock.now_ns()
        return [
            data_key
            for data_key, record in found.unclaimed.items()
            if history_record.alive_until(record, self._beats.get(record.writer), now_ns) < now_ns - self._reach_ns
        ]

    async def _beat(self, writer: str, *, ended: bool = False) -> None:
        """Say that a writer is alive, or that nothing follows what it has written."""
        beat = history_record.encode_beat(Beat(self._clock.now_ns(), ended))
        entries: dict[str, str | None] = {**dict.fromkeys(self._obsolete_writers), writer: beat}
        try:
            await self._maps.change(history_maps.NAME, entries)
        except (StatusError, Deposed) as error:
            self._say(history_maps.NAME, error)
            return
        self._say(history_maps.NAME, None)
        if writer == self._writer:
            self._beaten_at_s = self._clock.monotonic_s()
        self._obsolete_writers.clear()

    def _say(self, name: str, error: StatusError | Deposed | None) -> None:
        """Tell the log of the first failure, and when all are over."""
        if error is None:
            if self._failing.pop(name, None) is not None and not self._failing:
                log.info("histories are kept in the cluster again")
            return
        level = logging.DEBUG if self._failing else logging.WARNING
        self._failing[name] = str(error)
        is_forbidden = isinstance(error, StatusError) and error.code == 403
        log.log(level, "histories are kept in memory only: %s%s", error, self._hint() if is_forbidden else "")

    def _say_full(self, found: _Map) -> None:
        if not found.is_full:
            log.warning("the ConfigMap %s is full; the histories of some autoscalers end with the process", found.name)
        found.is_full = True

    def _hint(self) -> str:
        verbs = "get, patch and create"
        return f' (grant {verbs} on "configmaps" in the namespace {self._maps.namespace}, or use --history=memory)'


def _read(name: str, data_key: str, text: str, now_ns: int) -> Record | None:
    """The record in an entry, if it makes sense."""
    try:
        record = history_record.decode(text)
    except ValueError as error:
        log.warning("the history %s in the ConfigMap %s makes no sense and is ignored: %s", data_key, name, error)
        return None
    if history_record.is_from_the_future(record, now_ns):
        log.warning("the history %s in the ConfigMap %s is from the future and ignored", data_key, name)
        return None
    return record


def _note(found: _Map, entries: Mapping[str, str | None], records: Mapping[Key, Record]) -> None:
    """The entries are written."""
    for data_key, text in entries.items():
        if text is None:
            found.sizes_bytes.pop(data_key, None)
        else:
            found.sizes_bytes[data_key] = len(data_key) + len(text)
    for key, record in records.items():
        is_written = entries.get(history_record.data_key(key)) is not None
        if is_written and key in found.latest:
            found.kept[key] = record
        elif not is_written:
            found.kept.pop(key, None)
