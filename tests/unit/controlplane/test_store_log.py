"""The recent past and its bounds."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.change_log import EventLog, Retention, StoreEvent
from podscaler.controlplane.storage.entries import Entry


def version(revision: int, resource: str = "g", name: str = "x") -> Entry:
    """A version of an object."""
    return entries.from_object(resource, {"metadata": {"name": name}, "pad": "x" * 100}, revision)


def created(revision: int, resource: str = "g", at_s: int = 0) -> StoreEvent:
    """The creation of an object called after its revision."""
    return StoreEvent(revision, at_s * NANOSECONDS, version(revision, resource, f"x{revision}"), None)


def log_of(*events: StoreEvent, retention: Retention | None = None) -> EventLog:
    """A log with these events, that forgot everything up to revision 1."""
    log = EventLog(1, retention or Retention())
    for event in events:
        log.append(event)
    return log


@pytest.mark.parametrize(("revision", "expected"), [(1, [2, 4, 5]), (2, [4, 5]), (3, [4, 5]), (5, []), (99, [])])
def test_events_after_a_revision(revision: int, expected: list[int]) -> None:
    """Each resource's events come in order, from after the revision named."""
    log = log_of(created(2), created(3, "other"), created(4), created(5))
    assert [event.revision for event in log.after("g", revision)] == expected


def test_count_is_bounded() -> None:
    """The oldest events go when there are too many; the floor follows."""
    log = log_of(*(created(revision) for revision in range(2, 7)), retention=Retention(count=3))
    assert log.trim(0) == []
    assert ([event.revision for event in log.after("g", 0)], log.compacted_revision, len(log)) == ([4, 5, 6], 3, 3)


def test_age_is_bounded() -> None:
    """Events older than the retention go, younger ones stay."""
    log = log_of(created(2, at_s=0), created(3, at_s=1), created(4, at_s=2), retention=Retention(age_s=10))
    log.trim(11 * NANOSECONDS)
    assert (log.compacted_revision, [event.revision for event in log.after("g", 0)]) == (2, [3, 4])


@pytest.mark.parametrize(("age_s", "is_kept"), [(300, True), (600, False)], ids=["five minutes", "ten minutes"])
def test_age_is_bounded_as_by_compactions_of_etcd(age_s: int, is_kept: bool) -> None:
    """Events are kept for five minutes at least, and for less than ten."""
    log = log_of(created(2, at_s=0))
    log.trim(age_s * NANOSECONDS)
    assert (len(log) == 1) is is_kept


def test_superseded_bytes_are_bounded() -> None:
    """Only versions that nobody but the log holds count; so creations cost nothing, changes do."""
    versions = [version(revision) for revision in range(2, 12)]
    events = [StoreEvent(v.revision, 0, v, p) for p, v in zip([None, *versions], versions, strict=False)]
    kept_bytes = 3 * len(versions[-1].body)
    log = log_of(*events, retention=Retention(superseded_bytes=kept_bytes))
    log.trim(0)
    assert (len(log), log.compacted_revision) == (3, 8)


def test_obsolete_versions_are_named() -> None:
    """Dropping a change makes the version before it obsolete, dropping a deletion also its own row."""
    one, two = version(2), version(3)
    log = log_of(StoreEvent(2, 0, one, None), StoreEvent(3, 0, two, one), StoreEvent(4, 0, None, two))
    assert log.clear(4) == [2, 3, 4]
    assert (log.compacted_revision, len(log)) == (4, 0)


def test_behind_is_by_resource() -> None:
    """A watcher is behind only if events of its own resource were dropped."""
    log = log_of(created(2, "a"), created(3, "b"), created(4, "a"), retention=Retention(count=1))
    log.trim(0)
    assert [log.is_behind(name, revision) for name, revision in (("a", 1), ("a", 2), ("b", 2), ("b", 3), ("c", 0))] == [
        True,
        False,
        True,
        False,
        False,
    ]


def test_frames_are_shared_only_while_fresh() -> None:
    """Encoded frames live as long as watchers that keep up need them, not as long as the log."""
    log = log_of(*(created(revision) for revision in range(2, 302)))
    shared = [event.revision for event in log.after("g", 0) if event.frames is not None]
    assert shared == list(range(46, 302))


def test_departed_shows_the_last_version() -> None:
    """What left is shown as it last was, as of the revision at which it left; made once."""
    event = StoreEvent(9, 0, None, version(3))
    assert event.tombstone().decode()["metadata"] == {"name": "x", "resourceVersion": "9"}
    assert event.tombstone() is event.tombstone()
