"""What a decision will need of the metrics APIs, before anybody asks them.

Called by the controller between reading the scale and fetching metrics. It runs the same stages as
`podscaler.core.decide`, so that the two cannot disagree.

Source: docs/spec/decision.md 2 (Reconcile in order, step 9), 3.1 (Selector checks), 3.3 (Failure of one metric).
"""

from podscaler.api.machinery.selectors import Selector
from podscaler.core import branch
from podscaler.core.branch import NoScale
from podscaler.core.calculation import target_pods
from podscaler.core.model import settings
from podscaler.core.model.metric_spec import Metric
from podscaler.core.model.model import Fact, Observation
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Branch


class Demand(Fact, frozen=True, gc=False):
    """What to ask.

    Attributes:
        metrics: for each entry of `spec.metrics` the metric to ask for, None where no answer is needed.
        selector: of the target's pods, to ask with; None where nothing is asked.
    """

    metrics: tuple[Metric | None, ...]
    selector: Selector | None = None


def of_sync(spec: Spec, observation: Observation, flags: Settings = settings.DEFAULT) -> Demand:
    """What the decision about this observation will need; its `metrics` are not looked at."""
    nothing = Demand((None,) * len(spec.metrics))
    scale = branch.scale_of(spec, observation.scale)
    if isinstance(scale, NoScale):
        return nothing
    zero = branch.zero_rules(spec, observation.status, flags)
    if branch.choose(spec, zero, scale.replicas) is not Branch.METRICS:
        return nothing
    target = target_pods.find(spec, scale, observation, flags)
    if target.step.failure is not None:
        return nothing
    return Demand(tuple([None if metric.fault else metric for metric in spec.metrics]), target.selector)
