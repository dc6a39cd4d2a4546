"""Writes the comparison of candidates: a table for people, and JSON, YAML and CSV.

Called by `podscaler.cli.backtest.backtest`. A new measure: a field in `_row`, and a line in `_COLUMNS` if the table has
it.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import yaml

from podscaler.simulation.evaluation import verdict
from podscaler.simulation.evaluation.comparison import CandidateComparison, CandidateResult, Needs
from podscaler.simulation.report import ReportTable

FORMS = ("table", "json", "csv", "yaml")


class _Column(NamedTuple):
    """A column of the table; `field` is that of `rows`."""

    heading: str
    field: str
    number_format: str


_COLUMNS = (
    _Column("pod-hours", "pod_hours", "{:,.1f}"),
    _Column("under: time %", "under_timeshare_pct", "{:.2f}"),
    _Column("pods %", "under_accuracy_pct", "{:.2f}"),
    _Column("over: time %", "over_timeshare_pct", "{:.2f}"),
    _Column("pods %", "over_accuracy_pct", "{:.2f}"),
    _Column("SLO missed %", "slo_missed_pct", "{:.2f}"),
    _Column("lost %", "lost_pct", "{:.2f}"),
    _Column("changes", "scale_changes", "{:,}"),
    _Column("reaction s", "median_reaction_s", "{:.0f}"),
    _Column("worst s", "worst_reaction_s", "{:.0f}"),
    _Column("speedup", "elastic_speedup", "{:.2f}"),
)
_HEADINGS = tuple(column.heading for column in _COLUMNS)


class BacktestResult(msgspec.Struct, frozen=True, kw_only=True):
    """What is written.

    Attributes:
        needs: the pods that the load needs, by which they are scored.
        sentences: about the source.
    """

    comparison: CandidateComparison
    needs: Needs
    sentences: Sequence[str]


def text(backtest_result: BacktestResult, form: str) -> str:
    """The text in a form of FORMS, with a line break at its end."""
    match form:
        case "json":
            return msgspec.json.format(msgspec.json.encode(_data(backtest_result))).decode() + "\n"
        case "yaml":
            return str(yaml.safe_dump(_data(backtest_result), sort_keys=False))
        case "csv":
            return _csv(backtest_result.comparison)
        case _:
            return _table(backtest_result)


def rows(comparison: CandidateComparison) -> list[dict[str, Any]]:
    """The measures of each candidate by name; None for one that is undefined."""
    return [_row(candidate_result) for candidate_result in comparison.results]


def _row(candidate_result: CandidateResult) -> dict[str, Any]:
    """The scores of one candidate, for JSON and for the table."""
    metrics, reactions = candidate_result.elasticity, candidate_result.reactions
    return {
        "candidate": candidate_result.name,
        "pod_hours": candidate_result.pod_hours,
        "under_timeshare_pct": metrics.under_timeshare_pct,
        "under_accuracy_pct": metrics.under_accuracy_pct,
        "over_timeshare_pct": metrics.over_timeshare_pct,
        "over_accuracy_pct": metrics.over_accuracy_pct,
        "instability_pct": metrics.instability_pct,
        "jitter": metrics.jitter,
        "slo_missed_pct": candidate_result.slo_missed_pct,
        "lost_pct": candidate_result.lost_pct,
        "scale_changes": candidate_result.scale_changes,
        "surges": reactions.surges,
        "surges_without_reaction": reactions.unfinished,
        "median_reaction_s": None if reactions.median_ms is None else reactions.median_ms / 1000,
        "worst_reaction_s": None if reactions.worst_ms is None else reactions.worst_ms / 1000,
        "elastic_speedup": candidate_result.speedup,
        "engine": candidate_result.run.engine,
        "engine_reason": candidate_result.run.reason,
    }


def report_table(backtest_result: BacktestResult) -> ReportTable:
    """The table as a part of a report."""
    cells = tuple(tuple(_cells(row)) for row in rows(backtest_result.comparison))
    return ReportTable(title="Candidates", columns=("Candidate", *_HEADINGS), rows=cells)


def _data(backtest_result: BacktestResult) -> dict[str, Any]:
    """The comparison as JSON-ready data."""
    return {
        "verdict": verdict.sentence(backtest_result.comparison),
        "needed_pods": {
            "capacity_cores": backtest_result.needs.capacity.ucores / 1e6,
            "basis": backtest_result.needs.capacity.basis,
            "slo_ms": backtest_result.needs.slo_ms,
        },
        "syncs": len(backtest_result.comparison.at_ms),
        "notes": list(backtest_result.sentences),
        "candidates": rows(backtest_result.comparison),
    }


def _csv(comparison: CandidateComparison) -> str:
    """The measures of each candidate as CSV, with a line of headings."""
    stream = io.StringIO()
    result_rows = rows(comparison)
    writer = csv.DictWriter(stream, list(result_rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(result_rows)
    return stream.getvalue()


def _table(backtest_result: BacktestResult) -> str:
    """The table in aligned columns, with the sentences about the comparison above and the verdict below."""
    lines = [["", *_HEADINGS], *(_cells(row) for row in rows(backtest_result.comparison))]
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    body = "".join(f"{_line(line, widths)}\n" for line in lines)
    return f"{_heading(backtest_result)}\n{body}\n{verdict.sentence(backtest_result.comparison)}\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A line of the table: the first cell aligned to the left, the others to the right."""
    name, *numbers = cells
    aligned = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
    return "  ".join([name.ljust(widths[0]), *aligned])


def _cells(row: Mapping[str, Any]) -> list[str]:
    """The cells of one candidate, an element of `rows`: its name, and one cell for each column."""
    return [row["candidate"], *(_cell(row[column.field], column.number_format) for column in _COLUMNS)]


def _cell(measure: Any, number_format: str) -> str:
    return "-" if measure is None else number_format.format(measure)


def _heading(backtest_result: BacktestResult) -> str:
    """The sentences above the table: what was compared, and by which assumptions."""
    needs, comparison = backtest_result.needs, backtest_result.comparison
    hours = len(comparison.at_ms) * comparison.sync_period_ms / 3_600_000
    sentences = [
        f"{hours:,.1f} hours, {len(comparison.at_ms):,} syncs. A pod carries {needs.capacity.ucores / 1e6:g} CPU "
        f"({needs.capacity.basis}); from {min(comparison.needed)} to {max(comparison.needed)} pods were needed.",
        *backtest_result.sentences,
        *_engine_sentences(comparison),
    ]
    return "".join(f"{sentence}\n" for sentence in sentences)


def _engine_sentences(comparison: CandidateComparison) -> list[str]:
    """Which engine ran the candidates, and why not the batch engine."""
    batch_names = [result.name for result in comparison.results if result.run.engine == "batch"]
    exact_names = [result.name for result in comparison.results if result.run.engine != "batch"]
    sentences = [f"The batch engine ran {', '.join(batch_names)}."] if batch_names else []
    if exact_names:
        sentences.append(f"The exact engine ran {', '.join(exact_names)}.")
    reasons = dict.fromkeys(result.run.reason for result in comparison.results if result.run.reason)
    return [*sentences, *(f"The batch engine does not cover this: {reason}." for reason in reasons)]
