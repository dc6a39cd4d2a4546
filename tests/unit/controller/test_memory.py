"""What the controller remembers, and for how long."""

import pytest

from podscaler.api.machinery import selectors
from podscaler.base.lru import LRU
from podscaler.controller.reconcile.state import Memory
from podscaler.core.model.history import EMPTY, History, Recommendation
from podscaler.core.model.model import Pod

WEB = ("shop", "web")
PAST = History((Recommendation(3, 1),))
PODS = [Pod("web-0", {"app": "web"})]


@pytest.fixture
def memory() -> Memory:
    """A memory that knows of one autoscaler."""
    made = Memory()
    made.register(WEB)
    made.keep_history(WEB, PAST)
    made.keep_selector(WEB, selectors.parse("app=web"))
    return made


def test_a_registration_is_news_once(memory: Memory) -> None:
    """The gauge counts autoscalers, not notifications."""
    assert (memory.register(WEB), memory.register(("shop", "db"))) == (False, True)


def test_a_deletion_drops_the_selector_but_not_the_history(memory: Memory) -> None:
    """A selector goes with the watch's deletion; the history waits for the sync that finds the autoscaler gone."""
    before = memory.neighbours("shop").sharing("shop/other", PODS)
    memory.unregister(WEB, "u1")
    after = memory.neighbours("shop").sharing("shop/other", PODS)
    kept = memory.history(WEB)
    memory.forget(WEB)
    assert (before, after, kept, memory.history(WEB)) == ({"shop/web"}, set(), PAST, EMPTY)


def test_a_selector_is_kept_only_for_the_registered(memory: Memory) -> None:
    """A sync that ends after its autoscaler's deletion leaves no selector behind."""
    memory.unregister(WEB, "u1")
    memory.keep_selector(WEB, selectors.parse("app=web"))
    assert memory.neighbours("shop").sharing("shop/other", PODS) == set()


def test_errors_are_news_when_they_change(memory: Memory) -> None:
    """A repeated error is none, another one is, and so is its end."""
    news = [memory.is_news(WEB, error) for error in ("", "a", "a", "b", "", "")]
    assert news == [False, True, False, True, True, False]


def test_lru_forgets_the_oldest() -> None:
    """Reading and writing keep an entry young."""
    lru: LRU[str, int] = LRU(2)
    lru.put("a", 1)
    lru.put("b", 2)
    lru.find("a")
    lru.put("c", 3)
    assert ([lru.find(key) for key in "abc"], len(lru)) == ([1, None, 3], 2)
