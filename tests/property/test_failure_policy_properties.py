"""What must hold for every failure policy, in the random worlds of `test_decision_properties`."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decision_properties import METRICS, worlds

from podscaler.core.decision import Decision
from podscaler.core.model import failure_policy, stored_history
from podscaler.core.model.failure_policy import FailurePolicy, FallbackReplicas
from podscaler.core.model.history import History
from podscaler.core.model.observation import Failure, Observation
from podscaler.core.model.spec import Spec
from podscaler.testing.decisions import NOW, SECOND, decided

World = tuple[Spec, Observation, History]
SPANS_NS = st.sampled_from([1, 60 * SECOND, 3600 * SECOND])
FALLBACKS = st.none() | st.builds(FallbackReplicas, st.integers(0, 100), st.sampled_from([0, SECOND, 60 * SECOND]))
POLICIES = st.builds(FailurePolicy, st.just(0) | SPANS_NS, st.booleans(), FALLBACKS)
GAPS_NS = st.lists(st.sampled_from([0, 1, SECOND, 15 * SECOND, 100 * SECOND]), min_size=1, max_size=5)


def with_policy(spec: Spec, policy: FailurePolicy) -> Spec:
    """The spec with a failure policy; the metrics' identities are their places in the spec."""
    identities = tuple([str(index) for index in range(len(spec.metrics))]) if policy.keep_last_ns else ()
    return msgspec.structs.replace(spec, failure_policy=msgspec.structs.replace(policy, identities=identities))


def failing(observation: Observation) -> Observation:
    """The same, with metrics that all fail."""
    return msgspec.structs.replace(observation, metrics=[Failure("gone") for _ in observation.metrics])


def outcome(decision: Decision) -> tuple[object, ...]:
    """What a decision changes in the cluster, but for the condition and the events that name the failure."""
    conditions = [each for each in decision.status.conditions or () if each.type != "ScalingActive"]
    scaled = [each for each in decision.events if each.reason == "SuccessfulRescale"]
    status = msgspec.structs.replace(decision.status, conditions=None)
    return decision.replicas, status, conditions, scaled, decision.history.recommendations


@given(worlds(), POLICIES, GAPS_NS)
def test_bounds_hold_throughout_an_outage(world: World, policy: FailurePolicy, gaps_ns: list[int]) -> None:
    """Whatever is written lies between minimum and maximum, however long metrics fail."""
    spec, observation, past = world
    spec, now = with_policy(spec, policy), NOW
    past = decided(spec, observation, past).history
    for gap_ns in gaps_ns:
        now += gap_ns
        decision = decided(spec, failing(observation), past, now)
        past = decision.history
        if decision.replicas is not None:
            assert spec.min_replicas <= decision.replicas <= spec.max_replicas


@given(worlds(), POLICIES)
def test_a_policy_changes_nothing_while_all_metrics_can_be_read(world: World, policy: FailurePolicy) -> None:
    """Only the history and the trace have what a later failure needs."""
    spec, observation, past = world
    plain = decided(spec, observation, past)
    if any(step.failure for step in plain.trace.metrics):
        return
    found = decided(with_policy(spec, policy), observation, past)
    assert (found.replicas, found.status, found.events, found.error) == (
        plain.replicas,
        plain.status,
        plain.events,
        plain.error,
    )


@given(worlds())
def test_without_a_policy_nothing_is_kept(world: World) -> None:
    """The history and the trace are as upstream's decision needs them."""
    spec, observation, past = world
    decision = decided(spec, observation, past)
    assert (decision.history.last_proposals, decision.history.unread_since, decision.trace.failure_policy) == (
        (),
        None,
        None,
    )


@given(worlds(), st.data())
def test_a_last_value_decides_as_the_value_does(world: World, data: st.DataObject) -> None:
    """Where what is kept equals what is missing, the outcome is the same, whichever metrics fail."""
    spec, observation, past = world
    spec = with_policy(spec, FailurePolicy(keep_last_ns=SECOND))
    with_values = decided(spec, observation, past)
    kept = with_values.history.last_proposals
    past = msgspec.structs.replace(past, last_proposals=kept)
    lost = data.draw(st.sets(st.sampled_from([int(each.metric) for each in kept]))) if kept else set()
    answers = [Failure("gone") if index in lost else answer for index, answer in enumerate(observation.metrics)]
    without = decided(spec, msgspec.structs.replace(observation, metrics=answers), past)
    assert outcome(without) == outcome(with_values)


@given(worlds(), POLICIES, st.integers(0, 400))
@settings(max_examples=50)
def test_a_stored_history_decides_as_the_whole_does(world: World, policy: FailurePolicy, seconds: int) -> None:
    """Last values and the time of a failure survive the compacted history of a later process."""
    spec, observation, past = world
    spec, later = with_policy(spec, policy), NOW + seconds * SECOND
    past = decided(spec, failing(observation), decided(spec, observation, past).history).history
    stored = stored_history.compacted(past, NOW - 3600 * SECOND)
    whole = decided(spec, failing(observation), past, later)
    restored = decided(spec, failing(observation), stored, later)
    assert (restored.replicas, restored.status) == (whole.replicas, whole.status)


def test_every_metric_of_these_worlds_has_an_identity() -> None:
    """Two entries have one identity only if they are equal."""
    wire = [msgspec.convert(each, failure_policy.MetricSpec) for each in METRICS]
    found = failure_policy.parse(failure_policy.OnMetricFailureSpec("1s"), {}, wire).identities
    assert len(set(found)) == len(METRICS)
