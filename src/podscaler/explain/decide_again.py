"""Decides again on what a recorded or observed sync read, with another spec: the second decision of a what-if.

`podscaler explain --what-if` and `podscaler.observe.what_if` make a DecisionFacts and call `decide_again`; the result
is explained and compared as any decision.
"""

from dataclasses import dataclass

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.core import decide
from podscaler.core.decision import Decision
from podscaler.core.model import failure_policy
from podscaler.core.model import spec as specs
from podscaler.core.model.history import History
from podscaler.core.model.observation import IncompleteObservation, Observation
from podscaler.core.model.settings import Settings
from podscaler.core.replay import RecordedSync
from podscaler.explain import what_if
from podscaler.explain.what_if import Assignment

_SPEC = msgspec.json.Decoder(HorizontalPodAutoscalerSpec)


@dataclass(frozen=True, slots=True)
class DecisionFacts:
    """The arguments of a decision, from a cluster or a recorded sync, so that a what-if can decide again.

    Attributes:
        wire: the spec as the API has it, with the annotations that extend it.
        namespace, name: of the autoscaler.
        observation: target, pods and metrics at `now_ns`.
        prior_history: the history of earlier syncs.
        now_ns: the instant of the sync, in nanoseconds since the epoch.
        flags: the controller's settings.
    """

    wire: HorizontalPodAutoscalerSpec
    namespace: str
    name: str
    observation: Observation
    prior_history: History
    now_ns: int
    flags: Settings


def decide_again(assignments: tuple[Assignment, ...], facts: DecisionFacts) -> Decision:
    """The decision about the same facts, with `assignments` to the spec and the flags.

    Raises UsageError for assignments that cannot be used, and where the other spec needs a metric that was not read.
    """
    wire, flags = what_if.apply(assignments, facts.wire, facts.flags)
    try:
        spec = specs.parse(facts.namespace, facts.name, wire, flags.emulation)
        return decide.decide(spec, facts.observation, facts.prior_history, facts.now_ns, flags)
    except IncompleteObservation as error:
        raise UsageError(f"what-if: this spec needs a metric that was not read then: {error}") from None


def recorded_facts(sync: RecordedSync, flags: Settings) -> DecisionFacts:
    """The facts of a recorded sync, with the settings of its recording."""
    assert sync.line.hpa is not None, "a sync has an autoscaler"
    annotations = sync.line.hpa.metadata.annotations or {}
    wire = failure_policy.with_annotations(_SPEC.decode(sync.line.hpa.spec), annotations)
    return DecisionFacts(
        wire=wire,
        namespace=sync.spec.namespace,
        name=sync.spec.name,
        observation=sync.observation,
        prior_history=sync.prior_history,
        now_ns=sync.now_ns,
        flags=flags,
    )
