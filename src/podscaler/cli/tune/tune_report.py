"""The report of a search as a page: scores on both parts, the candidates as a scatter plot, and the pods over time.

Called by `podscaler.cli.tune.tune` for `--report`. A new plot or table goes into `data`.
"""

from collections.abc import Iterator, Sequence

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.cli.tune import tune_output
from podscaler.cli.tune.tune_output import TunedAutoscaler
from podscaler.cli.tune.tune_source import TuneSource
from podscaler.core.model import spec as core_spec
from podscaler.simulation import engine, report
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.report import (
    AutoscalerPart,
    PlotSeries,
    ReportData,
    ReportTable,
    ScatterPlot,
    ScatterPoint,
    SyncCollector,
    TimePlot,
)
from podscaler.simulation.search import recommendation, scores
from podscaler.simulation.search.scores import Scores

_SECOND_MEASURE, _THIRD_MEASURE = "under-amount", "pod-hours"
"""The measures of axes for which the goals have none."""


def data(tuned: TunedAutoscaler, source: TuneSource) -> ReportData:
    """The content of the report. Raises ValueError if the scenario contradicts itself."""
    present_part, *other_parts = _autoscaler_parts(tuned, source)
    changes = ReportTable(
        title="Changes",
        columns=("Field", "Before", "After"),
        rows=tuple([(change.path, _field_text(change.before), _field_text(change.after)) for change in tuned.changes]),
    )
    return report.ReportData(
        title=f"Tuning of {tuned.name}",
        notes=(tune_output.verdict(tuned), *tuned.effects, *tuned.remarks),
        start_ns=source.scenario.start_ns,
        tables=(_scores_table(tuned), *([changes] if tuned.changes else [])),
        plots=(_replicas_plot(present_part, other_parts),),
        scatter=_scatter_plot(tuned, source),
        autoscalers=(present_part, *other_parts),
    )


def _field_text(field: object) -> str:
    return "unset" if field is None else msgspec.json.encode(field).decode()


def _scores_table(tuned: TunedAutoscaler) -> ReportTable:
    """The table of the scores of the present spec and of the candidate."""
    measures = tune_output.measures_of(tuned.goals)
    header, *rows = tune_output.score_rows(tuned, measures)
    return ReportTable(
        title="Scores on the first part of the load, and on the later part, which the search did not see",
        columns=("", *header[1:]),
        rows=tuple([tuple(row) for row in rows]),
    )


def _scatter_plot(tuned: TunedAutoscaler, source: TuneSource) -> ScatterPlot:
    """The candidates of the front, the present spec and the chosen one, on the first part."""
    distinct_measures = list(dict.fromkeys([*tuned.goals.minimize, _SECOND_MEASURE, _THIRD_MEASURE]))
    x_measure, y_measure = distinct_measures[:2]

    def point(
        label: str, candidate_scores: Scores, kind: str, spec: HorizontalPodAutoscalerSpec | None
    ) -> ScatterPoint:
        changes = () if spec is None else recommendation.changes(source.wire, spec)
        return msgspec.convert(
            {
                "label": label,
                "x": scores.score_value(candidate_scores, x_measure),
                "y": scores.score_value(candidate_scores, y_measure),
                "kind": kind,
                "lines": [str(change) for change in changes],
            },
            ScatterPoint,
        )

    points = [point("candidate", candidate.scores, "front", candidate.spec) for candidate in tuned.result.front]
    points.append(point("present spec", tuned.result.present, "present", None))
    if (chosen := tuned.result.chosen) is not None:
        kind, label = ("chosen", "recommended") if tuned.manifest is not None else ("front", "best candidate")
        points.append(point(label, chosen.scores, kind, chosen.spec))
    return ScatterPlot(
        title="Candidates, first part of the load", x_label=x_measure, y_label=y_measure, points=tuple(points)
    )


def _autoscaler_parts(tuned: TunedAutoscaler, source: TuneSource) -> Iterator[AutoscalerPart]:
    """The present spec and the chosen one over the whole load."""
    yield _simulated(source.scenario, f"{tuned.name}, present spec")
    if (chosen := tuned.result.chosen) is not None:
        (autoscaler,) = source.scenario.autoscalers
        present_spec, settings = autoscaler.spec, source.scenario.settings
        spec = core_spec.parse(present_spec.namespace, present_spec.name, chosen.spec, settings.emulation)
        changed_autoscaler = msgspec.structs.replace(autoscaler, spec=spec)
        scenario = msgspec.structs.replace(source.scenario, autoscalers=(changed_autoscaler,))
        name = "recommended spec" if tuned.manifest is not None else "best candidate"
        yield _simulated(scenario, f"{tuned.name}, {name}")


def _simulated(scenario: SimulationScenario, title: str) -> AutoscalerPart:
    """The part of the report with the plots of one simulation of the scenario."""
    collector = SyncCollector()
    for sync in engine.simulate(scenario):
        collector.add(sync)
    return msgspec.structs.replace(collector.autoscalers()[0], autoscaler=title)


def _replicas_plot(present_part: AutoscalerPart, other_parts: Sequence[AutoscalerPart]) -> TimePlot:
    """The ready pods of each spec on one axis."""
    lines = []
    for autoscaler_part, color in zip((present_part, *other_parts), ("gray", "green"), strict=False):
        plot = next(plot for plot in autoscaler_part.plots if plot.has_decisions)
        ready_pods = next(series for series in plot.series if series.label == "ready pods")
        label = autoscaler_part.autoscaler.rpartition(", ")[2]  # the end of the title of `_simulated`
        lines.append(PlotSeries(label=label, values=ready_pods.values, color=color, keeps_changes=True))  # type: ignore[arg-type] # a SeriesColor
    at_s = next(plot for plot in present_part.plots if plot.has_decisions).at_s
    return TimePlot(title="Ready pods", unit="", at_s=at_s, series=tuple(lines))
