"""Makes the candidates of a backtest from the values of its flags.

Called by `podscaler.cli.backtest.backtest`, and for `needs` by `podscaler.cli.tune.tune_source`. A new kind of
candidate: an attribute of CandidateRequest, and a line in `candidates`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.cli.backtest import load_sources
from podscaler.cli.backtest.load_sources import LoadSource
from podscaler.core.model import spec as core_spec
from podscaler.core.model.metric_spec import Metric, ResourceMetric
from podscaler.core.model.spec import Spec
from podscaler.explain import what_if
from podscaler.explain.what_if import Assignment
from podscaler.simulation.evaluation import candidates as scalers
from podscaler.simulation.evaluation import demand
from podscaler.simulation.evaluation.candidates import FixedCount, Hindsight
from podscaler.simulation.evaluation.comparison import Candidate, Needs
from podscaler.simulation.evaluation.knative import Knative, KnativeConfig
from podscaler.simulation.files import documents
from podscaler.simulation.model import resource_faults
from podscaler.simulation.model.workloads import WorkloadModel

NEEDED_PODS_MAX = 20_000
"""More needed pods than this are taken for a wrong capacity: the exact engine would simulate each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRequest:
    """The values of the flags.

    Attributes:
        files: manifests, each with autoscalers.
        assignments: of `--set`, which together make one candidate.
        fixed: counts of pods.
        has_knative, has_hindsight: whether these are compared.
        knative_concurrency: the target of another Knative, in requests that a pod handles at once; None if there is
            none.
        slo_ms: the mean response time to meet; None if there is none.
        capacity_milli: of a pod, in thousandths of a core; None: its limit, or else its request.
    """

    files: Sequence[Path] = ()
    assignments: Sequence[str] = ()
    fixed: Sequence[int] = ()
    has_knative: bool = True
    has_hindsight: bool = True
    knative_concurrency: int | None = None
    slo_ms: float | None = None
    capacity_milli: int | None = None


def needs(source: LoadSource, request: CandidateRequest) -> Needs:
    """The pods that the load needs, and the capacity of one. Raises UsageError if that is not known or too small."""
    workload = _present_workload(source)
    try:
        capacity = demand.pod_capacity(workload, slo_ms=request.slo_ms, stated_milli=request.capacity_milli)
        pods = demand.needed_series(demand.cpu_demand(workload), capacity)
    except ValueError as error:
        raise UsageError(f"{error} (--capacity, --slo)") from None
    peak_pods = max(pods.values)
    if peak_pods > NEEDED_PODS_MAX:
        raise UsageError(
            f"the load needs up to {peak_pods:,} pods of {capacity.ucores / 1e6:g} CPU; state their --capacity"
        )
    return Needs(capacity=capacity, pods=pods, slo_ms=request.slo_ms, from_ms=source.from_ms)


def candidates(source: LoadSource, request: CandidateRequest, needed: Needs) -> list[Candidate]:
    """The present spec and the others, in the order of the flags. Raises UsageError."""
    present = source.scenario.autoscalers[0].spec
    all_candidates = [Candidate(name=f"{present.name} (present)", policy=present)]
    for file in request.files:
        all_candidates += _candidates_of_file(file, source)
    if request.assignments:
        all_candidates.append(_assigned_candidate(request.assignments, source))
    all_candidates += [_fixed_candidate(count) for count in request.fixed]
    if request.has_knative:
        all_candidates.append(_knative_candidate(source, needed, request))
    if request.knative_concurrency is not None:
        all_candidates.append(_concurrent_knative_candidate(source, needed, request, request.knative_concurrency))
    if request.has_hindsight:
        all_candidates.append(_hindsight_candidate(source, needed))
    return all_candidates


def _present_workload(source: LoadSource) -> WorkloadModel:
    """The workload of the present autoscaler."""
    key = source.scenario.autoscalers[0].workload
    return next(workload for workload in source.scenario.workloads if workload.key == key)


def _candidates_of_file(file: Path, source: LoadSource) -> Iterator[Candidate]:
    """The autoscalers of a file, with the key of the present one. Raises UsageError."""
    present = source.scenario.autoscalers[0].spec
    autoscalers = load_sources.read_autoscalers(file)
    if not autoscalers:
        raise UsageError(f"{file} has no HorizontalPodAutoscaler")
    for manifest in autoscalers:
        spec = documents.parse_spec(manifest, source.scenario.settings)
        if spec.reference != present.reference:
            raise manifest.field.error(f"it scales {spec.reference}, but the load is that of {present.reference}")
        for metric in spec.metrics:
            if error := _metric_error(metric, _present_workload(source)):
                raise manifest.field.error(f"{manifest.kind} {manifest.name}: {error}")
        name = file.name if len(autoscalers) == 1 else f"{file.name}: {manifest.name}"
        yield Candidate(name=name, policy=_renamed(spec, present))


