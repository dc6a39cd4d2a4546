"""Logs which autoscalers changed after which version, so that views are updated.

`podscaler.observe.live_cluster` writes it, each viewer reads it from its own position. Invariant: a key is in the log
once, at its latest change, so that a viewer that is slow gets the latest state, and the log is never longer than the
autoscalers and GONE_MAX deleted ones.
"""

import asyncio
from collections import OrderedDict
from typing import NamedTuple

from podscaler.kube.informers.cache import Key

GONE_MAX = 10_000


class ChangedKeys(NamedTuple):
    """What changed after a version, oldest change first.

    Attributes:
        version: the version up to which this is complete.
        changed: the autoscalers that exist.
        gone: the autoscalers that were deleted.
        is_complete: whether no deletion is missing.
    """

    version: int
    changed: list[Key]
    gone: list[Key]
    is_complete: bool


class ChangeLog:
    """The log; every change increments `version`."""

    def __init__(self) -> None:
        self.version = 0
        # the version of each key's latest change, oldest first
        self._changed: OrderedDict[Key, int] = OrderedDict()
        self._gone: OrderedDict[Key, int] = OrderedDict()
        self._dropped_version = 0  # of the newest deletion that was dropped, as there were more than GONE_MAX
        self._change = asyncio.Event()

    def touch(self, key: Key) -> None:
        """Log that an autoscaler is new, or that its view may have changed."""
        self._gone.pop(key, None)
        self._log_change(self._changed, key)

    def delete(self, key: Key) -> None:
        """Log that an autoscaler was deleted."""
        self._changed.pop(key, None)
        self._log_change(self._gone, key)
        if len(self._gone) > GONE_MAX:
            _, self._dropped_version = self._gone.popitem(last=False)

    def after(self, version: int) -> ChangedKeys:
        """What changed after a version."""
        changed, gone = _keys_after(self._changed, version), _keys_after(self._gone, version)
        return ChangedKeys(self.version, changed, gone, version >= self._dropped_version)

    async def wait(self, version: int) -> None:
        """Return once there are changes after a version."""
        while self.version <= version:
            await self._change.wait()

    def wake(self) -> None:
        """Let `wait` return although no autoscaler changed, as time lines have new points."""
        self.version += 1
        self._notify()

    def _log_change(self, log: "OrderedDict[Key, int]", key: Key) -> None:
        """Make a key the latest change of a log."""
        self.version += 1
        log[key] = self.version
        log.move_to_end(key)
        self._notify()

    def _notify(self) -> None:
        """Wake all waiters once; those that wait again get a new event."""
        change, self._change = self._change, asyncio.Event()
        change.set()


def _keys_after(log: "OrderedDict[Key, int]", version: int) -> list[Key]:
    """The keys that changed after a version, oldest change first; the log has the latest change last."""
    keys = []
    for key in reversed(log):
        if log[key] <= version:
            break
        keys.append(key)
    return keys[::-1]
