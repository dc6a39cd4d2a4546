"""`podscaler completion`: what a shell has to read so that it completes commands and flags; and the same for kubectl.

The scripts are click's: the shell asks the program itself, so they need not be renewed. kubectl asks a program named
`kubectl_complete-podscaler` with the words before the cursor and the one being typed.

Source: kubectl's plugins (`kubectl_complete-PLUGIN`), which read cobra's form: a line `WORD<TAB>HELP` for each
proposal, then `:` and what the shell may do besides.
"""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

PROGRAM = "podscaler"
VARIABLE = "_PODSCALER_COMPLETE"
SHELLS = ("bash", "fish", "zsh")

FILES_TOO = 0
NO_FILES = 4
"""Cobra's ShellCompDirective: whether the shell proposes files where there is no proposal of ours."""


@click.command(
    epilog="Example: source <(podscaler completion bash)  (zsh: the same; fish: podscaler completion fish | source)"
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print what SHELL has to read to complete commands and flags."""
    completer = get_completion_class(shell)
    if completer is None:
        raise AssertionError(f"click does not know {shell}")
    root = ctx.find_root().command
    click.echo(completer(root, {}, PROGRAM, VARIABLE).source())


def answer_kubectl(root: click.Command, words: Sequence[str]) -> None:
    """Print proposals for the last of `words`, which is being typed and may be empty."""
    *before, typed = words or [""]
    items = ShellComplete(root, {}, PROGRAM, VARIABLE).get_completions(list(before), typed)
    sys.stdout.writelines(_line(item) for item in items if item.type == "plain")
    is_file = any(item.type in {"file", "dir"} for item in items)
    sys.stdout.write(f":{FILES_TOO if is_file else NO_FILES}\n")


def _line(item: CompletionItem) -> str:
    return f"{item.value}\t{item.help}\n" if item.help else f"{item.value}\n"
