"""The report of a simulation as a page: a summary, the expectations, and each autoscaler with its decisions.

Called by `podscaler.cli.simulate.simulate` for `--report`. A new column: a name in `_COLUMNS`, and a cell in `_row`.
"""

from collections.abc import Sequence

from podscaler.cli.simulate.run_summary import RunSummary
from podscaler.simulation import report
from podscaler.simulation.files.scenario_file import ScenarioFile
from podscaler.simulation.model.expectations import clock_text
from podscaler.simulation.report import ExpectationResult, ReportData, ReportTable, SyncCollector

_COLUMNS = (
    "Autoscaler",
    "Replicas",
    "Mean",
    "Scale changes",
    "Pod-hours",
    "At maxReplicas",
    "Lost load",
    "Mean response",
    "Worst response",
    "Failed syncs",
)


def data(
    name: str,
    scenario: ScenarioFile,
    collector: SyncCollector,
    summaries: Sequence[RunSummary],
    failures: Sequence[str],
) -> ReportData:
    """The content of the report.

    Args:
        name: of the scenario file.
        summaries: one for each autoscaler.
        failures: for each expectation of the scenario the sentence about its failure; empty if it was met.
    """
    expected = zip(scenario.expectations, failures, strict=True)
    return report.ReportData(
        title=name,
        notes=("Simulated in virtual time with the decision of the controller, every sync.",),
        start_ns=scenario.scenario.start_ns,
        tables=(ReportTable(title="Summary", columns=_COLUMNS, rows=tuple([_row(summary) for summary in summaries])),),
        expectations=tuple(
            [ExpectationResult(expected=str(expectation), failure=failure) for expectation, failure in expected]
        ),
        autoscalers=collector.autoscalers(),
    )


def _row(summary: RunSummary) -> tuple[str, ...]:
    """The cells of an autoscaler's summary."""
    return (
        summary.autoscaler,
        f"{summary.replicas_min} to {summary.replicas_max}",
        f"{summary.replicas_mean:.2f}",
        f"{summary.scale_changes:,}",
        f"{summary.pod_hours:,.2f}",
        clock_text(round(summary.seconds_at_max * 1000)),
        f"{100 * summary.lost_ratio:.2f} %",
        _milliseconds(summary.latency_mean_ms),
        _milliseconds(summary.latency_worst_ms),
        f"{summary.failed_syncs:,}",
    )


def _milliseconds(duration_ms: float | None) -> str:
    return "" if duration_ms is None else f"{duration_ms:,.0f} ms"
