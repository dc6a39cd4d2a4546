"""Autoscalers on published traces: HPA defaults, a tuned HPA, Knative's algorithm, hindsight, by elasticity metrics.

The first 60 % of each trace are for training; the table judges the last 40 %, which the search of the tuned HPA does
not see. The traces are read from a folder that PODSCALER_TRACES names (default ../shared/traces, beside the project);
those that are not there are skipped. The service models, and why they have these numbers, are in docs/backtest.md
(Published traces).
"""

import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from podscaler.api.typed import autoscaling
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.core.model import spec
from podscaler.core.model.spec import Spec
from podscaler.simulation.evaluation import candidates, comparison, demand, verdict
from podscaler.simulation.evaluation.candidates import Hindsight
from podscaler.simulation.evaluation.comparison import Candidate, CandidateComparison, CandidateResult, Needs
from podscaler.simulation.evaluation.knative import Knative, KnativeConfig
from podscaler.simulation.model import step_series
from podscaler.simulation.model.distributions import fixed
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario
from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.model.workloads import ContainerModel, PodModel, RequestLoad, ResourceLoad, WorkloadModel
from podscaler.simulation.search import goals, scoring, search
from podscaler.simulation.search.scoring import ScoredPart
from podscaler.simulation.search.search import SearchBudget
from podscaler.simulation.search.space import DEFAULT_DIMENSIONS, ReplicaBounds, SearchSpace

