"""The report of a backtest as a page: candidates, their pods on one axis, and the decisions of the present spec.

Called by `podscaler backtest --report`.
"""

from collections.abc import Iterator, Sequence

from podscaler.cli.backtest import comparison_output
from podscaler.cli.backtest.comparison_output import ComparisonText
from podscaler.simulation import engine, report
from podscaler.simulation.evaluation import demand, surges, verdict
from podscaler.simulation.evaluation.comparison import CandidateComparison, CandidateResult
from podscaler.simulation.model.expectations import clock
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.report import COLORS, PlotSeries, ReportData, ReportTable, SyncCollector, TimePlot

SURGES_MAX = 8
MICROCORES_PER_CORE = 1e6
"""CPU demand is in millionths of a core."""


def data(title: str, comparison_text: ComparisonText, scenario: SimulationScenario) -> ReportData:
    """The content of the report. Raises ValueError if the scenario contradicts itself.

    Args:
        title: the source.
        scenario: with the present spec, whose decisions are explained.
    """
    collector = SyncCollector()
    for sync in engine.simulate(scenario):
        collector.add(sync)
    compared = comparison_text.comparison
    return report.ReportData(
        title=f"Backtest of {title}",
        notes=(verdict.sentence(compared), *comparison_text.sentences),
        start_ns=scenario.start_ns,
        tables=(comparison_output.report_table(comparison_text), _surges(compared)),
        plots=(_pods(compared), _load(scenario, compared.at_ms)),
        autoscalers=collector.autoscalers()[:1],
    )


def _pods(compared: CandidateComparison) -> TimePlot:
    """The plot of the ready pods of each candidate, over those that were needed."""
    at_s = [instant_ms / 1000 for instant_ms in compared.at_ms]
    needed = PlotSeries(label="needed", values=compared.needed, color="gray", is_filled=True, keeps_changes=True)
    colors = [color for color in COLORS if color != "gray"]
    lines = []
    for index, candidate in enumerate(compared.results):
        color = colors[index % len(colors)]
        lines.append(PlotSeries(label=candidate.name, values=candidate.run.ready, color=color, keeps_changes=True))
    return TimePlot(title="Ready pods of each candidate", unit="", at_s=at_s, series=(needed, *lines))


def _load(scenario: SimulationScenario, at_ms: Sequence[int]) -> TimePlot:
    """The plot of the CPU that the workload needs, in cores."""
    series = demand.cpu_demand(scenario.workloads[0])
    cores = [series.value_at(instant_ms) / MICROCORES_PER_CORE for instant_ms in at_ms]
    line = PlotSeries(label="demand", values=cores, color="orange", is_filled=True)
    return TimePlot(title="CPU demand", unit="cores", at_s=[instant_ms / 1000 for instant_ms in at_ms], series=(line,))


def _surges(compared: CandidateComparison) -> ReportTable:
    """The reaction of each candidate to each surge, the largest surges first."""
    candidate_reactions = [
        surges.reactions(compared.at_ms, compared.needed, candidate.run.ready) for candidate in compared.results
    ]
    first_reactions = candidate_reactions[0]  # the surges are the same for every candidate
    largest = sorted(
        range(len(first_reactions)), key=lambda index: first_reactions[index].before - first_reactions[index].needed
    )
    rows = []
    for index in sorted(largest[:SURGES_MAX]):
        surge = first_reactions[index]
        reactions = [_seconds(candidate_reaction[index].reaction_ms) for candidate_reaction in candidate_reactions]
        rows.append((clock(surge.at_ms), f"{surge.before} to {surge.needed} pods", *reactions))
    columns = ("Surge", "Needed", *_names(compared.results))
    return ReportTable(
        title=f"Time until the pods sufficed: the largest surges of {len(first_reactions)}",
        columns=columns,
        rows=tuple(rows),
    )


def _names(results: Sequence[CandidateResult]) -> Iterator[str]:
    return (candidate.name for candidate in results)


def _seconds(reaction_ms: int | None) -> str:
    return "never" if reaction_ms is None else f"{reaction_ms / 1000:,.0f} s"
