"""Stores the histories of autoscalers in ConfigMaps, so that decisions continue after a restart or a change of leader.

`podscaler.controller.assembly` makes one, and the controller runs it. The reconciler calls `find` and `keep`, which
work in memory (except for the first read of each ConfigMap), and `store`, which writes at once; `run` writes in the
background. Rules:

1. An entry is not overwritten before it was read.
2. A rescale is written before the scale is. Rescales of one ConfigMap that come while a request is on its way, or less
   than STORE_PAUSE_S after the last, are one request. The first record of an autoscaler, a rescale that could not be
   stored, and a recommendation that holds replicas for a minute longer than the record says, are written within about
   10 s, any other change within a minute, and nothing is written while only the instants of recommendations change that
   every sync renews. Changes of all autoscalers of a ConfigMap are one request.
3. A failure to read or write is logged once, and tried again; meanwhile the history in memory is used, as
   kube-controller-manager does, and no rescale waits for a write.
4. Invalid records are ignored with a warning; records of another object of the same name are not used.
5. Records of autoscalers that do not exist any more are deleted once their instants are before every stabilization
   window and policy period; they are read again before, as another process may have renewed them.
6. One write of a ConfigMap at a time, each for the version that was read or written last. Where another process has
   changed the ConfigMap, it is read again, and only records of this process's autoscalers are written. So a write that
   arrives late, after a handover, changes nothing.
7. `expect_changes` begins a new generation: what was read before is read again, and a response counts only if its
   request began in the latest generation.
8. At a handover records are written as they are at that instant, under a writer's name that says that they are
   complete (`HANDED_OVER`): another process decides as this one would have.

Differs: kube-controller-manager loses its history with the process, as podscaler does with `--history=memory`.

Source: docs/decisions/history.md; docs/spec/controller.md 1 (State).
"""

import asyncio
import contextvars
import functools
import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.concurrency import WithoutSlot, keep_slot
from podscaler.base.errors import StatusError
from podscaler.controller.history import history_maps, history_record, stored_map
from podscaler.controller.history.history_maps import HistoryMaps
from podscaler.controller.history.history_record import HEARTBEAT_S, LAZY_S, Heartbeat, HistoryRecord, RestoredHistory
from podscaler.controller.history.store import HistorySnapshot, HistoryStore
from podscaler.controller.history.stored_map import StoredMap, WriteBatch
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.fence import LeadershipLost
from podscaler.kube.informers.cache import Key
from podscaler.kube.transport.single_flight import SingleFlight

log = logging.getLogger(__name__)

TICK_S = 10.0
"""How often `run` checks what is due."""
RETRY_READ_S = 30.0
"""How long after a failure a ConfigMap is not read again (rule 3)."""
HELD_POLL_S = 1.0
"""How often `run` checks whether writing is allowed."""
STORE_PAUSE_S = 0.5
"""Between two batches of rescales of a ConfigMap: the cost of a write grows with the size of the ConfigMap."""
STORE_TIMEOUT_S = 2.0
"""A rescale waits at most so long until it is stored."""
RECORDS_AT_ONCE = 100
"""How many records are encoded before other tasks may run."""
HANDED_OVER = "-handed-over"
"""The suffix of a writer's name whose records are complete."""
WINDOW_MAX_NS = 3600 * NANOSECONDS
"""The longest stabilization window and policy period that the API admits."""


