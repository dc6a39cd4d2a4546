"""Keeps recorded syncs, compressed, so that their explanations can be made again on request.

`podscaler.observe.decision_history` adds each sync whose outcome changed, and a sample of the others. A line contains
the history before its sync, so that it can be decided again on its own. Lines are encoded and compressed in a thread by
`pack_waiting`. Where the limit of bytes is reached the oldest samples are dropped first, then the oldest changes.
"""

import asyncio
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.controller.recording.record_lines import RecordLines
from podscaler.controller.recording.recording import SyncRecord
from podscaler.kube.informers.cache import Key
from podscaler.observe.views import Mark

COMPRESSION_LEVEL = 6
MARK_BYTES = 600
"""The assumed size of a mark in memory."""


def pack(line: bytes) -> bytes:
    """The line of a recording, compressed."""
    return zlib.compress(line, COMPRESSION_LEVEL)


@dataclass(slots=True, eq=False)
class KeptSync:
    """One kept sync.

    Attributes:
        mark: its mark.
        header: the header line of the recording that the line belongs to.
        is_sample: whether its outcome is that of the sync before.
        record: the sync, until it is packed; None if the sync is packed.
        packed: the compressed line; empty until the sync is packed.
        is_dropped: whether the limits dropped it; the queues forget it later.
    """

    key: Key
    mark: Mark
    header: bytes
    is_sample: bool
    record: SyncRecord | None = None
    packed: bytes = b""
    is_dropped: bool = False

    @property
    def size_bytes(self) -> int:
        """The size of what is kept; not of a record that waits to be packed."""
        return MARK_BYTES + len(self.packed)

    def line(self) -> bytes:
        """The line of the recording."""
        record = self.record
        return zlib.decompress(self.packed) if record is None else RecordLines().encode(record)


class KeptSyncs:
    """The kept syncs of all autoscalers, with one limit of bytes.

    Attributes:
        size_bytes: the size of all of them.
    """

    def __init__(self) -> None:
        self.size_bytes = 0
        self._by_key: dict[Key, dict[str, KeptSync]] = {}  # by autoscaler, then by the id of the mark, oldest first
        self._samples: deque[KeptSync] = deque()  # the oldest first, as in `_changes`
        self._changes: deque[KeptSync] = deque()
        self._waiting: list[KeptSync] = []  # to be packed

    def add(self, sync: KeptSync) -> None:
        """Add a sync, the newest of its autoscaler; it replaces one with the same mark."""
        if (replaced_sync := self.find(sync.key, sync.mark.id)) is not None:
            self._drop(replaced_sync)
        self._by_key.setdefault(sync.key, {})[sync.mark.id] = sync
        (self._samples if sync.is_sample else self._changes).append(sync)
        self.size_bytes += sync.size_bytes
        if sync.record is not None:
            self._waiting.append(sync)

    def find(self, key: Key, mark_id: str) -> KeptSync | None:
        """The sync with that mark; None if no such sync is kept."""
        return self._by_key.get(key, {}).get(mark_id)

    def of_range(self, key: Key, from_ms: int, to_ms: int) -> Sequence[KeptSync]:
        """The syncs of an autoscaler from one instant to another, both included, oldest first."""
        syncs = [kept_sync for kept_sync in self._by_key.get(key, {}).values() if from_ms <= kept_sync.mark.at <= to_ms]
        return sorted(syncs, key=lambda sync: sync.mark.at)

    def after(self, key: Key, at_ms: int) -> Sequence[KeptSync]:
        """The syncs of an autoscaler after an instant, oldest first; fast where there are few."""
        newest_first = []
        for kept_sync in reversed(self._by_key.get(key, {}).values()):
            if kept_sync.mark.at <= at_ms:
                break
            newest_first.append(kept_sync)
        return newest_first[::-1]

    async def pack_waiting(self) -> None:
        """Encode and compress in a thread what was added since the last call."""
        batch = [kept_sync for kept_sync in self._waiting if not kept_sync.is_dropped]
        self._waiting = []
        packed_lines = await asyncio.to_thread(lambda: [pack(kept_sync.line()) for kept_sync in batch])
        for kept_sync, packed_line in zip(batch, packed_lines, strict=True):
            if not kept_sync.is_dropped:
                kept_sync.packed, kept_sync.record = packed_line, None
                self.size_bytes += len(packed_line)

    def drop_before(self, at_ms: int) -> None:
        """Drop syncs older than an instant."""
        for queue in (self._samples, self._changes):
            while queue and (queue[0].is_dropped or queue[0].mark.at < at_ms):
                self._drop(queue.popleft())

    def shrink(self, max_bytes: int) -> None:
        """Drop the oldest syncs, samples first, until at most so many bytes are kept."""
        for queue in (self._samples, self._changes):
            while queue and self.size_bytes > max_bytes:
                self._drop(queue.popleft())

    def _drop(self, sync: KeptSync) -> None:
        """Release what a sync keeps, and forget its mark; its queue skips it later. Does nothing for a dropped one."""
        if sync.is_dropped:
            return
        sync.is_dropped, sync.record = True, None
        self.size_bytes -= sync.size_bytes
        syncs = self._by_key.get(sync.key, {})
        if syncs.get(sync.mark.id) is sync:
            del syncs[sync.mark.id]
            if not syncs:
                del self._by_key[sync.key]
