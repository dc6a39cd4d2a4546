"""`podscaler simulate`: what autoscalers would do under a load, in virtual time.

`podscaler.cli.main` registers the command. `podscaler.simulation.files` reads the scenario,
`podscaler.simulation.engine` runs it; this command prints the result. A new output form: a name in `sync_output.FORMS`,
a SyncWriter there, and a case in `_open_writer`.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypedDict, Unpack

import click

from podscaler.base.errors import UsageError
from podscaler.cli.simulate import run_summary, simulation_report, sync_output
from podscaler.cli.simulate.run_summary import RunSummary, Summaries
from podscaler.cli.simulate.sync_output import CSVWriter, JSONWriter, ParquetWriter, SyncWriter
from podscaler.cli.simulate.timeline import Timeline
from podscaler.explain import explained
from podscaler.simulation import engine, report
from podscaler.simulation.files import file_fields, scenario_file
from podscaler.simulation.files.loads import RangeRequest
from podscaler.simulation.files.scenario_file import ScenarioFile
from podscaler.simulation.model import expectations
from podscaler.simulation.model.expectations import clock_text
from podscaler.simulation.model.results import SimulatedSync
from podscaler.simulation.report import SyncCollector

EXPECTATION_FAILED_STATUS = 1
"""The exit status where an expectation of the scenario failed."""
_CLOCK_TIME = re.compile(r"(?:(\d+):)?(\d+):(\d\d)")
"""`12:15` or `1:02:15` since the start of the scenario."""

EXAMPLE = """\b
Examples:
  podscaler simulate examples/simulation/step.yaml
  podscaler simulate scenario.yaml --report scenario.html
  podscaler simulate scenario.yaml --explain 12:15
  podscaler simulate scenario.yaml -o parquet --out syncs.parquet
