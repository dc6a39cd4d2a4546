"""The command `podscaler`: its subcommands, each imported when it runs, and shell completion.

`podscaler.__main__` runs `cli`. A new subcommand: add its module, which has a click command named `command`, to
COMMANDS. The completion scripts are click's: the shell runs the program itself for proposals, so they need not be
renewed. kubectl runs a program named `kubectl_complete-podscaler` with the words before the cursor and the one being
typed.

Source: kubectl's plugins (`kubectl_complete-PLUGIN`), which read cobra's form: a line `WORD<TAB>HELP` for each
proposal, then `:` and a ShellCompDirective.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from podscaler.base.errors import PodscalerError
from podscaler.base.version import __version__

COMMANDS = {
    "adapter": ("podscaler.cli.commands.adapter", "custom, external and resource metrics from Prometheus"),
    "backtest": ("podscaler.cli.backtest.backtest", "what would have happened with another autoscaler"),
    "backup": ("podscaler.cli.commands.backup", "a cluster of `up` as one file, while it runs"),
    "completion": ("podscaler.cli.main:completion", "what a shell has to read to complete commands and flags"),
    "controller": (
        "podscaler.cli.commands.controller",
        "the autoscaler against a cluster, in place of the built-in one",
    ),
    "convert": ("podscaler.cli.commands.convert", "autoscalers between all versions of their API"),
    "crd": ("podscaler.cli.commands.crd", "the definition of PodAutoscaler, the custom resource"),
    "dashboard": ("podscaler.cli.dashboard.dashboard", "the autoscalers of a cluster in a browser"),
    "demo": ("podscaler.cli.demo.demo", "watch a workload being scaled up and down, with the reasons"),
    "doctor": ("podscaler.cli.diagnosis.doctor", "what is wrong with an autoscaler, and what to do about it"),
    "explain": ("podscaler.cli.explain.explain", "why an autoscaler has, or had, this many replicas"),
    "lint": ("podscaler.cli.lint.lint", "what is wrong or dangerous in manifests, or live in a cluster"),
    "list": ("podscaler.cli.diagnosis.list_autoscalers", "all autoscalers with what they do, or those with a problem"),
    "migrate": (
        "podscaler.cli.commands.migrate",
        "a HorizontalPodAutoscaler becomes a PodAutoscaler, or the other way round",
    ),
    "record": ("podscaler.cli.commands.record", "the facts of every sync of a cluster's autoscalers, for later"),
    "replay": ("podscaler.cli.commands.replay", "decisions for recorded syncs"),
    "restore": ("podscaler.cli.commands.backup:restore", "a cluster of `up` out of a backup"),
    "simulate": ("podscaler.cli.simulate.simulate", "what autoscalers would do under a load, in virtual time"),
    "timeline": ("podscaler.cli.diagnosis.timeline", "what happened to an autoscaler, in order"),
    "top": ("podscaler.cli.top.top", "all autoscalers in the terminal, with plots and explanations"),
    "tune": ("podscaler.cli.tune.tune", "find a better spec for an autoscaler, judged on a later part of its load"),
    "up": ("podscaler.cli.up.up", "a whole control plane on this machine, with real processes as pods"),
}
"""The module of each subcommand (after a colon the function, if that is not `command`), and its line in the help."""
PROGRAM = "podscaler"
COMPLETE_VARIABLE = "_PODSCALER_COMPLETE"
"""The environment variable by which click's completion scripts request proposals."""
SHELLS = ("bash", "fish", "zsh")

DIRECTIVE_DEFAULT = 0
DIRECTIVE_NO_FILES = 4
"""Values of cobra's ShellCompDirective: whether the shell proposes file names if there is no other proposal."""


class LazyGroup(click.Group):
    """The subcommands of COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in alphabetical order."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, imported now; None if there is none."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        target, _ = COMMANDS[cmd_name]
        module_name, _, function_name = target.partition(":")
        command = getattr(_import_without_gc(module_name), function_name or "command")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of subcommands, without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in sorted(COMMANDS.items())])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The subcommands that begin with `incomplete`, without importing them, and the flags."""
        subcommands = [
            CompletionItem(name, help=help_line)
            for name, (_, help_line) in sorted(COMMANDS.items())
            if name.startswith(incomplete)
        ]
        return [*subcommands, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; a PodscalerError, such as a wrong flag, becomes one sentence and exit status 2."""
        try:
            return super().invoke(ctx)
        except PodscalerError as error:
            click.echo(f"podscaler: {error}", err=True)
            ctx.exit(2)


def _import_without_gc(name: str) -> ModuleType:
    """The module of that name, imported without garbage collection.

    What an import creates stays, so that collections would find nothing, and take a tenth of the time.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if is_enabled:
            gc.enable()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="podscaler")
def cli() -> None:
    """A Kubernetes HorizontalPodAutoscaler that explains its decisions, and a control plane to see it at work."""


@click.command(
    epilog="Example: source <(podscaler completion bash)  (zsh: the same; fish: podscaler completion fish | source)"
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what SHELL has to read to complete commands and flags."""
    completer = get_completion_class(shell)
    if completer is None:
        raise AssertionError(f"click does not know {shell}")
    root = ctx.find_root().command
    click.echo(completer(root, {}, PROGRAM, COMPLETE_VARIABLE).source())


def print_kubectl_proposals(root: click.Command, words: Sequence[str]) -> None:
    """Print proposals for the last of `words`, which is being typed and may be empty, in cobra's form."""
    *earlier_words, typed = words or [""]
    proposals = ShellComplete(root, {}, PROGRAM, COMPLETE_VARIABLE).get_completions(list(earlier_words), typed)
    sys.stdout.writelines(_proposal_line(proposal) for proposal in proposals if proposal.type == "plain")
    proposes_files = any(proposal.type in {"file", "dir"} for proposal in proposals)
    sys.stdout.write(f":{DIRECTIVE_DEFAULT if proposes_files else DIRECTIVE_NO_FILES}\n")


def _proposal_line(proposal: CompletionItem) -> str:
    return f"{proposal.value}\t{proposal.help}\n" if proposal.help else f"{proposal.value}\n"
