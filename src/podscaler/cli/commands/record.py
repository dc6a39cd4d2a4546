"""`podscaler record`: the facts of every sync of a cluster's autoscalers into a recording, without writing anything.

`podscaler.cli.main` registers the command. It is `podscaler controller --dry-run --record FILE`, with all of that
command's flags.
"""

from collections.abc import Sequence

import click

EXAMPLE = """\b
Examples:
  podscaler record cluster.recording.jsonl.gz
  kubectl podscaler record cluster.recording.jsonl.gz --record-max-size=16Mi
"""


@click.command(epilog=EXAMPLE, context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path())
@click.argument("flags", metavar="[FLAG]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, *, file: str, flags: Sequence[str]) -> None:
    """Record the facts of every sync of a cluster's autoscalers, until Ctrl-C.

    Decides beside the cluster's own controller, and writes nothing to the cluster. FLAG is any flag of `podscaler
    controller`. `podscaler replay`, `explain --recording`, `timeline --recording` and `backtest` read FILE
    (docs/recordings.md).
    """
    from podscaler.cli.commands import controller  # the controller takes a while to import

    arguments = ["--dry-run", "--record", file, *flags]
    with controller.command.make_context(ctx.info_name, arguments, parent=ctx.parent) as controller_context:
        controller.command.invoke(controller_context)
