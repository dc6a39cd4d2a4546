"""What will be asked of the metrics APIs, before anybody asks.

Source: docs/spec/decision.md 2 (Reconcile in order, step 9), 3.1 (Selector checks), 3.3 (Failure of one metric).
"""

import pytest

from podscaler.api.machinery import selectors
from podscaler.core import decide
from podscaler.core.decide import Demand
from podscaler.core.model.observation import Failure, Observation
from podscaler.core.model.selector_store import SelectorStore
from podscaler.testing.decisions import conditions, external_metric, observed, pods_metric, resource, scaler

WRONG = {"matchExpressions": [{"key": "k", "operator": "Near"}]}


def crowded() -> Observation:
    """An observation with another autoscaler over the same pods."""
    store = SelectorStore()
    store.store("default/other", selectors.parse("app"))
    return observed(neighbours=store.namespace("default"))


@pytest.mark.parametrize(
    "observation",
    [
        Observation(scale=Failure("gone")),
        observed(replicas=0),
        observed(replicas=11),
        observed(selector=""),
        observed(selector="a,"),
        observed(is_registered=False),
        crowded(),
    ],
    ids=["no scale", "paused", "above the maximum", "no selector", "bad selector", "gone", "overlap"],
)
def test_nothing_is_needed(observation: Observation) -> None:
    """Where the decision will not look at metrics, nobody needs to be asked."""
    assert decide.needed_metrics(scaler(), observation) == Demand((None,))


def test_what_is_needed() -> None:
    """Each metric that can be asked for is, with the selector of the target; faulty entries are not."""
    spec = scaler(resource(utilization=50), pods_metric(selector=WRONG), external_metric(value="1"))
    needed = decide.needed_metrics(spec, observed())
    assert needed == Demand((spec.metrics[0], None, spec.metrics[2]), selectors.parse("app=web"))


def test_waking_needs_metrics() -> None:
    """At zero of its own making the metrics are needed."""
    observation = observed(replicas=0, before=conditions(ScaledToZero="True"))
    assert decide.needed_metrics(scaler(external_metric(value="1"), least=0), observation).selector is not None
