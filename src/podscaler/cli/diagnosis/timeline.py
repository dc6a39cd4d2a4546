"""`podscaler timeline`: what happened to an autoscaler, in order: its recorded decisions, or what the cluster shows.

`podscaler.cli.main` registers the command. It reads a recording (`recorded_timeline`) or a cluster
(`cluster_timeline`), and prints a table (`_cells` has the columns) or JSON; with `--follow` it goes on with what the
watches yield, in JSON an entry a line.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING

import click
import msgspec

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS, SystemClock
from podscaler.base.errors import UsageError
from podscaler.cli.diagnosis import recorded_timeline, text_table, timeline_entries
from podscaler.cli.diagnosis.timeline_entries import EntryKind, TimelineEntry
from podscaler.cli.explain import explain_request
from podscaler.cli.explain.explain_request import ExplainRequest
from podscaler.cli.options.flags import DURATION, kubeconfig_options
from podscaler.explain import wording

if TYPE_CHECKING:
    from podscaler.cli.diagnosis.cluster_timeline import AutoscalerTimeline
    from podscaler.kube.transport.config import Config

INTERRUPTED_STATUS = 130
"""The exit status after SIGINT, as of a shell."""
EXAMPLE = """\b
Examples:
  podscaler timeline web -n shop --since 30m
  podscaler timeline web -n shop --follow
  podscaler timeline --recording web.recording.jsonl.gz --since 2h
  kubectl podscaler timeline shop/web -o json
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", metavar="[[NAMESPACE/][KIND/]NAME]", required=False)
@click.option("-n", "--namespace", metavar="NAMESPACE", help="of the autoscaler  [default: the context's, or any]")
@click.option(
    "--since", type=DURATION, default="1h", show_default=True, help="how far back; from the end of a recording"
)
@click.option("--recording", metavar="FILE|DIR", help="a recording, or a folder of them ('-': standard input)")
@click.option("--follow", is_flag=True, help="go on with what happens from now on")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@kubeconfig_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    name: str | None,
    namespace: str | None,
    since: int,
    follow: bool,
    output: str,
    **source: str | None,
) -> None:
    """Show what happened to an autoscaler, in order, with how long it lasted and why.

    With --recording these are its decisions; else events, transitions of conditions, rollouts and changes of fields, as
    far as the cluster still has them. Works with any controller, and writes nothing.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    requested = explain_request.parse_name(name, namespace)
    request = ExplainRequest(name=requested.name, namespace=requested.namespace, kind=requested.kind)
    if since <= 0:
        raise UsageError("--since must be a time that lies back, such as 30m")
    recording = source["recording"]
    if recording is not None:
        if follow or source["kubeconfig"] or source["context"]:
            raise UsageError("--recording goes with no --follow, --kubeconfig, --context: it reads no cluster")
        click.echo(_timeline_text(_read_recording(recording, request, since), output))
        return
    from podscaler.kube.config import locate  # the client takes a while to import

    config = locate.find_config(source["kubeconfig"], source["context"])
    try:
        asyncio.run(_print_cluster(config, request, since_ns=since, follow=follow, output=output))
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED_STATUS)


def _read_recording(path: str, request: ExplainRequest, since_ns: int) -> "AutoscalerTimeline":
    """The timeline up to the last recorded sync. Raises UsageError."""
    from podscaler.cli.diagnosis.cluster_timeline import AutoscalerTimeline

    track = recorded_timeline.read(path, request)
    to_ns = track.points[-1].at_ns
    from_ns = to_ns - since_ns
    points = [point for point in track.points if point.at_ns >= from_ns]
    return AutoscalerTimeline(
        track.autoscaler, from_ns, to_ns, timeline_entries.in_order(track.entries, from_ns), points
    )


async def _print_cluster(
    config: "Config", request: ExplainRequest, *, since_ns: int, follow: bool, output: str
) -> None:
    """Print the timeline of a cluster; with `follow`, new entries as they come. Raises UsageError."""
    from podscaler.cli.diagnosis import cluster_timeline

    timeline_parts = cluster_timeline.timelines(config, request, SystemClock(), since_ns=since_ns, follow=follow)
    is_first = True
    async with aclosing(timeline_parts):
        async for timeline_part in timeline_parts:
            if follow and output == "json":
                for entry in timeline_part.entries:
                    click.echo(msgspec.json.encode(entry))
            else:
                click.echo(_timeline_text(timeline_part, output) if is_first else "\n".join(_rows(timeline_part)))
            is_first = False


def _timeline_text(timeline: "AutoscalerTimeline", output: str) -> str:
    """The timeline in the output format: `json` or text."""
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(timeline), indent=2).decode()
    return "\n".join(_lines(timeline))


def _lines(timeline: "AutoscalerTimeline") -> Iterator[str]:
    """The timeline as text: its range, the plot of a recording, a line for each entry."""
    yield f"{timeline.autoscaler}, {instants.text(timeline.from_)} to {instants.text(timeline.to)}"
    plot = list(recorded_timeline.plot(timeline.points))
    if plot:
        yield from ("", *plot)
    yield ""
    yield from _rows(timeline) if timeline.entries else ["nothing is known to have happened in this time"]
    if timeline.notes:
        yield from ("", *(text_table.one_line(note) for note in timeline.notes))


def _rows(timeline: "AutoscalerTimeline") -> Iterable[str]:
    """One line for each entry: when, for how long, of which kind, what happened."""
    return text_table.lines([_cells(entry, timeline.to) for entry in timeline.entries])


def _cells(entry: TimelineEntry, now_ns: int) -> list[str]:
    """The cells of an entry: instant, duration, kind, text; a condition lasts since its latest transition."""
    duration = "" if entry.until is None else f"for {wording.span(entry.until - entry.at)}"
    if entry.kind is EntryKind.CONDITION and now_ns - entry.at >= NANOSECONDS:
        duration = f"so far {wording.span(now_ns - entry.at)}"
    is_event = entry.kind is EntryKind.EVENT and entry.times > 1
    times = f" ({entry.times} times)" if is_event else ""
    subject = "" if entry.kind is EntryKind.DECISION else entry.subject
    return [instants.text(entry.at), duration, entry.kind, f"{subject} {entry.text}{times}".strip()]
