"""The decision in machine code: the counts of the recorded reference, and those of `podscaler.core` for any numbers."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
import simulated
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st
from test_batch_equality import lively_specs, specs

from podscaler.api.machinery import numbers
from podscaler.api.typed import autoscaling, recording
from podscaler.core.calculation import per_pod, totals
from podscaler.core.calculation.calculation_types import MetricError, Situation, Tolerance
from podscaler.core.decision import Decision
from podscaler.core.limits import normalisation
from podscaler.core.limits.normalisation import NormalisationInput
from podscaler.core.model import history, settings
from podscaler.core.model.metric_spec import Average, ResourceMetric, Total, Utilization
from podscaler.core.model.observation import ContainerRequests, Pod, PodSamples, Sample, Values
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Group, MetricStep, OfAverage, OfTotal, PerPod
from podscaler.core.replay import RecordedSync, Replay
from podscaler.core.settle import with_change
from podscaler.simulation.batch import candidate_tables, compilation, decision_kernel, layout, metric_kernel
from podscaler.simulation.batch.candidate_tables import MetricSources
from podscaler.simulation.batch.layout import Array
from podscaler.simulation.batch.metric_kernel import NO_PROPOSAL

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"
NAMES = sorted(path.name.partition(".")[0] for path in VECTORS.glob("*.recording.jsonl.gz"))
SECOND_NS = 1_000_000_000
NO_FEEDS = MetricSources(simulated.web(), {})

JOBS = autoscaling.MetricSpec(
    type="External",
    external=autoscaling.ExternalMetricSource(
        metric=autoscaling.MetricIdentifier(name="jobs"),
        target=autoscaling.MetricTarget(type="Value", value="1"),
    ),
)
JOBS_OBJECT = autoscaling.MetricSpec(
    type="Object",
    object=autoscaling.ObjectMetricSource(
        metric=autoscaling.MetricIdentifier(name="jobs"),
        described_object=autoscaling.CrossVersionObjectReference(kind="Service", name="web", api_version="v1"),
        target=autoscaling.MetricTarget(type="Value", value="1"),
    ),
)

int64 = (
    st.sampled_from([0, 1, -1, 100, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)])
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(0, 100_000)
)
counts = st.integers(0, 40)
tolerances = st.tuples(st.sampled_from([0.0, 0.1, 0.5]), st.sampled_from([0.0, 0.1, 0.5]))


class RecordedDecision(NamedTuple):
    """A sync of a recording and our decision, which is the reference's (tests/conformance)."""

    sync: RecordedSync
    decision: Decision
    settings: Settings


def decided(name: str) -> Iterator[RecordedDecision]:
    """The syncs of a recording."""
    with gzip.open(VECTORS / f"{name}.recording.jsonl.gz") as lines:
        replayed = Replay(recording.read_header(next(lines)))
        for line in lines:
            sync = replayed.parse(line)
            if sync is not None:
                yield RecordedDecision(sync, replayed.decide(sync), replayed.settings)


class KernelLimits:
    """Windows, rates and bounds of one autoscaler in machine code, and its history.

    Args:
        first: its replicas at the first sync, and that instant.
    """

    def __init__(self, spec: Spec, stated: Settings, first: tuple[int, int]) -> None:
        self.of_spec = spec
        bare = msgspec.structs.replace(spec, metrics=(), failure_policy=simulated.cpu_spec().failure_policy)
        self._tables = candidate_tables.of_specs([bare], NO_FEEDS, stated, 1000, 1)
        self._since = first[1]
        world = np.zeros(layout.WORLD_FIELDS, np.int64)
        world[[layout.SYNCS, layout.SYNC_PERIOD_MS]] = 1000, 1
        self._memory = layout.memory_for(world, 1000)
        decision_kernel.recommend(self._memory, first[0], 0)

    def limited(self, wanted: int, current: int, now: int) -> int:
        """The replicas within the limits."""
        spec, policies = self._tables.specs[0], self._tables.policies
        return decision_kernel.limit_replicas(spec, policies, self._memory, wanted, current, now - self._since)

    def record(self, change: int, now: int) -> None:
        """Record a rescale."""
        decision_kernel.record_rescale(self._tables.specs[0], self._memory, change, now - self._since)


