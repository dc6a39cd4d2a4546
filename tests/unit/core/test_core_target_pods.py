"""The pods of the target: selector faults, and autoscalers that share pods.

Source: docs/spec/decision.md 3.1 (Selector checks).
"""

import pytest

from podscaler.api.machinery import selectors
from podscaler.core.calculation import target_pods
from podscaler.core.calculation.target_pods import TargetPods
from podscaler.core.model.observation import ALONE, Scale
from podscaler.core.model.selector_store import SelectorStore
from podscaler.core.model.settings import DEFAULT, Gates, Settings
from podscaler.core.model.trace import MetricFailure
from podscaler.testing.decisions import labelled, observed, pod, scaler

WEB = [pod("a"), labelled(pod("b"), {"app": "db"}), pod("c")]


def found(
    selector: str, *, others: dict[str, str] | None = None, settings: Settings = DEFAULT, registered: bool = True
) -> TargetPods:
    """The target of default/web among WEB, given what others select."""
    store = SelectorStore()
    for key, text in (others or {}).items():
        store.store(key, selectors.parse(text))
    observation = observed(
        listed=WEB, selector=selector, neighbours=store.namespace("default"), is_registered=registered
    )
    assert isinstance(observation.scale, Scale)
    return target_pods.find(scaler(), observation.scale, observation, settings)


def test_pods_that_match() -> None:
    """The selector picks its pods in list order, and is to be remembered."""
    target = found("app=web")
    assert ([each.name for each in target.pods], target.selector, target.step.failure) == (
        ["a", "c"],
        selectors.parse("app=web"),
        None,
    )


INVALID = (
    "couldn't convert selector into a corresponding internal selector object: found '', expected: identifier after ','"
)
GONE = "HPA default/web was deleted during reconciliation"


@pytest.mark.parametrize(
    ("selector", "registered", "reason", "text"),
    [
        ("", True, "SelectorRequired", "selector is required"),
        ("a,", True, "InvalidSelector", INVALID),
        ("app=web", False, "", GONE),
        ("", False, "SelectorRequired", "selector is required"),
    ],
    ids=["absent", "unreadable", "autoscaler is gone", "absent counts first"],
)
def test_faults(selector: str, registered: bool, reason: str, text: str) -> None:
    """Without a usable selector there are no pods, and what is remembered stays."""
    target = found(selector, registered=registered)
    assert (target.selector, target.pods, target.step.failure) == (None, (), MetricFailure(reason, text, text))


@pytest.mark.parametrize(
    ("others", "overlapping"),
    [
        ({"default/web": "app=web"}, ()),
        ({"default/db": "app=db"}, ()),
        ({"other/web": "app=web"}, ()),
        ({"default/all": "app"}, ("default/all", "default/web")),
        ({"default/z": "app", "default/x": "app=web", "default/web": "app=db"}, ("default/web", "default/x")),
    ],
    ids=["itself", "other pods", "other namespace", "one other", "two of three"],
)
def test_overlap(others: dict[str, str], overlapping: tuple[str, ...]) -> None:
    """Two autoscalers over one pod are in each other's way: this one and the first other are named."""
    target = found("app=web", others=others)
    assert target.step.overlapping == overlapping
    if overlapping:
        text = f"pods by selector app=web are controlled by more than one HPA (e.g. [{' '.join(overlapping)}])"
        assert target.step.failure == MetricFailure("AmbiguousSelector", text, text)
        assert target.selector == selectors.parse("app=web")


def test_all_overlapping_without_the_gate() -> None:
    """With HPAOptimizedSelectorStore off, all are named."""
    others = {"default/a": "app", "default/z": "app"}
    target = found("app=web", others=others, settings=Settings(gates=Gates(optimized_selector_store=False)))
    assert target.step.overlapping == ("default/a", "default/web", "default/z")


def test_no_pods_never_overlap() -> None:
    """Without a matching pod nobody is in the way."""
    assert found("app=none", others={"default/all": "app"}).step.overlapping == ()


def test_alone() -> None:
    """The default neighbours are nobody."""
    assert ALONE.sharing("default/web", WEB) == set()
