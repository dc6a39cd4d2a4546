"""The check against our own writes: each rule of docs/spec/controller.md 5 (Consistency store)."""

import pytest

from podscaler.controller.informers import consistency
from podscaler.controller.informers.consistency import WrittenVersion
from podscaler.controller.reconcile.autoscaler_state import AutoscalerState, AutoscalerStates

KEY = ("shop", "web")
LAG = "read version: 9 is not as new as written version: 10 for group resource horizontalpodautoscalers.autoscaling"
WRITTEN = WrittenVersion("u1", "10")


def test_nothing_written_is_ready() -> None:
    """Without a record every cache is new enough."""
    assert consistency.find_lag(None, "1") is None


@pytest.mark.parametrize(
    ("cache_version", "lag"),
    [("9", LAG), ("10", None), ("11", None), ("", None), ("abc", None)],
    ids=["older", "equal", "newer", "unknown", "not a number"],
)
def test_the_cache_must_have_our_write(cache_version: str, lag: str | None) -> None:
    """A cache older than the last write is not ready; versions are compared as numbers."""
    assert consistency.find_lag(WRITTEN, cache_version) == lag


def test_ready_forgets_the_record() -> None:
    """A write that was seen is not looked for again."""
    state = AutoscalerState(KEY, uncached_write=WRITTEN)
    state.find_lag("10")
    assert state.find_lag("9") is None


def test_a_lower_version_replaces_nothing() -> None:
    """The highest version of one object counts."""
    assert consistency.latest(WRITTEN, WrittenVersion("u1", "8")) == WRITTEN


def test_another_object_replaces_the_record() -> None:
    """The record of a deleted object says nothing of its successor."""
    assert consistency.latest(WRITTEN, WrittenVersion("u2", "8")) == WrittenVersion("u2", "8")


@pytest.mark.parametrize(("uid", "forgotten"), [("u1", True), ("u2", False)])
def test_a_deletion_forgets_its_own_write(uid: str, forgotten: bool) -> None:
    """A deletion drops the record of that object only."""
    states = AutoscalerStates()
    state = states.of(KEY)
    state.begin_sync()
    state.uncached_write = WRITTEN
    states.unregister(KEY, uid)
    assert (states.of(KEY).uncached_write is None) is forgotten


def test_the_end_of_a_key_forgets_any_write() -> None:
    """A sync that finds the autoscaler gone leaves no record."""
    states = AutoscalerStates()
    states.of(KEY).uncached_write = WRITTEN
    states.forget(KEY)
    assert states.of(KEY).uncached_write is None
