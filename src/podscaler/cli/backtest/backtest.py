"""`podscaler backtest`: what would have happened with another autoscaler.

`podscaler.cli.main` registers the command. `podscaler.simulation.evaluation` compares; this command reads the source
and the candidates, and prints. With `--fleet`, `podscaler.cli.fleet` does all of that. A new flag is read in
`_compare`, in `_parse_fleet_flags`, or in both: see `_FLEET_FLAGS` and `_SINGLE_FLAGS`.
"""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from podscaler.base.errors import UsageError
from podscaler.cli.backtest import candidate_options, comparison_output, comparison_report, load_sources, source_flags
from podscaler.cli.backtest.candidate_options import CandidateRequest
from podscaler.cli.backtest.comparison_output import BacktestResult
from podscaler.cli.fleet import fleet_flags, fleet_run
from podscaler.cli.fleet.fleet_flags import FleetFlags
from podscaler.simulation import report
from podscaler.simulation.evaluation import comparison

EXAMPLE = """\b
Examples:
  podscaler backtest web.recording.jsonl.gz --set behavior.scaleDown.stabilizationWindowSeconds=60
  podscaler backtest web.recording.jsonl.gz --hpa shop/web --with candidate.yaml --fixed 6 --cpu-limit 500m
  podscaler backtest scenario.yaml --slo 200ms --from 12h -o json
  podscaler backtest --fleet recordings/*.jsonl.gz --vary metrics[0].target.averageUtilization=50,60,70 --out results
  podscaler backtest http://prometheus:9090 --present hpa.yaml --from 2026-01-31T00:00:00Z --to 2026-02-01T00:00:00Z
"""


_FLEET_FLAGS = ("out", "workers", "worker_memory", "scheduler", "vary", "synthetic")
"""The flags, by click's names, that need `--fleet`."""
_SINGLE_FLAGS = frozenset(
    {"hpa", "files", "present", "queries", "step", "token_file", "ca_file", "report", "knative_concurrency"}
)
"""The flags that `--fleet` excludes. A flag of neither collection is for both."""


@click.command(epilog=EXAMPLE)
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@source_flags.options
@click.option("--with", "files", multiple=True, metavar="FILE", help="a manifest of another autoscaler")
@click.option("--set", "assignments", multiple=True, metavar="FIELD=VALUE", help="a candidate with changed fields")
@click.option("--fixed", multiple=True, type=click.IntRange(min=0), metavar="N", help="a fixed count of pods")
@click.option("--knative/--no-knative", default=True, show_default=True, help="compare Knative's algorithm")
@click.option(
    "--knative-concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="compare Knative with a target of N requests at once in a pod, too (a load of requests)",
)
@click.option("--hindsight/--no-hindsight", default=True, show_default=True, help="compare perfect foresight")
@click.option("--slo", metavar="DURATION", help="the mean response time to meet, such as 200ms (a load of requests)")
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    metavar="FILE.html",
    help="a page with plots (.json: for the dashboard)",
)
@click.option("-o", "--output", type=click.Choice(comparison_output.FORMS), default="table", show_default=True)
@fleet_flags.options
@click.pass_context
def command(context: click.Context, /, sources: tuple[str, ...], **flags: Any) -> None:
    """Compare autoscalers on the load of SOURCE.

    SOURCE is a recording (`controller --record`; '-': standard input), a scenario file (.yaml), whose load may be a
    trace, or the URL of a Prometheus.

    All candidates run in the same simulated world. TIME is an instant (2026-01-31T12:00:00Z), or a duration
    since the start of a scenario. The options --with and --fixed may be repeated; all of --set are one
    candidate. With --fleet all autoscalers of several recordings are compared.
    """
    if flags["fleet"]:
        given_flags = {name for name in flags if context.get_parameter_source(name) != ParameterSource.DEFAULT}
        fleet_run.run(_parse_fleet_flags(sources, flags, given_flags))
        return
    for name in _FLEET_FLAGS:
        if flags[name]:
            raise UsageError(f"{fleet_flags.flag(name)} needs --fleet")
    if len(sources) != 1:
        raise UsageError("one SOURCE is needed; several recordings are compared with --fleet")
    _compare(sources[0], flags)


def _parse_fleet_flags(sources: Sequence[str], flags: Mapping[str, Any], given_flags: Set[str]) -> FleetFlags:
    """The flags of a fleet. Raises UsageError for flags of a single autoscaler, wrong values, and without `--out`."""
    if wrong_flags := sorted(given_flags & _SINGLE_FLAGS):
        raise UsageError(f"{fleet_flags.flag(wrong_flags[0])} is not for fleets")
    if flags["out"] is None:
        raise UsageError("--fleet needs --out DIR")
    return FleetFlags(
        recordings=[Path(source) for source in sources],
        synthetic=flags["synthetic"] or 0,
        out=Path(flags["out"]),
        workers=flags["workers"] or fleet_flags.DEFAULT_WORKERS,
        memory=flags["worker_memory"] or fleet_flags.DEFAULT_WORKER_MEMORY,
        scheduler=flags["scheduler"] or "",
        vary=flags["vary"],
        assignments=flags["assignments"],
        fixed=flags["fixed"],
        has_knative="knative" in given_flags and flags["knative"],  # by default only for a single autoscaler
        has_hindsight="hindsight" in given_flags and flags["hindsight"],
        slo_ms=source_flags.find_duration_ms(flags["slo"], "--slo", "200ms"),
        capacity_milli=source_flags.find_cpu_milli(flags["capacity"], "--capacity"),
        cpu_limit_milli=source_flags.find_cpu_milli(flags["cpu_limit"], "--cpu-limit"),
        from_ns=load_sources.instant_ns(flags["begin"], "--from") if flags["begin"] else None,
        to_ns=load_sources.instant_ns(flags["end"], "--to") if flags["end"] else None,
        form=flags["output"],
    )


def _compare(source: str, flags: Mapping[str, Any]) -> None:
    """Compare the candidates for one autoscaler, and print; `flags` are values by click's names. Raises UsageError."""
    if flags["report"] is not None:
        report.ensure_writable(Path(flags["report"]))
    request = CandidateRequest(
        files=[Path(file) for file in flags["files"]],
        assignments=flags["assignments"],
        fixed=flags["fixed"],
        has_knative=flags["knative"],
        has_hindsight=flags["hindsight"],
        knative_concurrency=flags["knative_concurrency"],
        slo_ms=source_flags.find_duration_ms(flags["slo"], "--slo", "200ms"),
        capacity_milli=source_flags.find_cpu_milli(flags["capacity"], "--capacity"),
    )
    load = load_sources.read(source_flags.source_request(source, flags))
    needed = candidate_options.needs(load, request)
    candidates = candidate_options.candidates(load, request, needed)
    try:
        compared = comparison.compare(load.scenario, candidates, needed)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    backtest_result = BacktestResult(comparison=compared, needs=needed, sentences=load.sentences)
    click.echo(comparison_output.text(backtest_result, flags["output"]), nl=False)
    if flags["report"] is not None:
        report.write(
            Path(flags["report"]),
            comparison_report.data(source.rpartition("/")[2] or source, backtest_result, load.scenario),
        )
