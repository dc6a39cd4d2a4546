"""Shows how far a fleet's backtest is, and prints its summary.

Called by `podscaler.cli.fleet.fleet_run`. A new column: a line of `_COLUMNS`.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from podscaler.simulation.fleet.partition_runs import FleetProgress
    from podscaler.simulation.fleet.summary import CandidateSummary, FleetSummary

_BAR_WIDTH = 30
_PROGRESS_LINES = 10
"""How many lines of progress are printed where there is no bar."""

_COLUMNS: tuple[tuple[str, Callable[["CandidateSummary"], str]], ...] = (
    ("autoscalers", lambda row: f"{row.autoscalers:,}"),
    ("pod-hours", lambda row: f"{row.pod_hours:,.0f}"),
    ("of needed", lambda row: f"{row.pod_hours / row.needed_pod_hours:.2f}" if row.needed_pod_hours else "-"),
    ("under: time %", lambda row: f"{row.under_timeshare_pct:.2f}"),
    ("p95 %", lambda row: f"{row.worst_under_timeshare_pct:.2f}"),
    ("pods %", lambda row: f"{row.under_accuracy_pct:.2f}"),
    ("over: pods %", lambda row: f"{row.over_accuracy_pct:.2f}"),
    ("changes", lambda row: f"{row.scale_changes:,}"),
    ("better", lambda row: f"{row.better:,}"),
    ("worse", lambda row: f"{row.worse:,}"),
)


def progress_printer() -> "Callable[[FleetProgress], None]":
    """A function that prints progress on standard error: as a bar on a terminal, elsewhere as a line for each tenth."""
    return _draw_bar if sys.stderr.isatty() else _ProgressLines()


def _draw_bar(progress: "FleetProgress") -> None:
    """Draw the progress bar on standard error, over the previous one."""
    filled = _BAR_WIDTH * progress.done // max(progress.partitions, 1)
    bar = "#" * filled + "." * (_BAR_WIDTH - filled)
    click.echo(f"\r[{bar}] {_progress_text(progress)}", err=True, nl=progress.done == progress.partitions)


class _ProgressLines:
    """Prints a line at the begin and whenever another tenth is done."""

    def __init__(self) -> None:
        self._printed_tenth = -1

    def __call__(self, progress: "FleetProgress") -> None:
        """Print a line if another tenth is done."""
        tenth = _PROGRESS_LINES * progress.done // max(progress.partitions, 1)
        if tenth > self._printed_tenth:
            self._printed_tenth = tenth
            click.echo(_progress_text(progress), err=True)


def _progress_text(progress: "FleetProgress") -> str:
    """The line of progress: `3 of 10 partitions, 1,200 autoscalers in this run`."""
    kept_text = f" ({progress.kept} of an earlier run)" if progress.kept else ""
    partitions = f"{progress.done} of {progress.partitions} partitions{kept_text}"
    return f"{partitions}, {progress.autoscalers:,} autoscalers in this run"


def text(fleet_summary: "FleetSummary", form: str, folder: str) -> str:
    """The summary as a table or as JSON (`form`), with a line break at its end; `folder` has the results."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(_data(fleet_summary, folder))).decode() + "\n"
    lines = [["", *(heading for heading, _ in _COLUMNS)]]
    candidates = fleet_summary.candidates
    lines += [[candidate.candidate, *(make_cell(candidate) for _, make_cell in _COLUMNS)] for candidate in candidates]
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    table = "".join(_line(line, widths) for line in lines) if candidates else ""
    return f"{table}{_error_lines(fleet_summary)}The rows of every autoscaler: {folder}/*.parquet\n"


def _data(fleet_summary: "FleetSummary", folder: str) -> dict[str, Any]:
    """The summary for JSON; `folder` has the results of each autoscaler."""
    return {
        "candidates": fleet_summary.candidates,
        "failed": fleet_summary.failed,
        "errors": [{"error": error, "autoscalers": count} for error, count in fleet_summary.errors],
        "results": folder,
    }


def _line(cells: list[str], widths: list[int]) -> str:
    """A line of the table: the first cell aligned to the left, the others to the right."""
    name, *numbers = cells
    aligned = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
    return "  ".join([name.ljust(widths[0]), *aligned]) + "\n"


def _error_lines(fleet_summary: "FleetSummary") -> str:
    """The lines about autoscalers that could not be evaluated; empty if there are none."""
    if not fleet_summary.failed:
        return ""
    lines = [f"{fleet_summary.failed:,} autoscalers could not be judged:\n"]
    lines += [f"  {count:,}: {error}\n" for error, count in fleet_summary.errors]
    return "".join(lines)
