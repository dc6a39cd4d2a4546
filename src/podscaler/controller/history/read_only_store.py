"""An history store of histories that is read, and written only once the controller writes anything at all.

A controller that stands by has one around its own history store: it learns what an earlier
process left, and does not touch it.
"""

from collections.abc import Callable, Sequence

from podscaler.base.clock import Clock
from podscaler.controller.history.history_record import RestoredHistory
from podscaler.controller.history.store import HistorySnapshot, HistoryStore
from podscaler.kube.informers.cache import Key

POLL_PERIOD_S = 1.0


class ReadOnlyHistoryStore:
    """See the module.

    Args:
        history store: the one that is held.
        is_held: whether nothing may be written now.
        clock: for the waits between two looks.
    """

    def __init__(self, archive: HistoryStore, is_held: Callable[[], bool], clock: Clock) -> None:
        self._archive = archive
        self._is_held = is_held
        self._clock = clock
        self._is_released = False

    async def find(self, key: Key, uid: str) -> RestoredHistory | None:
        """As HistoryStore. Raises StatusError."""
        return await self._archive.find(key, uid)

    def keep(self, key: Key, latest: HistorySnapshot) -> None:
        """As HistoryStore."""
        self._archive.keep(key, latest)

    async def store(self, key: Key, latest: HistorySnapshot) -> None:
        """As HistoryStore, if anything may be written now."""
        if self._is_released or not self._is_held():
            self._is_released = True
            await self._archive.store(key, latest)

    def forget(self, key: Key) -> None:
        """As HistoryStore."""
        self._archive.forget(key)

    def expect_changes(self) -> None:
        """As HistoryStore."""
        self._archive.expect_changes()

    async def hand_over(self, keys: Sequence[Key]) -> None:
        """As HistoryStore, if anything was ever allowed to be written."""
        if self._is_released:
            await self._archive.hand_over(keys)

    def drop(self, key: Key) -> None:
        """As HistoryStore."""
        self._archive.drop(key)

    async def run(self) -> None:
        """Wait until writing is allowed for the first time, then as HistoryStore."""
        while self._is_held():
            await self._clock.sleep(POLL_PERIOD_S)
        self._is_released = True
        await self._archive.run()

    async def close(self) -> None:
        """As HistoryStore, if anything was ever allowed to be written."""
        if self._is_released:
            await self._archive.close()