@pytest.mark.parametrize("name", NAMES)
def test_limits_of_the_recorded_reference(name):
    """The limited replicas at every sync, from the proposals, as long as the spec of the autoscaler stays as it is."""
    kernels: dict[str, KernelLimits] = {}
    ours, theirs = [], []
    for sync, decision, stated in decided(name):
        trace, key = decision.trace, sync.spec.key
        if trace.current_replicas is None:
            continue
        if not sync.prior_history.recommendations:
            kernels[key] = KernelLimits(sync.spec, stated, (trace.current_replicas, sync.now_ns))
        if kernels[key].of_spec != sync.spec:
            continue
        if trace.limits is not None:
            ours.append(kernels[key].limited(max(trace.combination.proposal, 0), trace.current_replicas, sync.now_ns))
            theirs.append(trace.limits.result)
        if decision.replicas is not None:
            kernels[key].record(decision.replicas - trace.current_replicas, trace.write.at)
    assert ours == theirs
    assert len(ours) > 100


def row(kind: int, target: int, request: int = 0) -> Array:
    """A metric for the compiled functions."""
    metric = np.zeros(layout.METRIC_FIELDS, np.int64)
    metric[[layout.KIND, layout.TARGET, layout.REQUEST, layout.HAS_REQUEST]] = kind, target, request, 1
    return metric


def of_kernel(step: MetricStep, tolerance: Array, current: int) -> int | None:
    """The proposal in machine code; None: pods with different requests, or samples of pods that are gone."""
    state = np.zeros(layout.STATE_FIELDS, np.int64)
    state[layout.REPLICAS] = current
    match step.calculation:
        case OfTotal(usage_milli=usage, ready_pods=ready):
            state[layout.READY], state[layout.PODS] = ready or 0, 1
            return metric_kernel.propose_total(row(layout.TOTAL, step.target), tolerance, state, usage)
        case OfAverage(usage_milli=usage, replicas=replicas):
            state[layout.PODS] = replicas
            kind = layout.OBJECT_AVERAGE if step.type == "Object" else layout.EXTERNAL_AVERAGE
            return metric_kernel.propose_average(row(kind, step.target), tolerance, state, usage)
        case PerPod(first=first) as calculation if first is not None and not calculation.unlisted:
            return _of_pods(step, calculation, tolerance, current)
    return None


def _of_pods(step: MetricStep, calculation: PerPod, tolerance: Array, current: int) -> int | None:
    groups = [pod.group for pod in calculation.pods]
    usage = sum(pod.value_milli for pod in calculation.pods if pod.group is Group.COUNTED)
    requests = {pod.request_milli for pod in calculation.pods if pod.group is not Group.IGNORED}
    kind = layout.RESOURCE_AVERAGE if requests == {None} else layout.UTILIZATION
    if len(requests) > 1:
        return None
    sizes = groups.count(Group.COUNTED), groups.count(Group.UNREADY), groups.count(Group.MISSING)
    metric = row(kind, step.target, requests.pop() or 0)
    return metric_kernel.propose_per_pod(metric, tolerance, current, numbers.wrap64(usage), sizes)


@pytest.mark.parametrize("name", NAMES)
def test_proposals_of_the_recorded_reference(name):
    """The proposal of every metric whose pods request the same."""
    ours, theirs = [], []
    for _, decision, _ in decided(name):
        trace = decision.trace
        for step in trace.metrics:
            tolerance = np.array([trace.tolerance_down, trace.tolerance_up])
            proposal = of_kernel(step, tolerance, trace.current_replicas)
            if proposal is not None:
                ours.append(proposal)
                theirs.append(NO_PROPOSAL if step.proposal is None else step.proposal)
    assert ours == theirs
    assert len(ours) > 10


@settings_of_hypothesis(max_examples=300)
@given(int64, int64)
def test_integers_wrap_as_those_of_go(first, second):
    """Sums, products, quotients and low bits."""
    ours = [
        compilation.wrapped_sum(first, second),
        compilation.wrapped_product(first, second),
        compilation.wrap32(first),
        compilation.divide_toward_zero(first, second or 1),
    ]
    quotient = numbers.divide_toward_zero(first, second or 1)
    theirs = [numbers.wrap64(first + second), numbers.wrap64(first * second), numbers.wrap32(first)]
    assert ours == [*theirs, numbers.wrap64(quotient)]


@settings_of_hypothesis(max_examples=300)
@given(
    st.floats() | st.sampled_from([2.0**31, 2.0**31 - 1, 2.0**31 - 0.5, -(2.0**31), -(2.0**31) - 0.5, -(2.0**31) - 1])
)
def test_floats_become_integers_as_in_go(value):
    """At and beyond the ends of int32, and for NaN and infinities."""
    ours = [getattr(compilation, name)(value) for name in CONVERSIONS]
    assert ours == [getattr(numbers, name)(value) for name in CONVERSIONS]


