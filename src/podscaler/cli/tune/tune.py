"""`podscaler tune`: finds a spec that meets goals, and recommends it if it holds on a part that the search did not see.

`podscaler.cli.main` registers the command. The search is `podscaler.simulation.search`; this command reads the source,
shows progress and prints. A new flag: an option of `command`, and an attribute of TuneFlags.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click
import yaml

from podscaler.base.errors import UsageError
from podscaler.cli.backtest import load_sources, source_flags
from podscaler.cli.tune import tune_source

if TYPE_CHECKING:
    from podscaler.cli.tune.tune_output import TunedAutoscaler

NOT_RECOMMENDED_STATUS = 1
"""The exit status where nothing is recommended."""

EXAMPLE = """\b
Examples:
  podscaler tune examples/simulation/day-with-noise.yaml --slo 'under-provisioned<1%'
  podscaler tune web.recording.jsonl.gz --hpa shop/web --cpu-limit 500m --minimize pod-hours --minimize under-amount
  podscaler tune scenario.yaml --slo 'slo-missed<1%' --latency 200ms --minimize pod-hours --minimize scale-changes
"""


class TuneFlags(TypedDict):
    """The flags of the search and of the source, as click passes them; None and empty: not given."""

    limits: Sequence[str]
    minimize: Sequence[str]
    over: str | None
    min_replicas: int | None
    max_replicas: int | None
    latency: str | None
    train: float
    trials: int
    seed: int
    hpa: str
    begin: str
    end: str
    capacity: str | None
    cpu_limit: str | None
    present: str | None
    queries: Sequence[str]
    step: str
    token_file: str | None
    ca_file: str | None


@click.command(epilog=EXAMPLE)
@click.argument("source")
@source_flags.options
@click.option("--slo", "limits", multiple=True, metavar="MEASURE<N", help="a limit, such as under-provisioned<1%")
@click.option(
    "--minimize", multiple=True, metavar="MEASURE", help="what is to be small [default: pod-hours and under-amount]"
)
@click.option("--over", metavar="FIELD,...", help="what may change: min, max, target, up-window, ...")
@click.option("--min-replicas", type=click.IntRange(min=0), help="the least minReplicas that may be tried [default: 1]")
@click.option("--max-replicas", type=click.IntRange(min=1), help="the highest maxReplicas [default: the present one]")
@click.option("--latency", metavar="DURATION", help="the mean response time to meet; requests above it are slo-missed")
@click.option("--train", type=click.FloatRange(0.1, 0.9), default=0.6, show_default=True, help="the first part's share")
@click.option("--trials", type=click.IntRange(1, 100_000), default=1000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="write the recommended manifest, for kubectl apply")
@click.option(
    "--report",
    "report_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="write a page with plots of the candidates and of the pods (.json: for the dashboard)",
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def command(source: str, output: str, out: Path | None, report_file: Path | None, **flags: Unpack[TuneFlags]) -> None:
    """Find a better spec for the autoscaler of SOURCE.

    SOURCE is a recording (`controller --record`; '-': standard input), a scenario file (.yaml), whose load may be a
    trace, or the URL of a Prometheus, as for `podscaler backtest`.

    The search sees the first part of the load (--train); its best candidate is judged on the rest, beside the present
    spec. The exit status is 1 where nothing is recommended, with the reason.

    Without --slo a recommended spec is not worse than the present one in what is minimized, in missing pods
    (under-amount), and with --latency in slo-missed. Ctrl-C ends the search with what was found until then.

    Measures: pod-hours, under-provisioned and over-provisioned (time, in percent), under-amount and over-amount (pods,
    in percent), slo-missed and lost (requests, in percent), scale-changes.
    """
    try:
        import optuna  # noqa: F401 - whether the extra is there
    except ImportError:
        raise UsageError("tune needs the extra simulation: pip install 'podscaler[simulation]'") from None
    from podscaler.cli.tune import tune_report, tune_search
    from podscaler.simulation import report
    from podscaler.simulation.search import goals, space
    from podscaler.simulation.search.search import SearchBudget

    for path in (report_file, out):
        if path is not None:
            report.ensure_writable(path)
    stated_goals = goals.parse(flags["limits"], flags["minimize"], has_slo=flags["latency"] is not None)
    load = load_sources.read(source_flags.source_request(source, flags))
    tunable = tune_source.of_load(
        load,
        slo_ms=source_flags.find_duration_ms(flags["latency"], "--latency", "200ms"),
        capacity_milli=source_flags.find_cpu_milli(flags["capacity"], "--capacity"),
    )
    replicas_min, replicas_max = flags["min_replicas"], flags["max_replicas"]
    bounds = space.ReplicaBounds(
        1 if replicas_min is None else replicas_min, tunable.wire.max_replicas if replicas_max is None else replicas_max
    )
    over = flags["over"]
    dimensions = space.DEFAULT_DIMENSIONS if over is None else [name.strip() for name in over.split(",")]
    tuned = tune_search.tune(
        tunable,
        space.SearchSpace(tunable.wire, dimensions, bounds),
        stated_goals,
        SearchBudget(flags["trials"], flags["seed"]),
        share=flags["train"],
        on_progress=_progress_printer(flags["trials"]),
    )
    _print_result(tuned, output, out)
    if report_file is not None:
        report.write(report_file, tune_report.data(tuned, tunable))
    if tuned.manifest is None:
        sys.exit(NOT_RECOMMENDED_STATUS)


def _progress_printer(trials: int) -> Callable[[int], None]:
    """A function that shows on a terminal how many of `trials` candidates were tried."""

    def show(trials_done: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{trials_done} of {trials} candidates", err=True, nl=trials_done >= trials)

    return show


def _print_result(tuned: "TunedAutoscaler", output: str, manifest_file: Path | None) -> None:
    """Print the result in a form of `--output`, and write the recommended manifest to `--out`. Raises UsageError."""
    from podscaler.cli.tune import tune_output

    if output == "json":
        click.echo(json.dumps(tune_output.as_json(tuned), indent=2))
    elif output == "yaml":
        click.echo(yaml.safe_dump(json.loads(json.dumps(tune_output.as_json(tuned))), sort_keys=False), nl=False)
    else:
        for line in tune_output.table(tuned):
            click.echo(line)
    if manifest_file is not None and tuned.manifest is not None:
        try:
            manifest_file.write_text(tune_output.manifest_text(tuned), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {manifest_file}: {error.strerror}") from None
