"""When a long-running process collects garbage: what is new, and rarely everything."""

import pytest

from podscaler.cli.up import garbage_collection
from podscaler.cli.up.garbage_collection import NEW_OBJECTS_MAX, SLACK_OBJECTS, OldGenerationCollector
from podscaler.testing import VirtualClock

YOUNGEST, YOUNGER = 700, 10


class PlayedCollector:
    """The module `gc` of a process in which nothing is a cycle; `done` is what it was told.

    Attributes:
        younger_collections: how often the middle generation has been collected since the last `collect`.
        new: how many objects are neither set aside nor gone.
        frozen: how many are set aside.
        counted: how often those have been counted.
    """

    def __init__(self) -> None:
        self.younger_collections = 0
        self.new = 0
        self.frozen = 0
        self.counted = 0
        self.done: list[str] = []

    def get_threshold(self) -> tuple[int, int, int]:
        return YOUNGEST, YOUNGER, 1 << 30

    def get_count(self) -> tuple[int, int, int]:
        return 0, 0, self.younger_collections

    def get_freeze_count(self) -> int:
        self.counted += 1
        return self.frozen

    def get_objects(self) -> range:
        return range(self.new)

    def collect(self) -> None:
        self.done.append("collect")
        self.younger_collections = 0

    def freeze(self) -> None:
        self.done.append("freeze")
        self.frozen, self.new = self.frozen + self.new, 0

    def unfreeze(self) -> None:
        self.done.append("unfreeze")
        self.frozen, self.new = 0, self.frozen + self.new

    def make(self, objects: int) -> None:
        """As many new ones, all of which stay."""
        self.younger_collections, self.new = objects // (YOUNGEST * YOUNGER), objects


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedCollector:
    """In place of the module."""
    collector = PlayedCollector()
    monkeypatch.setattr(garbage_collection, "gc", collector)
    return collector


@pytest.mark.parametrize(
    ("new_objects", "expected"),
    [
        pytest.param(NEW_OBJECTS_MAX - 7000, [[], []], id="few new ones"),
        pytest.param(NEW_OBJECTS_MAX + 7000, [["collect", "freeze"], []], id="many new ones"),
        pytest.param(SLACK_OBJECTS, [["collect", "freeze"], []], id="as many as may be set aside"),
        pytest.param(
            SLACK_OBJECTS + 1,
            [["collect", "freeze"], ["unfreeze", "collect", "freeze"]],
            id="more than may be set aside",
        ),
    ],
)
def test_what_is_collected(played: PlayedCollector, new_objects: int, expected: list[list[str]]) -> None:
    """Nothing, what is new, or everything in the next check."""
    played.make(new_objects)
    collector, done = OldGenerationCollector(VirtualClock()), []
    for _ in range(2):
        played.done = []
        collector.collect_if_due()
        done.append(played.done)
    assert done == expected


def test_what_is_set_aside_is_seldom_counted(played: PlayedCollector) -> None:
    """Counting goes through all of it: only where the sum of what was set aside says that it may be too much."""
    collector = OldGenerationCollector(VirtualClock())
    counted = []
    for _ in range(4):
        played.make(SLACK_OBJECTS * 2 // 5)
        collector.collect_if_due()
        counted.append(played.counted)
    assert (counted, collector.new_collections, collector.full_collections) == ([0, 0, 0, 2], 3, 1)


def test_what_went_without_a_collection_is_not_set_aside(played: PlayedCollector) -> None:
    """Much of what is set aside goes as soon as nobody refers to it: that is no reason to look at everything."""
    collector = OldGenerationCollector(VirtualClock())
    for _ in range(5):
        played.frozen = 0
        played.make(SLACK_OBJECTS * 2 // 5)
        collector.collect_if_due()
    assert (collector.new_collections, collector.full_collections) == (4, 0)