def _metric_error(metric: Metric, workload: WorkloadModel) -> str:
    """Why a metric cannot be evaluated on the load; empty if it can."""
    error = resource_faults.find_fault(metric, workload)
    if error or not isinstance(metric, ResourceMetric) or workload.has_load(metric.resource):
        return error
    return f"{workload.key} has no {metric.resource} load"


def _renamed(spec: Spec, present: Spec) -> Spec:
    """The spec under the key of the present one, whose place it takes."""
    return msgspec.structs.replace(spec, key=present.key, namespace=present.namespace, name=present.name)


def _assigned_candidate(set_values: Sequence[str], source: LoadSource) -> Candidate:
    """The candidate of `--set` assignments to the present spec. Raises UsageError."""
    present, settings = source.scenario.autoscalers[0].spec, source.scenario.settings
    assignments = [assignment for set_value in set_values for assignment in what_if.parse(set_value)]
    try:
        wire, changed_settings = what_if.apply(assignments, source.wire, settings)
        spec = _parse_spec(present, wire, source)
    except UsageError as error:  # that of `what_if` names the flag of `podscaler explain`
        raise UsageError(str(error).replace("what-if", "--set", 1)) from None
    if changed_settings != settings:
        raise UsageError("--set changes fields of a spec; flags of the controller are the same for all candidates")
    return Candidate(name=", ".join(_label(assignment) for assignment in assignments), policy=spec)


def _label(assignment: Assignment) -> str:
    """The last two parts of the path, and the value: `scaleDown.stabilizationWindowSeconds=60`."""
    return f"{'.'.join(assignment.path.split('.')[-2:])}={assignment.value}"


def _parse_spec(present: Spec, wire: HorizontalPodAutoscalerSpec, source: LoadSource) -> Spec:
    """The spec that the changed autoscaler states, under the present key. Raises UsageError if it is invalid."""
    try:
        return core_spec.parse(present.namespace, present.name, wire, source.scenario.settings.emulation)
    except ValueError as error:
        raise UsageError(f"--set: the autoscaler cannot be evaluated: {error}") from None


def _fixed_candidate(count: int) -> Candidate:
    return Candidate(name=f"fixed {count}", policy=lambda: FixedCount(count), replicas=count)


def _knative_candidate(source: LoadSource, needed: Needs, request: CandidateRequest) -> Candidate:
    """Knative with the metric CPU."""
    config = _knative_config(source, needed, request)
    return Candidate(name="Knative", policy=lambda: Knative(config))


def _concurrent_knative_candidate(
    source: LoadSource, needed: Needs, request: CandidateRequest, concurrency: int
) -> Candidate:
    """Knative with the metric concurrency. Raises UsageError if the load has no requests."""
    if _present_workload(source).requests is None:
        raise UsageError("--knative-concurrency needs a load of requests; this load is CPU alone")
    config = msgspec.structs.replace(_knative_config(source, needed, request), target_concurrency=concurrency)
    return Candidate(name=f"Knative ({concurrency} at once)", policy=lambda: Knative(config))


def _knative_config(source: LoadSource, needed: Needs, request: CandidateRequest) -> KnativeConfig:
    """Knative within the bounds of the present spec; its target is 70 % of a pod's full capacity."""
    present = source.scenario.autoscalers[0].spec
    full_capacity = needed.capacity
    if needed.slo_ms:  # the needed capacity is what a pod can carry within the response time
        full_capacity = demand.pod_capacity(_present_workload(source), stated_milli=request.capacity_milli)
    return KnativeConfig(
        target_ucores=full_capacity.ucores, min_replicas=max(present.min_replicas, 1), max_replicas=present.max_replicas
    )


def _hindsight_candidate(source: LoadSource, needed: Needs) -> Candidate:
    """The candidate that knows the whole load in advance, as a lower bound; no autoscaler attains it."""
    lead_ms = scalers.lead_ms(_present_workload(source), source.scenario)
    tick_ms = source.scenario.sync_period_ms
    return Candidate(name="hindsight", policy=lambda: Hindsight(needed.pods, lead_ms, tick_ms), is_attainable=False)
