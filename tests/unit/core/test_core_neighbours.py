"""The store of selectors: lookups, replacement, forgetting, cost.

Source: docs/spec/controller.md 1 (State).
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.machinery import selectors
from podscaler.core.model.selector_store import NamespaceSelectors, SelectorStore
from podscaler.testing.decisions import labelled, pod

FRONT = labelled(pod(), {"app": "web", "tier": "front"})


@pytest.mark.parametrize("text", ["app=web", "tier=front,app=web", "app", "app in (web,db)", "!gone", ""])
def test_selector_is_found_by_its_pods(text: str) -> None:
    """A stored selector of any form is found by a pod that it matches."""
    store = SelectorStore()
    store.store("ns/a", selectors.parse(text))
    assert store.namespace("ns").sharing("ns/b", [FRONT]) == {"ns/a"}


def test_own_key_and_other_namespaces_do_not_count() -> None:
    """An autoscaler is not its own neighbour, nor are those of other namespaces."""
    store = SelectorStore()
    store.store("ns/a", selectors.parse("app=web"))
    store.store("other/b", selectors.parse("app=web"))
    assert store.namespace("ns").sharing("ns/a", [FRONT]) == set()


def test_replaced_and_forgotten() -> None:
    """A new selector replaces the old one; forgetting is complete and may be repeated."""
    store = SelectorStore()
    store.store("ns/a", selectors.parse("app=web"))
    store.store("ns/a", selectors.parse("app=db"))
    replaced = store.namespace("ns").sharing("ns/b", [FRONT])
    store.store("ns/a", selectors.parse("app"))
    store.forget("ns/a")
    store.forget("ns/a")
    assert (replaced, store.namespace("ns").sharing("ns/b", [FRONT])) == (set(), set())


def test_filed_under_the_least_common_label() -> None:
    """A label that all selectors share does not make lookups slow: no more than the own application's are tried."""
    namespace = NamespaceSelectors()
    for index in range(100):
        namespace.store(f"ns/{index}", selectors.parse(f"env=prod,app=a{index}"))
    tried = max(len(keys) for keys in namespace._keys_by_label.values())
    assert tried == 1


KEYS = st.sampled_from(["ns/a", "ns/b", "ns/c"])
TEXTS = st.sampled_from(["x=1", "x=2", "x=1,y=1", "x", "!x", "y!=1", ""])
LABELS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]))


@given(st.lists(st.tuples(KEYS, st.none() | TEXTS)), LABELS)
def test_same_as_asking_everyone(changes: list[tuple[str, str | None]], labels: dict[str, str]) -> None:
    """After any changes the answer is that of asking each remembered selector."""
    store, known = SelectorStore(), {}
    for key, text in changes:
        if text is None:
            store.forget(key)
            known.pop(key, None)
        else:
            store.store(key, selectors.parse(text))
            known[key] = text
    expected = {key for key, text in known.items() if key != "ns/a" and selectors.parse(text).matches(labels)}
    assert store.namespace("ns").sharing("ns/a", [labelled(pod(), labels)]) == expected