CONVERSIONS = ("int32_of_float", "ceil_int32", "ceil_int32_saturating")


def situation(groups: tuple[int, int, int], request: int, current: int, tolerance: tuple[float, float]) -> Situation:
    """Pods that count, wait and have no sample."""
    counted, unready, missing = groups
    phases = ["Running"] * counted + ["Pending"] * unready + ["Running"] * missing
    requests = {"memory": request}
    pods = [
        Pod(f"web-{index}", phase=phase, containers=(ContainerRequests("app", requests),), requests_milli=requests)
        for index, phase in enumerate(phases)
    ]
    return Situation(0, current, len(pods), pods, Tolerance(*tolerance), settings.DEFAULT)


def proposed(calculate: Callable[[], Any]) -> int:
    """The proposal of a calculator of `podscaler.core`."""
    try:
        proposal: int = calculate().replicas
    except MetricError:
        return NO_PROPOSAL
    return proposal


def memory_metric(target: Utilization | Average) -> ResourceMetric:
    """A Resource metric over memory, which knows no rules of readiness."""
    return ResourceMetric(type="Resource", target=target, resource="memory")


@settings_of_hypothesis(max_examples=400)
@given(st.tuples(counts, counts, counts), int64, int64, int64, tolerances, st.booleans())
def test_proposals_for_pods_of_any_numbers(groups, value, target, request, tolerance, is_utilization):
    """Sums, products and ratios wrap and round as those of the core."""
    target = numbers.wrap32(target) if is_utilization else target
    metric = memory_metric(Utilization(target) if is_utilization else Average(target))
    samples = PodSamples({f"web-{index}": Sample(value) for index in range(groups[0])}, is_empty=not groups[0])
    facts = situation(groups, request, groups[0] + 1, tolerance)
    kind = layout.UTILIZATION if is_utilization else layout.RESOURCE_AVERAGE
    usage = numbers.wrap64(value * groups[0])
    ours = metric_kernel.propose_per_pod(row(kind, target, request), np.array(tolerance), groups[0] + 1, usage, groups)
    assert ours == proposed(lambda: per_pod.propose_resource(metric, samples, facts))


@settings_of_hypothesis(max_examples=400)
@given(int64, int64, counts, counts, tolerances, st.booleans())
def test_proposals_of_totals_of_any_numbers(usage, target, current, ready, tolerance, is_object):
    """Value and AverageValue targets of Object and External metrics."""
    pods = [Pod(f"web-{index}", ready="True") for index in range(ready)]
    facts = Situation(0, current, len(pods), pods, Tolerance(*tolerance), settings.DEFAULT)
    state = np.zeros(layout.STATE_FIELDS, np.int64)
    state[[layout.REPLICAS, layout.PODS, layout.READY]] = current, ready, ready
    kind = layout.OBJECT_AVERAGE if is_object else layout.EXTERNAL_AVERAGE
    calculate = totals.propose_object if is_object else totals.propose_external
    ours = [
        metric_kernel.propose_total(row(layout.TOTAL, target), np.array(tolerance), state, usage),
        metric_kernel.propose_average(row(kind, target), np.array(tolerance), state, usage),
    ]
    theirs = []
    for of_target in (Total(target), Average(target)):
        metric = simulated.metric_spec(JOBS_OBJECT if is_object else JOBS).metrics[0]
        metric = msgspec.structs.replace(metric, target=of_target)
        theirs.append(proposed(lambda metric=metric: calculate(metric, Values((usage,)), facts)))
    assert ours == theirs


steps = st.tuples(st.integers(0, 90) | st.sampled_from([15, 15, 60]), st.integers(0, 60) | st.integers(0, 2**31 - 1))


@settings_of_hypothesis(max_examples=200)
@given(specs() | lively_specs(), st.integers(1, 40), st.lists(steps, max_size=40))
def test_limits_of_any_history(spec, current, proposals):
    """Windows, policies and bounds of a sequence of proposals, each after the rescales before."""
    kernel, now = KernelLimits(spec, settings.DEFAULT, (current, 0)), 0
    past = history.with_first_recommendation(history.EMPTY, current, 0)
    for after_s, wanted in proposals:
        now += after_s * SECOND_NS
        normalised = normalisation.by_windows(NormalisationInput(spec, past, wanted, current, now, settings.DEFAULT))
        past = msgspec.structs.replace(past, recommendations=normalised.stabilized.recommendations)
        assert kernel.limited(wanted, current, now) == normalised.limits.result
        change, current = normalised.limits.result - current, normalised.limits.result
        past = with_change(spec, past, change, now)
        if change:
            kernel.record(change, now)
