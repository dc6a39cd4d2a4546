"""What must hold for every decision: bounds, monotonicity, independence of order, agreement of its two halves.

Worlds are drawn at random: pods in all states, samples for some of them, autoscalers with and without behavior.
"""

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.api.typed.autoscaling import Condition
from podscaler.core import decide, settle
from podscaler.core.limits import bounds
from podscaler.core.model import history
from podscaler.core.model.history import History, Recommendation, ScaleEvent
from podscaler.core.model.observation import Failure, Measurement, Observation, Pod, PodSamples, Sample, Values
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Branch
from podscaler.testing.decisions import (
    NOW,
    SECOND,
    Json,
    condition_rows,
    conditions,
    container_resource,
    decided,
    external_metric,
    object_metric,
    observed,
    pod,
    pods_metric,
    resource,
    rules,
    scaler,
)

METRICS = [
    resource(utilization=50),
    resource(average="400m"),
    container_resource(utilization=50),
    pods_metric("400m"),
    object_metric(value="2"),
    object_metric(average="400m"),
    external_metric(value="2"),
    external_metric(average="400m"),
    {"type": "Magic"},
    external_metric(),
]
POLICIES = st.tuples(st.sampled_from(["Pods", "Percent"]), st.integers(1, 200), st.integers(1, 60))
RULES = st.builds(
    lambda policies, window, select: rules(*policies, window=window, select=select),
    st.lists(POLICIES, max_size=3),
    st.none() | st.integers(0, 120),
    st.sampled_from([None, "Max", "Min", "Disabled"]),
)
BEHAVIORS = st.none() | st.fixed_dictionaries({"scaleUp": RULES, "scaleDown": RULES})
SPECS = st.builds(
    lambda metrics, least, span, behavior: scaler(*metrics, least=least, most=least + span, behavior=behavior),
    st.lists(st.sampled_from(METRICS), min_size=1, max_size=3),
    st.integers(1, 5),
    st.integers(0, 10),
    BEHAVIORS,
)
PODS = st.builds(
    lambda facts: [
        pod(f"p{index}", phase=phase, ready=ready, started=-age, changed=-age // 2)
        for index, (phase, ready, age) in enumerate(facts)
    ],
    st.lists(
        st.tuples(
            st.sampled_from(["Running", "Running", "Running", "Pending", "Failed"]),
            st.sampled_from(["True", "True", "False", None]),
            st.sampled_from([10, 100, 3600]),
        ),
        max_size=8,
    ),
)
RECOMMENDATIONS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 400)), max_size=5)
CHANGES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 100)), max_size=4)


def ago(seconds: int) -> int:
    """An instant in the past."""
    return NOW - seconds * SECOND


HISTORIES = st.builds(
    lambda recommendations, ups, downs: History(
        tuple(Recommendation(replicas, ago(seconds)) for replicas, seconds in recommendations),
        tuple(ScaleEvent(change, ago(seconds)) for change, seconds in ups),
        tuple(ScaleEvent(change, ago(seconds)) for change, seconds in downs),
    ),
    RECOMMENDATIONS,
    CHANGES,
    CHANGES,
)


@st.composite
def answers(draw: st.DrawFn, entry_type: str, listed: list[Pod]) -> Measurement:
    """An answer to a query for a metric of this type."""
    if draw(st.integers(0, 9)) == 0:
        return Failure("down")
    values = st.integers(0, 3000)
    if entry_type in {"Object", "External"}:
        return Values((draw(values),))
    drawn = {each.name: draw(st.none() | values) for each in [*listed, pod("gone")]}
    samples = {name: Sample(value, NOW) for name, value in drawn.items() if value is not None}
    return PodSamples(samples, is_empty=not samples)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Spec, Observation, History]:
    """An autoscaler, what it sees, and what it remembers."""
    spec, listed, past = draw(SPECS), draw(PODS), draw(HISTORIES)
    given_answers = [draw(answers(metric.type, listed)) for metric in spec.metrics]
    before = draw(st.sampled_from([(), conditions(AbleToScale="False"), conditions(ScaledToZero="True")]))
    replicas = draw(st.integers(0, 12))
    observation = observed(*given_answers, replicas=replicas, listed=listed, before=before)
    return spec, observation, past


@given(worlds())
def test_bounds_are_respected(world: tuple[Spec, Observation, History]) -> None:
    """Whatever is written lies between minimum and maximum, and differs from what is there."""
    spec, observation, past = world
    decision = decided(spec, observation, past)
    if decision.replicas is not None:
        assert spec.min_replicas <= decision.replicas <= spec.max_replicas
        assert decision.replicas != decision.status.current_replicas
    assert (decision.trace.write is None) == (decision.replicas is None)


@given(worlds(), st.integers())
def test_the_order_of_pods_does_not_matter(world: tuple[Spec, Observation, History], seed: int) -> None:
    """The same pods in another order give the same decision."""
    spec, observation, past = world
    shuffled = list(observation.pods)
    random.Random(seed).shuffle(shuffled)
    one = decided(spec, observation, past)
    other = decided(spec, msgspec.structs.replace(observation, pods=shuffled), past)
    assert (one.status, one.events, one.history, one.error) == (
        other.status,
        other.events,
        other.history,
        other.error,
    )


