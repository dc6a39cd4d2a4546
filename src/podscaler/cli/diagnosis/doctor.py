"""`podscaler doctor`: what is wrong with one autoscaler, and what to do about it, the most important first.

`podscaler.cli.main` registers the command; `examination` reads and has the checks. To print a new attribute of
Examination, add it to `_lines`; the JSON output contains every attribute. Exit status: 0 healthy, 1 findings; 2, by
`podscaler.cli.main`, for errors.
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
    ctx: click.Context, /, *, name: str, namespace: str | None, output: str, kubeconfig: str | None, context: str | None
) -> None:
    """Say what is wrong with an autoscaler, and what to do about it.

    Examines its state, its metrics and the APIs behind them, the pods, other writers of the replicas, quotas and nodes,
    recent events, and the lint rules. Works with any controller, and writes nothing. Names what you are not allowed to
    read. Exit status: 0 healthy, 1 findings, 2 wrong use or no cluster.
    """
    from podscaler.cli.diagnosis import examination  # the client takes a while to import
    from podscaler.cli.explain.assumed_controller import AssumedController, StoredHistory
    from podscaler.controller.options.settings import ControllerSettings
    from podscaler.kube.config import locate

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    requested = explain_request.parse_name(name, namespace)
    request = ExplainRequest(name=requested.name, namespace=requested.namespace, kind=requested.kind)
    # used only where the cluster does not show the settings of its controller
    clock, settings = SystemClock(), ControllerSettings()
    history = StoredHistory(settings.settings_namespace, clock)
    controller = AssumedController(settings, history)
    config = locate.find_config(kubeconfig, context)
    examination_result = asyncio.run(examination.examine(config, request, controller, clock))
    click.echo(_json(examination_result) if output == "json" else "\n".join(_lines(examination_result)))
    ctx.exit(0 if examination_result.is_healthy else 1)


def _json(examination_result: "Examination") -> str:
    """The examination as JSON, with the verdict."""
    fields = {**json.loads(msgspec.json.encode(examination_result)), "healthy": examination_result.is_healthy}
    return json.dumps(fields, indent=2, ensure_ascii=False)


def _lines(examination_result: "Examination") -> Iterator[str]:
    """The examination as text: the sentence, the findings with what to do, the facts, and what is not known."""
    reason_text = f": {_printable(examination_result.reason)}" if examination_result.reason else ""
    yield f"{examination_result.autoscaler} is {examination_result.state}{reason_text}."
    if examination_result.summary:
        yield _printable(examination_result.summary)
    yield ""
    if not examination_result.findings:
        yield "Nothing is wrong."
    else:
        yield f"{wording.count(len(examination_result.findings), 'finding')}, the most important first"
    for number, finding in enumerate(examination_result.findings, 1):
        yield f"  {number}. {finding.level}, {finding.area}: {_printable(finding.message)}"
        if finding.fix:
            yield f"     do: {_printable(finding.fix)}"
    for line in explained.section_lines(examination_result.sections):
        yield _printable(line).rstrip()
    if examination_result.notes:
        yield ""
        yield "Not known"
        yield from (f"  {_printable(note)}" for note in examination_result.notes)


def _printable(text: str) -> str:
    """The text without characters that could change the terminal."""
    return text_table.one_line(text)