FOLDER = Path(os.environ.get("PODSCALER_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
TRAINING_SHARE = 0.6
WARM_UP_MS = 1_800_000
"""The judged part is simulated from this much earlier on, so that no candidate is judged by its first replicas."""

TRIALS = 1000

_LLM_BIN_S = 15
_LLM_TOKENS = 200
_SYNC_MS = 15_000

Points = Iterator[tuple[float, float]]
"""Seconds since the epoch, and a value."""


class TraceCase(NamedTuple):
    """A trace and the service that its load is for.

    Attributes:
        read: the points of the trace; a value is a rate per second, or a number of cores.
        cpu_per_request_ms: None: the values are cores.
        startup_s: of a pod, from its creation until it is ready.
        slo_ms: the mean response time to meet; None: pods are needed up to their capacity.
    """

    name: str
    file: str
    read: Callable[[Path], Points]
    cpu_per_request_ms: int | None
    pod_milli: int
    startup_s: int
    max_replicas: int
    slo_ms: float | None


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _at_s(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _llm_rates(path: Path) -> Points:
    """Standard answers of 200 tokens per second, in bins of 15 seconds; a bin without a request is 0."""
    tokens: dict[int, int] = {}
    for row in _rows(path):
        index = int(_at_s(row["TIMESTAMP"][:26]) // _LLM_BIN_S)
        tokens[index] = tokens.get(index, 0) + int(row["GeneratedTokens"])
    for index in range(min(tokens), max(tokens) + 1):
        yield index * _LLM_BIN_S, tokens.get(index, 0) / _LLM_TOKENS / _LLM_BIN_S


def _elb_rates(path: Path) -> Points:
    """A sampled count of 5 minutes stands for 1,000 requests each."""
    for row in _rows(path):
        yield _at_s(row["timestamp"]), float(row["value"]) * 1000 / 300


def _asg_cores(path: Path) -> Points:
    """Percent of a group of 20 cores."""
    for row in _rows(path):
        yield _at_s(row["timestamp"]), float(row["value"]) / 100 * 20


def _world_cup_rates(path: Path) -> Points:
    for row in _rows(path):
        yield _at_s(row["period"]), float(row["count"]) / 60


CASES = (
    TraceCase(
        "azure-llm-2023", "azure-llm-2023/AzureLLMInferenceTrace_conv.csv", _llm_rates, 1500, 1000, 60, 60, 6_000
    ),
    TraceCase("nab-elb", "nab-aws/elb_request_count_8c0756.csv", _elb_rates, 20, 1000, 15, 100, 100),
    TraceCase("nab-asg-cpu", "nab-aws/cpu_utilization_asg_misconfiguration.csv", _asg_cores, None, 1000, 15, 60, None),
    TraceCase("worldcup98", "worldcup98/invocation_count.csv", _world_cup_rates, 20, 1000, 15, 150, 100),
)


class TraceParts(NamedTuple):
    """A trace as scenarios with an autoscaler of default settings: the training part, and the judged part.

    Attributes:
        later_from_ms: the first instant of `later` that counts.
    """

    case: TraceCase
    training: SimulationScenario
    later: SimulationScenario
    later_from_ms: int


def default_spec(max_replicas: int) -> HorizontalPodAutoscalerSpec:
    """An autoscaler with the API's defaults: 80 % of the requested CPU, no behavior, at least one pod."""
    reference = autoscaling.CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1")
    return HorizontalPodAutoscalerSpec(scale_target_ref=reference, min_replicas=1, max_replicas=max_replicas)


def read_spec(wire: HorizontalPodAutoscalerSpec) -> Spec:
    """The parsed spec of the autoscaler of a trace."""
    return spec.parse("default", "web", wire)


def parts(case: TraceCase) -> TraceParts:
    """Both parts of a trace. Raises OSError where its file is not there."""
    points = list(case.read(FOLDER / case.file))
    begin_s, end_s = points[0][0], points[-1][0]
    border_s = begin_s + TRAINING_SHARE * (end_s - begin_s)
    steps = [(round((at_s - begin_s) * 1000), value) for at_s, value in points]
    border_ms = round((border_s - begin_s) * 1000) // _SYNC_MS * _SYNC_MS
    warm_up_ms = min(WARM_UP_MS, border_ms)
    return TraceParts(
        case,
        _scenario(case, steps, 0, border_ms),
        _scenario(case, steps, border_ms - warm_up_ms, steps[-1][0]),
        warm_up_ms,
    )


def _scenario(case: TraceCase, steps: Iterable[tuple[int, float]], begin_ms: int, end_ms: int) -> SimulationScenario:
    """The scenario of a part; it begins with the replicas that its first load needs."""
    unit = 1000 if case.cpu_per_request_ms is not None else 1_000_000
    cut: dict[int, int] = {}
    for at_ms, value in steps:
        if at_ms < end_ms:
            cut[max(at_ms - begin_ms, 0)] = round(value * unit)
    workload = _workload(case, step_series.from_steps(cut.items()))
    first = demand.needed_series(demand.cpu_demand(workload), _capacity(case, workload)).values[0]
    workload = msgspec.structs.replace(workload, replicas=min(first, case.max_replicas))
    model = AutoscalerModel(spec=read_spec(default_spec(case.max_replicas)), workload=workload.key)
    return SimulationScenario(workloads=(workload,), autoscalers=(model,), duration_ms=end_ms - begin_ms)


def _workload(case: TraceCase, series: StepSeries) -> WorkloadModel:
    container = ContainerModel(name="app", requests_milli={"cpu": case.pod_milli}, cpu_limit_milli=case.pod_milli)
    pod = PodModel(containers=(container,), launch=fixed(2_000), startup=fixed((case.startup_s - 2) * 1000))
    if case.cpu_per_request_ms is None:
        return WorkloadModel(key="default/web", pod=pod, demands=(ResourceLoad(resource="cpu", total=series),))
    load = RequestLoad(
        rate=series,
        cpu_per_request_us=case.cpu_per_request_ms * 1000,
        timeout_ms=max(10_000, case.cpu_per_request_ms * 20),
    )
    return WorkloadModel(key="default/web", pod=pod, requests=load)


def _capacity(case: TraceCase, workload: WorkloadModel) -> demand.PodCapacity:
    return demand.pod_capacity(workload, slo_ms=case.slo_ms)


def needs(case: TraceCase, scenario: SimulationScenario, from_ms: int) -> Needs:
    """What candidates on a part are measured by."""
    (workload,) = scenario.workloads
    capacity = _capacity(case, workload)
    pods = demand.needed_series(demand.cpu_demand(workload), capacity)
    return Needs(capacity=capacity, pods=pods, slo_ms=case.slo_ms, from_ms=from_ms)


def others(part: TraceParts) -> list[Candidate]:
    """Knative's algorithm and hindsight on the judged part."""
    (workload,) = part.later.workloads
    judged = needs(part.case, part.later, part.later_from_ms)
    config = KnativeConfig(target_ucores=part.case.pod_milli * 1000, max_replicas=part.case.max_replicas)
    lead_ms = candidates.lead_ms(workload, part.later)
    return [
        Candidate(name="Knative", policy=lambda: Knative(config)),
        Candidate(
            name="hindsight",
            policy=lambda: Hindsight(judged.pods, lead_ms, part.later.sync_period_ms),
            is_attainable=False,
        ),
    ]


def tuned(part: TraceParts) -> list[Candidate]:
    """The HPA that a search finds on the training part: better in pods, or in missing pods, and worse in neither.

    Empty where no candidate is; the present spec stays then.
    """
    training = _training(part)
    found = search.search(
        SearchSpace(default_spec(part.case.max_replicas), DEFAULT_DIMENSIONS, ReplicaBounds(1, part.case.max_replicas)),
        goals.parse([], [], has_slo=part.case.slo_ms is not None),
        scoring.fold_evaluator(training, scoring.fold_count(training), _not_covered),
        scoring.evaluator(training, _not_covered),
        SearchBudget(TRIALS, 1),
        lambda done: None,
    )
    if found.chosen is None:
        return []
    return [Candidate(name="HPA, tuned", policy=read_spec(found.chosen.spec))]


def _training(part: TraceParts) -> ScoredPart:
    judged = needs(part.case, part.training, 0)
    at_ms = range(0, part.training.duration_ms + 1, part.training.sync_period_ms)
    pods = [judged.pods.value_at(instant_ms) for instant_ms in at_ms]
    return ScoredPart(scenario=part.training, from_ms=0, needed=pods, slo_ms=part.case.slo_ms)


def _not_covered(reason: str) -> None:
    sys.exit(f"the batch engine does not cover the trace: {reason}")


def judge(part: TraceParts, more: Iterable[Candidate] = ()) -> CandidateComparison:
    """The comparison on the judged part: HPA with default settings, `more`, Knative, hindsight."""
    present = Candidate(name="HPA, default settings", policy=part.later.autoscalers[0].spec)
    judged = needs(part.case, part.later, part.later_from_ms)
    return comparison.compare(part.later, [present, *more, *others(part)], judged)


HEADER = (
    f"{'':24}{'pod-hours':>10}{'th_U %':>8}{'th_O %':>8}{'tau_U %':>9}{'tau_O %':>9}{'insta %':>9}"
    f"{'SLO miss %':>12}{'lost %':>8}{'changes':>9}{'reaction s (median, worst)':>28}{'speedup':>9}"
)


def line(found: CandidateResult) -> str:
    """One candidate."""
    metrics, reactions = found.elasticity, found.reactions
    reaction = (
        "none"
        if reactions.worst_ms is None
        else (f"{(reactions.median_ms or 0) / 1000:.0f}, {reactions.worst_ms / 1000:.0f} of {reactions.surges}")
    )
    return (
        f"{found.name:24}{found.pod_hours:>10,.0f}{_number(metrics.under_accuracy_pct, 8)}"
        f"{_number(metrics.over_accuracy_pct, 8)}{_number(metrics.under_timeshare_pct, 9)}"
        f"{_number(metrics.over_timeshare_pct, 9)}{_number(metrics.instability_pct, 9)}"
        f"{_number(found.slo_missed_pct, 12)}{_number(found.lost_pct, 8)}{found.scale_changes:>9,}{reaction:>28}"
        f"{_number(found.speedup, 9)}"
    )


def _number(value: float | None, width: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.2f}"


def main() -> None:
    """Print the tables of all traces that are there."""
    for case in CASES:
        if not (FOLDER / case.file).exists():
            print(f"   {case.name}: {FOLDER / case.file} is not there\n")
            continue
        begun = time.perf_counter()
        part = parts(case)
        hours = (part.later.duration_ms - part.later_from_ms) / 3_600_000
        recommended = tuned(part)
        found = judge(part, recommended)
        print(f"   {case.name}: {hours:,.1f} h judged, {time.perf_counter() - begun:.1f} s\n\n   {HEADER}")
        for result in found.results:
            print(f"   {line(result)}")
        if not recommended:
            print("   The search recommends nothing; the present spec stays.")
        print(f"\n   {verdict.sentence(found)}\n", flush=True)
