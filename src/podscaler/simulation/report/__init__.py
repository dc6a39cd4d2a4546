"""Reports of simulations as HTML files that need no server and no network.

    collector = report.SyncCollector()
    for sync in engine.simulate(scenario):
        collector.add(sync)
    report.write(path, report.ReportData(title="web.yaml", autoscalers=collector.autoscalers()))

Entry points: `html_page.write` and `html_page.html`. Reading order: `page_data` (the content), `decision_log`,
`sync_collector` (from syncs to content), `decimation`, `html_page`; `static` has the script and style of the page,
and uPlot. May import: `simulation.model`, `explain`, `core`, `api`.
"""

from podscaler.simulation.report.html_page import as_json, ensure_writable, html, write
from podscaler.simulation.report.page_data import (
    COLORS,
    AutoscalerPart,
    ExpectationResult,
    ExplainedDecision,
    PlotBand,
    PlotSeries,
    ReportData,
    ReportTable,
    ScatterPlot,
    ScatterPoint,
    TimePlot,
)
from podscaler.simulation.report.sync_collector import SyncCollector

__all__ = [
    "COLORS",
    "AutoscalerPart",
    "ExpectationResult",
    "ExplainedDecision",
    "PlotBand",
    "PlotSeries",
    "ReportData",
    "ReportTable",
    "ScatterPlot",
    "ScatterPoint",
    "SyncCollector",
    "TimePlot",
    "as_json",
    "ensure_writable",
    "html",
    "write",
]
