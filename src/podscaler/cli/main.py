"""The command `podscaler`: its list of subcommands, loaded one at a time so that starting stays fast."""

from importlib import import_module

import click
from click.shell_completion import CompletionItem

from podscaler.base.errors import PodscalerError
from podscaler.base.version import __version__

COMMANDS = {
    "backup": ("podscaler.cli.commands.backup", "a cluster of `up` as one file, while it runs"),
    "completion": ("podscaler.cli.commands.completion", "what a shell has to read to complete commands and flags"),
    "controller": (
        "podscaler.cli.options.controller",
        "the autoscaler against a cluster, in place of the built-in one",
    ),
    "convert": ("podscaler.cli.commands.convert", "autoscalers between all versions of their API"),
    "crd": ("podscaler.cli.commands.crd", "the definition of PodAutoscaler, the custom resource"),
    "demo": ("podscaler.cli.demo.demo", "watch a web service being scaled up and down, with the reasons"),
    "explain": ("podscaler.cli.explain.explain", "why an autoscaler has, or had, this many replicas"),
    "lint": ("podscaler.cli.lint.lint", "what is wrong or dangerous in manifests, or live in a cluster"),
    "migrate": (
        "podscaler.cli.commands.migrate",
        "a HorizontalPodAutoscaler becomes a PodAutoscaler, or the other way round",
    ),
    "replay": ("podscaler.cli.commands.replay", "decisions for recorded syncs"),
    "restore": ("podscaler.cli.commands.restore", "a cluster of `up` out of a backup"),
    "up": ("podscaler.cli.up.up", "a whole control plane on this machine, with real processes as pods"),
}


class LazyGroup(click.Group):
    """Subcommands from COMMANDS; each module has its click command under the name `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in alphabetical order."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, imported now; None where there is none."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of subcommands, without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The subcommands that begin like this, without importing them, and the flags."""
        found = [
            CompletionItem(name, help=COMMANDS[name][1]) for name in sorted(COMMANDS) if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; what the user got wrong becomes one sentence and exit status 2."""
        try:
            return super().invoke(ctx)
        except PodscalerError as error:
            click.echo(f"podscaler: {error}", err=True)
            ctx.exit(2)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="podscaler")
def cli() -> None:
    """A Kubernetes HorizontalPodAutoscaler that explains its decisions, and a control plane to see it at work."""
