"""`podscaler doctor`: what is wrong with one autoscaler, and what to do about it, the most important first.

`examination` reads and judges; this module prints. Exit status: 0 healthy, 1 findings; 2 by `podscaler.cli.main` for
wrong use or no cluster.
"""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from podscaler.base.clock import SystemClock
from podscaler.cli.diagnosis import text_table
from podscaler.cli.explain import explain_request
from podscaler.cli.explain.explain_request import ExplainRequest
from podscaler.cli.options.flags import kubeconfig_options
from podscaler.explain import explained, wording

if TYPE_CHECKING:
    from podscaler.cli.diagnosis.examination import Examination

EXAMPLE = """\b
Examples:
  podscaler doctor web -n shop
  podscaler doctor podautoscaler/web -n shop -o json
  kubectl podscaler doctor shop/web
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", metavar="[NAMESPACE/][KIND/]NAME")
@click.option("-n", "--namespace", metavar="NAMESPACE", help="of the autoscaler  [default: the context's]")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@kubeconfig_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    name: str,
    namespace: str | None,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Say what is wrong with an autoscaler, and what to do about it.

    Examines its state, its metrics and the APIs behind them, the pods, other writers of the replicas, quotas and nodes,
    recent events, and the lint rules. Works with any controller, and writes nothing. Names what you are not allowed to
    read. Exit status: 0 healthy, 1 findings, 2 wrong use or no cluster.
    """
    from podscaler.cli.diagnosis import examination  # the client takes a while to import
    from podscaler.cli.explain import explain_cluster
    from podscaler.controller.options.settings import ControllerSettings
    from podscaler.kube.config import locate

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    named = explain_request.parse_name(name, namespace)
    request = ExplainRequest(name=named.name, namespace=named.namespace, kind=named.kind)
    # the settings of the cluster's controller are not readable: its defaults are assumed, as by `explain`
    clock, settings = SystemClock(), ControllerSettings()
    history = explain_cluster.StoredHistory(settings.settings_namespace, clock)
    controller = explain_cluster.AssumedController(settings, history)
    config = locate.find_config(kubeconfig, context)
    examined = asyncio.run(examination.examine(config, request, controller, clock))
    click.echo(_json(examined) if output == "json" else "\n".join(_lines(examined)))
    ctx.exit(0 if examined.is_healthy else 1)


def _json(examined: "Examination") -> str:
    fields = {**json.loads(msgspec.json.encode(examined)), "healthy": examined.is_healthy}
    return json.dumps(fields, indent=2, ensure_ascii=False)


def _lines(examined: "Examination") -> Iterator[str]:
    """The examination as text: the sentence, the findings with what to do, the facts, and what is not known."""
    yield f"{examined.autoscaler} is {examined.state}{f': {_shown(examined.reason)}' if examined.reason else ''}."
    if examined.summary:
        yield _shown(examined.summary)
    yield ""
    if not examined.findings:
        yield "Nothing is wrong."
    else:
        yield f"{wording.count(len(examined.findings), 'finding')}, the most important first"
    for number, finding in enumerate(examined.findings, 1):
        yield f"  {number}. {finding.level}, {finding.area}: {_shown(finding.message)}"
        if finding.fix:
            yield f"     do: {_shown(finding.fix)}"
    for line in explained.section_lines(examined.sections):
        yield _shown(line).rstrip()
    if examined.notes:
        yield ""
        yield "Not known"
        yield from (f"  {_shown(note)}" for note in examined.notes)


def _shown(text: str) -> str:
    """The text without characters that could change the terminal."""
    return text_table.one_line(text)