class ConfigMapHistoryStore(HistoryStore):
    """Stores the histories of autoscalers in ConfigMaps, by the module's rules; a HistoryStore.

    Args:
        maps: reads and writes the ConfigMaps.
        writer: the unique name of this process.
        flag_window_ns: the longest window that a flag sets.
        without_slot: entered while a sync waits until a rescale is stored, so that another sync can use its slot.
        is_held: whether nothing may be written yet (standby); once it was false, it is not called any more.
    """

    def __init__(
        self,
        maps: HistoryMaps,
        clock: Clock,
        *,
        writer: str,
        flag_window_ns: int,
        without_slot: WithoutSlot = keep_slot,
        is_held: Callable[[], bool] = lambda: False,
    ) -> None:
        self._maps = maps
        self._clock = clock
        self._writer = writer
        self._without_slot = without_slot
        self._is_held = is_held
        self._has_been_allowed = not is_held()
        self._reach_ns = max(WINDOW_MAX_NS, flag_window_ns)  # no decision reads instants that are longer ago
        self._loaded: dict[str, StoredMap] = {}
        self._heartbeats: dict[str, Heartbeat] = {}
        self._obsolete_writers: set[str] = set()
        self._generation = 0
        self._read_generations: dict[str, int] = {}  # the generation in which each ConfigMap was read last
        self._reads: SingleFlight[tuple[str, int], None] = SingleFlight()
        self._read_failures: dict[str, tuple[float, StatusError]] = {}  # when, in monotonic s, and the error
        self._heartbeat_at_s: float | None = None
        self._failing: dict[str, str] = {}  # the last error of each ConfigMap whose last request failed

    async def find(self, key: Key, uid: str) -> RestoredHistory | None:
        """As HistoryStore. Raises StatusError."""
        record = (await self._get_map(history_maps.map_of(key))).claim(key, uid)
        if record is None:
            return None
        return history_record.restored(record, self._heartbeats.get(record.writer), self._clock.now_ns())

    def keep(self, key: Key, latest: HistorySnapshot) -> None:
        """As HistoryStore."""
        loaded_map = self._loaded.get(history_maps.map_of(key))
        if loaded_map is not None:
            loaded_map.keep(key, latest)

    async def store(self, key: Key, latest: HistorySnapshot) -> None:
        """As HistoryStore; returns after STORE_TIMEOUT_S at the latest."""
        loaded_map = self._loaded.get(history_maps.map_of(key))
        if loaded_map is None or not self._may_write():
            return
        is_failing = loaded_map.name in self._failing
        loaded_map.keep(key, latest)
        if is_failing:
            loaded_map.is_urgent = True
            return
        batch = loaded_map.batch = loaded_map.batch or self._begin_batch(loaded_map)
        batch.keys.add(key)
        async with self._without_slot():
            await timeouts.first_of(batch.task, self._clock.sleep(STORE_TIMEOUT_S))
        loaded_map.is_urgent = loaded_map.is_urgent or not batch.task.done()

    def forget(self, key: Key) -> None:
        """As HistoryStore."""
        loaded_map = self._loaded.get(history_maps.map_of(key))
        if loaded_map is not None:
            loaded_map.forget(key)

    def expect_changes(self) -> None:
        """As HistoryStore."""
        self._generation += 1
        self._read_failures.clear()

    async def hand_over(self, keys: Sequence[Key]) -> None:
        """As HistoryStore; the heartbeat that says that all records are complete follows only if they were written."""
        if not self._has_been_allowed:
            return
        by_map: dict[str, set[Key]] = {}
        for key in keys:
            by_map.setdefault(history_maps.map_of(key), set()).add(key)
        writer = f"{self._writer}{HANDED_OVER}"
        saves = [
            self._write_touched(self._loaded[name], keys_of_map, writer)
            for name, keys_of_map in by_map.items()
            if name in self._loaded
        ]
        if saves and all(await asyncio.gather(*saves)):
            await self._write_heartbeat(writer, is_last=True)

    def drop(self, key: Key) -> None:
        """As HistoryStore."""
        loaded_map = self._loaded.get(history_maps.map_of(key))
        if loaded_map is not None:
            loaded_map.drop(key)

    async def run(self) -> None:
        """Write until cancelled."""
        while not self._may_write():
            await self._clock.sleep(HELD_POLL_S)
        while True:
            await self._clock.sleep(TICK_S)
            await self._write_due()

    async def close(self) -> None:
        """Write all records with the instants that syncs renewed, and a heartbeat that says that they are complete."""
        if not self._has_been_allowed:
            return
        loaded_maps = list(self._loaded.values())
        await timeouts.end(*(loaded_map.batch.task for loaded_map in loaded_maps if loaded_map.batch is not None))
        saved = await asyncio.gather(
            *(self._write_touched(loaded_map, set(loaded_map.latest), self._writer) for loaded_map in loaded_maps)
        )
        if all(saved) and any(loaded_map.stored for loaded_map in loaded_maps):
            await self._write_heartbeat(self._writer, is_last=True)

    def _may_write(self) -> bool:
        """Whether writing is allowed now, or was before."""
        self._has_been_allowed = self._has_been_allowed or not self._is_held()
        return self._has_been_allowed

    async def _write_due(self) -> None:
        """Write the ConfigMaps whose changes are due, and once a HEARTBEAT_S the heartbeat of this process."""
        now_s = self._clock.monotonic_s()
        due_maps = [
            loaded_map
            for loaded_map in self._loaded.values()
            if loaded_map.is_urgent or now_s - loaded_map.written_at_s >= LAZY_S
        ]
        await asyncio.gather(*(self._write_touched(due_map) for due_map in due_maps))
        if self._heartbeat_at_s is None or now_s - self._heartbeat_at_s >= HEARTBEAT_S:
            await self._drop_unclaimed()
            if any(loaded_map.stored for loaded_map in self._loaded.values()):
                await self._write_heartbeat(self._writer)

    async def _get_map(self, name: str) -> StoredMap:
        """The ConfigMap, read at its first use. Raises StatusError; after a failure without a read for RETRY_READ_S."""
        while not self._is_current(name):  # again if a new generation began during the read
            failed_at_s, error = self._read_failures.get(name, (0.0, None))
            if error is not None and self._clock.monotonic_s() - failed_at_s < RETRY_READ_S:
                raise error
            generation = self._generation
            try:
                await self._reads.run((name, generation), functools.partial(self._load, name))
            except StatusError as failure:
                if generation == self._generation:
                    self._read_failures[name] = self._clock.monotonic_s(), failure
                self._log_failure(name, failure)
                raise
        return self._loaded[name]

    def _is_current(self, name: str) -> bool:
        """Whether the ConfigMap was read in the latest generation (rule 7)."""
        return self._read_generations.get(name) == self._generation

    async def _load(self, name: str) -> None:
        """Read a ConfigMap; the response is dropped where a new generation began meanwhile (rule 7)."""
        generation = self._generation
        contents, heartbeats = await self._maps.read(name), await self._maps.heartbeats()
        if generation != self._generation:
            return
        now_ns = self._clock.now_ns()
        self._obsolete_writers |= {
            writer for writer, heartbeat in heartbeats.items() if heartbeat.at < now_ns - 2 * self._reach_ns
        }
        self._heartbeats |= heartbeats
        loaded_map = self._loaded.get(name) or StoredMap(name, written_at_s=self._clock.monotonic_s())
        loaded_map.load(contents, now_ns)
        self._loaded[name] = loaded_map
        self._read_generations[name] = generation
        self._read_failures.pop(name, None)
        self._log_failure(name, None)

    def _begin_batch(self, loaded_map: StoredMap) -> WriteBatch:
        """A batch that rescales of other syncs may join; written by the process's write lease, not by one sync's."""
        storing = self._store_batch(loaded_map)
        return WriteBatch(set(), asyncio.get_running_loop().create_task(storing, context=contextvars.Context()))

    async def _store_batch(self, loaded_map: StoredMap) -> None:
        """Write the rescales of the ConfigMap's batch by one request, at least STORE_PAUSE_S after the batch before."""
        if loaded_map.batched_at_s is not None:
            wait_s = loaded_map.batched_at_s + STORE_PAUSE_S - self._clock.monotonic_s()
            if wait_s > 0:
                await self._clock.sleep(wait_s)
        async with loaded_map.lock:
            batch, loaded_map.batch = loaded_map.batch, None
            loaded_map.batched_at_s = self._clock.monotonic_s()
            if batch is not None and not await self._try_write(loaded_map, batch.keys):
                loaded_map.is_urgent = True

    async def _write_touched(
        self, loaded_map: StoredMap, exact_keys: Collection[Key] = (), exact_writer: str = ""
    ) -> bool:
        """Write what changed in a ConfigMap; returns whether nothing is left to write.

        Records of `exact_keys` are written even if only an instant differs, and have `exact_writer` as their writer.
        """
        async with loaded_map.lock:
            was_urgent, loaded_map.is_urgent = loaded_map.is_urgent, False
            is_saved = False
            try:
                keys = loaded_map.touched.union(exact_keys)
                is_saved = await self._try_write(loaded_map, keys, exact_keys, exact_writer)
            finally:
                loaded_map.is_urgent = loaded_map.is_urgent or (was_urgent and not is_saved)
            return is_saved

    async def _try_write(
        self, loaded_map: StoredMap, keys: Collection[Key], exact_keys: Collection[Key] = (), exact_writer: str = ""
    ) -> bool:
        """Write what changed of these autoscalers, and deletions; whether that succeeded. The caller holds the lock."""
        keys = frozenset(keys)
        loaded_map.touched -= keys
        is_written = False
        try:
            is_written = await self._write_with_retries(loaded_map, keys, exact_keys, exact_writer)
        except (StatusError, LeadershipLost) as error:
            self._log_failure(loaded_map.name, error)
        finally:
            if not is_written:
                loaded_map.retry(keys)
        return is_written

    async def _write_with_retries(
        self, loaded_map: StoredMap, keys: Iterable[Key], exact_keys: Collection[Key], exact_writer: str
    ) -> bool:
        """As `_try_write`, and again if the ConfigMap has changed; returns True. Raises StatusError, LeadershipLost."""
        for attempts_left in reversed(range(history_maps.UPDATE_ATTEMPTS)):
            records = await self._records_to_write(loaded_map, keys, exact_keys, exact_writer)
            entries = loaded_map.prepare_entries(records)
            if not entries:
                return True
            loaded_map.written_at_s = self._clock.monotonic_s()
            try:
                version = await self._maps.update(loaded_map.name, entries, loaded_map.version)
            except StatusError as error:
                if not (attempts_left and history_maps.is_outdated(error)):
                    raise
                loaded_map.load(await self._maps.read(loaded_map.name), self._clock.now_ns())
                continue
            loaded_map.note_written(version, entries, records)
            self._log_failure(loaded_map.name, None)
            return True
        raise AssertionError("the last attempt returns or raises")

    async def _records_to_write(
        self, loaded_map: StoredMap, keys: Iterable[Key], exact_keys: Collection[Key], exact_writer: str
    ) -> dict[Key, HistoryRecord]:
        """The records that have to be written, of those of `keys` that this process still syncs."""
        changed_records: dict[Key, HistoryRecord] = {}
        for number, key in enumerate(keys, 1):
            if number % RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)  # let other tasks run
            latest = loaded_map.latest.get(key)
            if latest is None:
                continue
            is_exact = key in exact_keys
            record_writer = exact_writer if is_exact else self._writer
            record = stored_map.record_of(latest, record_writer, now_ns=self._clock.now_ns(), reach_ns=self._reach_ns)
            if loaded_map.needs_write(key, record, is_exact=is_exact):
                changed_records[key] = record
        # other tasks ran meanwhile, which may have dropped autoscalers
        return {key: record for key, record in changed_records.items() if key in loaded_map.latest}

    async def _drop_unclaimed(self) -> None:
        """Delete records of autoscalers that no sync has looked up and that are too old to matter (rule 5)."""
        for loaded_map in list(self._loaded.values()):
            if self._find_unreachable(loaded_map):
                try:
                    await self._load(loaded_map.name)
                except StatusError as error:
                    self._log_failure(loaded_map.name, error)
                    continue
                if self._is_current(loaded_map.name):
                    loaded_map.expire(self._find_unreachable(loaded_map))

    def _find_unreachable(self, loaded_map: StoredMap) -> list[str]:
        """The data keys of unclaimed records whose instants are before every window that may read them (rule 5)."""
        now_ns = self._clock.now_ns()
        oldest_read_ns = now_ns - self._reach_ns
        return [
            data_key
            for data_key, record in loaded_map.unclaimed.items()
            if history_record.alive_until(record, self._heartbeats.get(record.writer), now_ns) < oldest_read_ns
        ]

    async def _write_heartbeat(self, writer: str, *, is_last: bool = False) -> None:
        """Write the heartbeat of a writer; `is_last`: its records are complete, and it writes no more."""
        heartbeat = history_record.encode_heartbeat(Heartbeat(self._clock.now_ns(), is_last))
        entries: dict[str, str | None] = {**dict.fromkeys(self._obsolete_writers), writer: heartbeat}
        try:
            await self._maps.change(history_maps.NAME, entries)
        except (StatusError, LeadershipLost) as error:
            self._log_failure(history_maps.NAME, error)
            return
        self._log_failure(history_maps.NAME, None)
        if writer == self._writer:
            self._heartbeat_at_s = self._clock.monotonic_s()
        self._obsolete_writers.clear()

    def _log_failure(self, name: str, error: StatusError | LeadershipLost | None) -> None:
        """Log the first failure, and the end of all failures."""
        if error is None:
            if self._failing.pop(name, None) is not None and not self._failing:
                log.info("histories are kept in the cluster again")
            return
        level = logging.DEBUG if self._failing else logging.WARNING
        self._failing[name] = str(error)
        is_forbidden = isinstance(error, StatusError) and error.code == 403
        log.log(
            level, "histories are kept in memory only: %s%s", error, self._permission_hint() if is_forbidden else ""
        )

    def _permission_hint(self) -> str:
        verbs = "get, patch and create"
        return f' (grant {verbs} on "configmaps" in the namespace {self._maps.namespace}, or use --history=memory)'
