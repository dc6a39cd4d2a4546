"""The check against our own writes: each rule of docs/spec/controller.md 5 (Consistency store)."""

import pytest

from podscaler.controller.scales.consistency import ConsistencyStore

KEY = ("shop", "web")
LAG = "read version: 9 is not as new as written version: 10 for group resource horizontalpodautoscalers.autoscaling"


@pytest.fixture
def store() -> ConsistencyStore:
    """A store that knows of a write of version 10."""
    made = ConsistencyStore()
    made.wrote(KEY, "u1", "10")
    return made


def test_nothing_written_is_ready() -> None:
    """Without a record every cache is new enough."""
    assert ConsistencyStore().find_lag(KEY, "1") is None


@pytest.mark.parametrize(
    ("cache_version", "lag"),
    [("9", LAG), ("10", None), ("11", None), ("", None), ("abc", None)],
    ids=["older", "equal", "newer", "unknown", "not a number"],
)
def test_the_cache_must_have_our_write(store: ConsistencyStore, cache_version: str, lag: str | None) -> None:
    """A cache older than the last write is not ready; versions are compared as numbers."""
    assert store.find_lag(KEY, cache_version) == lag


def test_ready_forgets_the_record(store: ConsistencyStore) -> None:
    """A write that was seen is not looked for again."""
    store.find_lag(KEY, "10")
    assert store.find_lag(KEY, "9") is None


def test_a_lower_version_replaces_nothing(store: ConsistencyStore) -> None:
    """The highest version of one object counts."""
    store.wrote(KEY, "u1", "8")
    assert store.find_lag(KEY, "9") == LAG


def test_another_object_replaces_the_record(store: ConsistencyStore) -> None:
    """The record of a deleted object says nothing of its successor."""
    store.wrote(KEY, "u2", "8")
    assert store.find_lag(KEY, "9") is None


@pytest.mark.parametrize(("uid", "forgotten"), [("u1", True), ("u2", False), (None, True)])
def test_forget(store: ConsistencyStore, uid: str | None, forgotten: bool) -> None:
    """A deletion drops the record of that object only; the end of a key drops any."""
    store.forget(KEY, uid)
    assert (store.find_lag(KEY, "9") is None) is forgotten