"""


class _Options(TypedDict):
    """The remaining flags of the command, as click passes them."""

    every_sync: bool
    explain_at: str | None
    report_file: Path | None


@click.command(epilog=EXAMPLE)
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Choice(sync_output.FORMS), default="table", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="the file to write [default: standard output]")
@click.option("--every-sync", is_flag=True, help="lines of the table for syncs without a change, too")
@click.option("--seed", type=click.IntRange(min=0), help="in place of the scenario's")
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="write a page with plots, and with the explanation of each decision (.json: for the dashboard)",
)
@click.option(
    "--explain", "explain_at", metavar="AT", help="explain the sync at AT (12:15 or 12m15s) in place of any --output"
)
def command(*, scenario: Path, output: str, out: Path | None, seed: int | None, **options: Unpack[_Options]) -> None:
    """Run the SCENARIO file, and print what its autoscalers do.

    The table has a line for each change; the other forms have every sync. The exit status is 1 if an expectation of the
    scenario is not met, with a sentence for each on standard error, and 2 for a file that cannot be used.
    """
    content = scenario_file.read(scenario, seed=seed, range_query=_range_query)
    if options["report_file"] is not None:
        report.ensure_writable(options["report_file"])
    if (explain_at := options["explain_at"]) is not None:
        at_ms = _parse_instant_ms(explain_at)
        if at_ms > content.scenario.duration_ms:
            raise UsageError(
                f"--explain {explain_at} is after the end of the scenario, {clock_text(content.scenario.duration_ms)}"
            )
        click.echo(_explanations(scenario, content, at_ms))
        if options["report_file"] is not None:
            _run(scenario, content, options["report_file"])  # which has the results of expectations
        return
    if output == "parquet" and out is None:
        raise UsageError("Parquet is not a text: name its file, as in --out syncs.parquet")
    with _open_writer(output, out, content, every_sync=options["every_sync"]) as writer:
        failures = _run(scenario, content, options["report_file"], writer)
    for failure in failures:
        click.echo(failure, err=True)
    if failures:
        sys.exit(EXPECTATION_FAILED_STATUS)


def _range_query(request: RangeRequest) -> "list[tuple[float, str]]":
    """As `range_queries.read`, which `podscaler.simulation` gets as a function, as it imports no client."""
    from podscaler.cli.simulate import range_queries  # the client takes a while to import

    return list(range_queries.read(request))


def _simulate(path: Path, content: ScenarioFile) -> Iterator[SimulatedSync]:
    """The syncs of the scenario, which is read from `path`. Raises UsageError if it contradicts itself."""
    try:
        yield from engine.simulate(content.scenario)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def _run(path: Path, content: ScenarioFile, report_file: Path | None, writer: SyncWriter | None = None) -> list[str]:
    """Run the scenario; returns the sentences of expectations that failed. Raises UsageError.

    Without a `writer` the syncs are not written; without a `report_file` there is no report.
    """
    summaries, checks = Summaries(content.scenario.duration_ms), expectations.checks(content.expectations)
    collector = None if report_file is None else SyncCollector()
    for sync in _simulate(path, content):
        if writer is not None:
            writer.add(sync)
        summaries.add(sync)
        if collector is not None:
            collector.add(sync)
        for check in checks:
            check.add(sync)
    check_results = [check.failure() for check in checks]  # empty for an expectation that is met
    failures, run_summaries = [failure for failure in check_results if failure], summaries.finish()
    if writer is not None:
        writer.finish(run_summaries, failures)
    if report_file is not None and collector is not None:
        report.write(report_file, simulation_report.data(path.name, content, collector, run_summaries, check_results))
    return failures


class _TableWriter:
    """Writes the timeline of changes, then the summaries; a `podscaler.cli.simulate.sync_output.SyncWriter`."""

    def __init__(self, stream: IO[str], timeline: Timeline) -> None:
        self._stream = stream
        self._timeline = timeline

    def add(self, sync: SimulatedSync) -> None:
        for line in self._timeline.lines(sync):
            self._stream.write(f"{line}\n")

    def finish(self, summaries: list[RunSummary], failures: list[str]) -> None:
        del failures
        for summary in summaries:
            self._stream.write("\n" + "".join(f"{line}\n" for line in run_summary.lines(summary)))


@contextmanager
def _open_writer(
    output: str, output_file: Path | None, content: ScenarioFile, *, every_sync: bool
) -> Iterator[SyncWriter]:
    """The writer of an output form to a file, or to standard output. Raises UsageError."""
    if output == "parquet" and output_file is not None:
        with ParquetWriter(output_file) as writer:
            yield writer
        return
    with _open_output(output_file) as stream:
        if output == "table":
            has_names = len(content.scenario.autoscalers) > 1
            yield _TableWriter(stream, Timeline(has_names=has_names, shows_all=every_sync))
        elif output == "json":
            yield JSONWriter(stream)
        else:  # csv; `command` has checked that Parquet has a file
            yield CSVWriter(stream)


@contextmanager
def _open_output(output_file: Path | None) -> Iterator[IO[str]]:
    """The file to write to, or standard output. Raises UsageError."""
    if output_file is None:
        yield sys.stdout
        return
    try:
        stream = output_file.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write {output_file}: {error.strerror}") from None
    with stream:
        yield stream


def _parse_instant_ms(instant_text: str) -> int:
    """The instant of `12:15`, `1:02:15`, `12m15s`, or seconds. Raises UsageError."""
    matched = _CLOCK_TIME.fullmatch(instant_text)
    if matched:
        hours, minutes, seconds = (int(number_text or 0) for number_text in matched.groups())
        return ((hours * 60 + minutes) * 60 + seconds) * 1000
    try:
        return int(instant_text) * 1000 if instant_text.isdigit() else file_fields.parse_duration_ms(instant_text)
    except ValueError:
        raise UsageError(f"--explain {instant_text} is not an instant such as 12:15, 12m15s or 735 (seconds)") from None


def _explanations(path: Path, content: ScenarioFile, at_ms: int) -> str:
    """The explanation of the last sync of each autoscaler at or before an instant. Raises UsageError."""
    last_syncs: dict[str, SimulatedSync] = {}
    for sync in _simulate(path, content):
        if sync.at_ms > at_ms:
            break
        last_syncs[sync.autoscaler.spec.key] = sync
    if not last_syncs:
        raise UsageError(
            f"--explain {clock_text(at_ms)} is before the first sync, at {clock_text(content.scenario.first_sync_ms)}"
        )
    explanations = [
        f"At {clock_text(sync.at_ms)}: {explained.text(explained.of_decision(sync.decision))}"
        for sync in last_syncs.values()
    ]
    return "\n\n".join(explanations)
