"""A cache's lookups and what it tells its handlers."""

import msgspec
import pytest

from podscaler.api.machinery import selectors
from podscaler.kube.informers.cache import Cache


class Meta(msgspec.Struct):
    """Metadata of a test object."""

    name: str
    labels: dict[str, str] | None = None
    resource_version: str = "1"
    namespace: str = "ns"
    uid: str = "u"


class Thing(msgspec.Struct):
    """A test object."""

    metadata: Meta


def _thing(name: str, version: str = "1", uid: str = "u", namespace: str = "ns", **labels: str) -> Thing:
    return Thing(Meta(name, labels or None, version, namespace, uid))


class Diary:
    """A handler that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def added(self, obj: Thing) -> None:
        self.told.append(f"+{obj.metadata.name}@{obj.metadata.resource_version}")

    def updated(self, old: Thing, new: Thing) -> None:
        self.told.append(f"{old.metadata.name}@{old.metadata.resource_version}>{new.metadata.resource_version}")

    def deleted(self, obj: Thing) -> None:
        self.told.append(f"-{obj.metadata.name}@{obj.metadata.resource_version}")


@pytest.fixture
def cache() -> Cache[Thing]:
    """An empty cache."""
    return Cache()


def test_handlers_hear_of_every_change(cache: Cache[Thing]) -> None:
    """Additions, updates and deletions in order; a version that is there already is no change."""
    diary = Diary()
    cache.put(_thing("early"))
    cache.subscribe(diary)
    cache.put(_thing("a"))
    cache.put(_thing("a", "2"))
    cache.put(_thing("a", "2"))
    cache.remove(_thing("a", "3"))
    cache.remove(_thing("a", "4"))
    assert diary.told == ["+early@1", "+a@1", "a@1>2", "-a@3"]


def test_replace_tells_the_difference(cache: Cache[Thing]) -> None:
    """A new list deletes what is missing, updates what changed, adds what is new, and makes the cache synced."""
    diary = Diary()
    cache.replace([_thing("a"), _thing("b"), _thing("c")], "5")
    cache.subscribe(diary)
    diary.told.clear()
    cache.replace([_thing("b"), _thing("c", "7"), _thing("d")], "9")
    assert (diary.told, cache.version, cache.synced, len(cache)) == (["-a@1", "c@1>7", "+d@1"], "9", True, 3)


def test_another_uid_is_another_object(cache: Cache[Thing]) -> None:
    """An object that was deleted and made again unseen is a deletion and an addition."""
    diary = Diary()
    cache.subscribe(diary)
    cache.put(_thing("a"))
    cache.put(_thing("a", "8", uid="v"))
    assert diary.told == ["+a@1", "-a@1", "+a@8"]


def test_a_failing_handler_disturbs_nobody(cache: Cache[Thing], caplog: pytest.LogCaptureFixture) -> None:
    """A handler's failure is logged, and the next handler is told."""

    class Broken(Diary):
        def added(self, obj: Thing) -> None:
            raise RuntimeError(obj.metadata.name)

    diary = Diary()
    cache.subscribe(Broken())
    cache.subscribe(diary)
    cache.put(_thing("a"))
    assert (diary.told, "an event handler of a cache failed" in caplog.text) == (["+a@1"], True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("app=web", ["a", "b"]),
        ("app=web,tier=front", ["a"]),
        ("app in (db,web),tier", ["a"]),
        ("app!=web", ["c", "e"]),
        ("app=none", []),
        ("", ["a", "b", "c", "e"]),
    ],
)
def test_select(cache: Cache[Thing], text: str, names: list[str]) -> None:
    """Objects of one namespace that match, by name, whatever index serves them, and kept up to date."""
    cache.put(_thing("b", app="web"))
    cache.put(_thing("a", app="db"))
    cache.put(_thing("e"))
    cache.select("ns", selectors.parse("app=web"))
    cache.put(_thing("a", "2", app="web", tier="front"))
    cache.put(_thing("c", app="db"))
    cache.put(_thing("d", namespace="other", app="web"))
    cache.put(_thing("f", app="web"))
    cache.remove(_thing("f", "2"))
    assert [thing.metadata.name for thing in cache.select("ns", selectors.parse(text))] == names


def test_nothing_selects_nothing(cache: Cache[Thing]) -> None:
    """The selector that matches nothing finds nothing."""
    cache.put(_thing("a"))
    assert cache.select("ns", selectors.NOTHING) == []


def test_the_same_version_is_the_same_object(cache: Cache[Thing]) -> None:
    """A list that is read again brings nothing that has to be kept beside what is there."""
    kept = _thing("web", "3")
    cache.put(kept)
    read_again, newer, another = _thing("web", "3"), _thing("web", "4"), _thing("web", "3", uid="v")
    found = [cache.deduplicated(each) is each for each in (kept, read_again, newer, another, _thing("db", "3"))]
    assert (found, cache.deduplicated(read_again) is kept) == ([True, False, True, True, True], True)


def test_find(cache: Cache[Thing]) -> None:
    """An object is found by namespace and name."""
    cache.put(thing := _thing("a"))
    assert (cache.find(("ns", "a")), cache.find(("ns", "b")), cache.find(("other", "a"))) == (thing, None, None)
