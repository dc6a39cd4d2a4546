"""The report of a backtest as a page: candidates, their pods on one axis, and the decisions of the present spec.

Called by `podscaler.cli.backtest.backtest` for `--report`. A new plot or table goes into `data`.
"""

from collections.abc import Sequence

from podscaler.cli.backtest import comparison_output
from podscaler.cli.backtest.comparison_output import BacktestResult
from podscaler.simulation import engine, report
from podscaler.simulation.evaluation import demand, surges, verdict
from podscaler.simulation.evaluation.comparison import CandidateComparison
from podscaler.simulation.model.expectations import clock_text
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.report import COLORS, PlotSeries, ReportData, ReportTable, SyncCollector, TimePlot

SHOWN_SURGES_MAX = 8
MICROCORES_PER_CORE = 1e6
"""CPU demand is in millionths of a core."""


def data(title: str, backtest_result: BacktestResult, scenario: SimulationScenario) -> ReportData:
    """The content of the report. Raises ValueError if the scenario contradicts itself.

    Args:
        scenario: with the present spec, whose decisions are explained.
    """
    collector = SyncCollector()
    for sync in engine.simulate(scenario):
        collector.add(sync)
    compared = backtest_result.comparison
    return report.ReportData(
        title=f"Backtest of {title}",
        notes=(verdict.sentence(compared), *backtest_result.sentences),
        start_ns=scenario.start_ns,
        tables=(comparison_output.report_table(backtest_result), _surges_table(compared)),
        plots=(_pods_plot(compared), _load_plot(scenario, compared.at_ms)),
        autoscalers=collector.autoscalers()[:1],  # the first is the present one
    )


def _pods_plot(compared: CandidateComparison) -> TimePlot:
    """The plot of the ready pods of each candidate, over those that were needed."""
    at_s = [instant_ms / 1000 for instant_ms in compared.at_ms]
    needed = PlotSeries(label="needed", values=compared.needed, color="gray", is_filled=True, keeps_changes=True)
    colors = [color for color in COLORS if color != "gray"]
    lines = []
    for index, candidate in enumerate(compared.results):
        color = colors[index % len(colors)]
        lines.append(PlotSeries(label=candidate.name, values=candidate.run.ready, color=color, keeps_changes=True))
    return TimePlot(title="Ready pods of each candidate", unit="", at_s=at_s, series=(needed, *lines))


def _load_plot(scenario: SimulationScenario, at_ms: Sequence[int]) -> TimePlot:
    """The plot of the CPU that the workload needs, in cores."""
    series = demand.cpu_demand(scenario.workloads[0])
    cores = [series.value_at(instant_ms) / MICROCORES_PER_CORE for instant_ms in at_ms]
    line = PlotSeries(label="demand", values=cores, color="orange", is_filled=True)
    return TimePlot(title="CPU demand", unit="cores", at_s=[instant_ms / 1000 for instant_ms in at_ms], series=(line,))


def _surges_table(compared: CandidateComparison) -> ReportTable:
    """The reaction of each candidate to the largest surges, in the order of time."""
    candidate_reactions = [
        surges.reactions(compared.at_ms, compared.needed, candidate.run.ready) for candidate in compared.results
    ]
    first_reactions = candidate_reactions[0]  # the surges are the same for every candidate

    def added_pods(index: int) -> int:
        return first_reactions[index].needed - first_reactions[index].before

    largest_first = sorted(range(len(first_reactions)), key=added_pods, reverse=True)
    rows = []
    for index in sorted(largest_first[:SHOWN_SURGES_MAX]):
        surge = first_reactions[index]
        reactions = [_reaction_text(of_candidate[index].reaction_ms) for of_candidate in candidate_reactions]
        rows.append((clock_text(surge.at_ms), f"{surge.before} to {surge.needed} pods", *reactions))
    columns = ("Surge", "Needed", *(candidate.name for candidate in compared.results))
    return ReportTable(
        title=f"Time until the pods sufficed: the largest surges of {len(first_reactions)}",
        columns=columns,
        rows=tuple(rows),
    )


def _reaction_text(reaction_ms: int | None) -> str:
    return "never" if reaction_ms is None else f"{reaction_ms / 1000:,.0f} s"
