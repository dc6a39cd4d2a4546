"""When a long-running process collects garbage: what is new, and rarely everything."""

import pytest

from podscaler.cli import garbage
from podscaler.cli.garbage import NEW_OBJECTS, SLACK_OBJECTS, OldGarbage
from podscaler.testing import VirtualClock

YOUNGEST, YOUNGER = 700, 10


class PlayedCollector:
    """The module `gc` of a process in which nothing is garbage; `done` is what it was told."""

    def __init__(self) -> None:
        self.younger_collections = 0
        self.frozen = 0
        self.done: list[str] = []

    def get_threshold(self) -> tuple[int, int, int]:
        return YOUNGEST, YOUNGER, 1 << 30

    def get_count(self) -> tuple[int, int, int]:
        return 0, 0, self.younger_collections

    def get_freeze_count(self) -> int:
        return self.frozen

    def collect(self) -> None:
        self.done.append("collect")
        self.younger_collections = 0

    def freeze(self) -> None:
        self.done.append("freeze")

    def unfreeze(self) -> None:
        self.done.append("unfreeze")


@pytest.mark.parametrize(
    ("new_objects", "frozen", "expected"),
    [
        pytest.param(NEW_OBJECTS - 7000, 0, [], id="few new ones"),
        pytest.param(NEW_OBJECTS + 7000, SLACK_OBJECTS, ["collect", "freeze"], id="many new ones"),
        pytest.param(
            NEW_OBJECTS + 7000,
            SLACK_OBJECTS + 1,
            ["collect", "freeze", "unfreeze", "collect", "freeze"],
            id="too many set aside",
        ),
    ],
)
def test_what_is_collected(monkeypatch: pytest.MonkeyPatch, new_objects: int, frozen: int, expected: list[str]) -> None:
    """Nothing, what is new, or everything."""
    played = PlayedCollector()
    monkeypatch.setattr(garbage, "gc", played)
    played.younger_collections, played.frozen = new_objects // (YOUNGEST * YOUNGER), frozen
    OldGarbage(VirtualClock()).check()
    assert played.done == expected
