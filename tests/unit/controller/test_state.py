"""The state of autoscalers between syncs, and its lifetimes."""

import pytest

from podscaler.api.machinery import selectors
from podscaler.base.lru import LRU
from podscaler.controller.reconcile.autoscaler_state import AutoscalerState, AutoscalerStates
from podscaler.core.model.history import EMPTY, History, Recommendation
from podscaler.core.model.observation import Pod

WEB = ("shop", "web")
PAST = History((Recommendation(3, 1),))
PODS = [Pod("web-0", {"app": "web"})]


@pytest.fixture
def states() -> AutoscalerStates:
    """The state of one autoscaler, after a sync."""
    made = AutoscalerStates()
    made.register(WEB)
    state = made.of(WEB)
    state.begin_sync()
    state.history = PAST
    made.keep_selector(state, selectors.parse("app=web"))
    return made


def test_a_deletion_drops_the_selector_but_not_the_history(states: AutoscalerStates) -> None:
    """A selector goes with the watch's deletion; the history waits for the sync that finds the autoscaler gone."""
    before = states.neighbours("shop").sharing("shop/other", PODS)
    states.unregister(WEB, "u1")
    after = states.neighbours("shop").sharing("shop/other", PODS)
    kept = states.of(WEB).history
    states.forget(WEB)
    assert (before, after, kept, states.of(WEB).history) == ({"shop/web"}, set(), PAST, EMPTY)


def test_a_selector_is_kept_only_for_the_registered(states: AutoscalerStates) -> None:
    """A sync that ends after its autoscaler's deletion leaves no selector behind."""
    states.unregister(WEB, "u1")
    states.keep_selector(states.of(WEB), selectors.parse("app=web"))
    assert states.neighbours("shop").sharing("shop/other", PODS) == set()


def test_errors_are_news_when_they_change(states: AutoscalerStates) -> None:
    """A repeated error is none, another one is, and so is its end."""
    news = [states.of(WEB).note_error(error) for error in ("", "a", "a", "b", "", "")]
    assert news == [False, True, False, True, True, False]


def test_a_deletion_before_the_first_sync_leaves_nothing() -> None:
    """Autoscalers that other processes sync come and go without a record that stays."""
    states = AutoscalerStates()
    states.register(WEB)
    states.unregister(WEB, "u1")
    assert states.known_keys(lambda _key: True) == []


def test_another_process_takes_over(states: AutoscalerStates) -> None:
    """Only the registration stays when the write lease ends."""
    states.forget(WEB)
    assert states.of(WEB) == AutoscalerState(WEB, is_registered=True)


def test_lru_forgets_the_oldest() -> None:
    """Reading and writing keep an entry young."""
    lru: LRU[str, int] = LRU(2)
    lru.put("a", 1)
    lru.put("b", 2)
    lru.find("a")
    lru.put("c", 3)
    assert ([lru.find(key) for key in "abc"], len(lru)) == ([1, None, 3], 2)
