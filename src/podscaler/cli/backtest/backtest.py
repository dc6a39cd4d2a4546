"""`podscaler backtest`: what would have happened with another autoscaler.

`podscaler.simulation.evaluation` compares; this command reads the source and the candidates, and prints.
"""

from pathlib import Path
from typing import Any

import click

from podscaler.api.machinery import quantity
from podscaler.base.errors import UsageError
from podscaler.cli.backtest import candidate_options, comparison_output, load_sources
from podscaler.cli.backtest.candidate_options import CandidateRequest
from podscaler.cli.backtest.comparison_output import ComparisonText
from podscaler.cli.backtest.load_sources import SourceRequest
from podscaler.simulation.evaluation import comparison
from podscaler.simulation.files import fields

EXAMPLE = """\b
Examples:
  podscaler backtest web.recording.jsonl.gz --set behavior.scaleDown.stabilizationWindowSeconds=60
  podscaler backtest web.recording.jsonl.gz --hpa shop/web --with candidate.yaml --fixed 6 --cpu-limit 500m
  podscaler backtest scenario.yaml --slo 200ms --from 12h -o json
"""


@click.command(epilog=EXAMPLE)
@click.argument("source")
@click.option("--hpa", default="", metavar="NAMESPACE/NAME", help="the autoscaler, where SOURCE has several")
@click.option("--from", "begin", default="", metavar="TIME", help="the first instant that counts [default: the start]")
@click.option("--to", "end", default="", metavar="TIME", help="the last one [default: the end]")
@click.option("--with", "files", multiple=True, metavar="FILE", help="a manifest of another autoscaler")
@click.option("--set", "assignments", multiple=True, metavar="FIELD=VALUE", help="a candidate with changed fields")
@click.option("--fixed", multiple=True, type=click.IntRange(min=0), metavar="N", help="a fixed count of pods")
@click.option("--knative/--no-knative", default=True, show_default=True, help="compare Knative's algorithm")
@click.option("--hindsight/--no-hindsight", default=True, show_default=True, help="compare perfect foresight")
@click.option("--slo", metavar="DURATION", help="the mean response time to meet, such as 200ms (a load of requests)")
@click.option("--capacity", metavar="CPU", help="what one pod can carry [default: its CPU limit, or else its request]")
@click.option("--cpu-limit", metavar="CPU", help="of one pod; recordings of podscaler have no limits")
@click.option("-o", "--output", type=click.Choice(comparison_output.FORMS), default="table", show_default=True)
def command(source: str, **flags: Any) -> None:
    """Compare autoscalers on the load of SOURCE.

    SOURCE is a recording (`controller --record`; '-': standard input), or a scenario file (.yaml), whose load may be a
    trace.

    All candidates run in the same simulated world. TIME is an instant (2026-01-31T12:00:00Z) of a recording, or a
    duration since the start of a scenario. The options --with and --fixed may be repeated; all of --set are one
    candidate.
    """
    asked = SourceRequest(
        source=source,
        autoscaler=flags["hpa"],
        begin=flags["begin"],
        end=flags["end"],
        cpu_limit_milli=_milli(flags["cpu_limit"], "--cpu-limit"),
    )
    request = CandidateRequest(
        files=[Path(each) for each in flags["files"]],
        assignments=flags["assignments"],
        fixed=flags["fixed"],
        has_knative=flags["knative"],
        has_hindsight=flags["hindsight"],
        slo_ms=_duration_ms(flags["slo"]),
        capacity_milli=_milli(flags["capacity"], "--capacity"),
    )
    found = load_sources.read(asked)
    needed = candidate_options.needs(found, request)
    candidates = candidate_options.candidates(found, request, needed)
    try:
        compared = comparison.compare(found.scenario, candidates, needed)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    written = ComparisonText(comparison=compared, needs=needed, sentences=found.sentences)
    click.echo(comparison_output.text(written, flags["output"]), nl=False)


def _milli(text: str | None, flag: str) -> int | None:
    if text is None:
        return None
    try:
        milli = quantity.parse(text).milli_value()
    except ValueError:
        milli = 0
    if milli <= 0:
        raise UsageError(f"{flag} {text} is not an amount of CPU such as 500m")
    return milli


def _duration_ms(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        found_ms = fields.parse_duration_ms(text)
    except ValueError:
        found_ms = 0
    if found_ms <= 0:
        raise UsageError(f"--slo {text} is not a duration such as 200ms")
    return float(found_ms)