@given(worlds())
def test_only_what_is_demanded_is_needed(world: tuple[Spec, Observation, History]) -> None:
    """The answers that were demanded beforehand are enough, and lead to the same decision."""
    spec, observation, past = world
    needed = decide.needed_metrics(spec, observation)
    asked = [
        answer if metric is not None else None
        for metric, answer in zip(needed.metrics, observation.metrics, strict=True)
    ]
    sparse = decided(spec, msgspec.structs.replace(observation, metrics=asked), past)
    full = decided(spec, observation, past)
    assert (sparse.status, sparse.events, sparse.trace) == (full.status, full.events, full.trace)


@given(worlds())
def test_conditions_are_whole(world: tuple[Spec, Observation, History]) -> None:
    """Each condition occurs once, with a status of True or False, a reason, a message and a time."""
    decision = decided(*world)
    listed: list[Condition] = list(decision.status.conditions or ())
    assert len({each.type for each in listed}) == len(listed)
    assert all(each.status in {"True", "False"} and each.reason and each.message for each in listed)
    assert all(each.last_transition_time for each in listed)


@given(worlds())
def test_refusal_keeps_everything_but_the_condition(world: tuple[Spec, Observation, History]) -> None:
    """Where a write fails, only AbleToScale and the error tell; nothing is remembered of the change."""
    spec, observation, past = world
    decision = decided(spec, observation, past)
    if decision.draft is None:
        return
    refused = settle.refused(decision.draft, NOW, "no")
    assert refused.status.desired_replicas == observation.status.desired_replicas
    assert (refused.history.scale_ups, refused.history.scale_downs) == (past.scale_ups, past.scale_downs)
    assert ("AbleToScale", "False", "FailedUpdateScale") in condition_rows(refused)


@given(worlds())
def test_the_trace_is_json(world: tuple[Spec, Observation, History]) -> None:
    """A trace has a JSON form that says which way the sync went."""
    decision = decided(*world)
    assert msgspec.json.decode(msgspec.json.encode(decision.trace))["branch"] in set(Branch)


SINGLE = st.sampled_from([resource(utilization=50), pods_metric("400m"), resource(average="400m")])


@given(PODS.filter(len), SINGLE, st.data())
def test_more_usage_never_means_fewer_replicas(listed: list[Pod], metric: Json, data: st.DataObject) -> None:
    """Raising the usage of one pod never lowers the count that is wanted."""
    values = {each.name: data.draw(st.none() | st.integers(0, 3000)) for each in listed}
    samples = {name: Sample(value, NOW) for name, value in values.items() if value is not None}
    if not samples:
        return
    name = data.draw(st.sampled_from(sorted(samples)))
    more = samples | {name: Sample(samples[name].value_milli + data.draw(st.integers(0, 2000)), NOW)}
    spec = scaler(metric, most=100)
    wanted = [
        decided(spec, observed(PodSamples(each), replicas=len(listed), listed=listed)).trace.combination
        for each in (samples, more)
    ]
    counts = [each.proposal for each in wanted if each is not None]
    assert counts[0] is None or (counts[1] is not None and counts[0] <= counts[1])


@given(st.integers(1, 10), st.integers(0, 10**6), st.integers(0, 10**6), HISTORIES)
def test_a_higher_external_value_never_means_fewer_replicas(
    replicas: int, value: int, more: int, past: History
) -> None:
    """The count that is decided rises with the metric, whatever is remembered."""
    spec = scaler(external_metric(average="1"), most=50)
    low, high = (
        decided(spec, observed(Values((each,)), replicas=replicas), past).status.desired_replicas
        for each in (value, value + more)
    )
    assert low <= high


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 5), st.integers(0, 20))
def test_limits_change_nothing_that_is_within_them(wanted: int, current: int, least: int, span: int) -> None:
    """A count within rate and bounds passes as it is; any other ends on a bound."""
    limits = bounds.without_behavior(scaler(least=least, most=least + span), wanted, current)
    assert limits.result == wanted or limits.result in {least, least + span, limits.rate_limit}
    assert (limits.reason == "DesiredWithinRange") == (limits.result == wanted)


@settings(max_examples=20)
@given(BEHAVIORS, st.lists(st.integers(0, 20_000), min_size=50, max_size=50))
@pytest.mark.parametrize("period_s", [15, 1])
def test_memory_is_bounded_by_the_windows(period_s: int, behavior: Json | None, values: list[int]) -> None:
    """However long it runs, no more is remembered than the windows and periods can see."""
    spec = scaler(external_metric(average="1"), most=1000, behavior=behavior)
    past, replicas = history.EMPTY, 5
    window_s = 300
    for turn in range(600):
        observation = observed(Values((values[turn % 50],)), replicas=replicas, listed=[])
        decision = decide.decide(spec, observation, past, NOW + turn * period_s * SECOND)
        past, replicas = decision.history, decision.status.desired_replicas
    assert len(past.recommendations) <= window_s // period_s + 2
    assert len(past.scale_ups) + len(past.scale_downs) <= 2 * (60 // period_s + 2)
