"""The log of changes: each key once, at its latest change; what a reader at a version has to read."""

import asyncio

import pytest

from podscaler.observe import view_changes
from podscaler.observe.view_changes import ChangedKeys, ChangeLog

A, B, C = ("n", "a"), ("n", "b"), ("n", "c")


def test_each_key_once() -> None:
    """A reader gets the latest change of each key, oldest first, and nothing that it has."""
    log = ChangeLog()
    for key in (A, B, A, C):
        log.touch(key)
    assert log.after(0) == ChangedKeys(4, [B, A, C], [], is_complete=True)
    assert log.after(3) == ChangedKeys(4, [C], [], is_complete=True)
    assert log.after(4) == ChangedKeys(4, [], [], is_complete=True)


def test_deletions() -> None:
    """A deleted key is gone, and one that comes back is a change."""
    log = ChangeLog()
    log.touch(A)
    log.delete(A)
    log.delete(B)
    log.touch(B)
    assert log.after(0) == ChangedKeys(4, [B], [A], is_complete=True)


def test_deletions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that is older than the deletions that are kept is told so."""
    monkeypatch.setattr(view_changes, "GONE_MAX", 2)
    log = ChangeLog()
    for key in (A, B, C):
        log.delete(key)
    assert (log.after(0).is_complete, log.after(1).is_complete, log.after(0).gone) == (False, True, [B, C])


async def test_waiting() -> None:
    """`wait` returns at the next change, or at once where there was one."""
    log = ChangeLog()
    waiting = asyncio.ensure_future(log.wait(0))
    await asyncio.sleep(0)
    assert not waiting.done()
    log.wake()
    await waiting
    await log.wait(0)
