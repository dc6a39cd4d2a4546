"""Flags of `podscaler controller` for a cluster that has, or had, another controller of autoscalers.

`podscaler.cli.options.controller` puts `standing_in_options` on its command and gives the values to
`parse_standing_in`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from podscaler.controller.coexistence import standby
from podscaler.controller.options.settings import ControllerSettings

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option("--dry-run", is_flag=True, help="decide and report, and write nothing at all"),
    click.option(
        "--compare",
        is_flag=True,
        help="hold decisions against the status that another controller writes, and log where they differ; "
        "implies --dry-run",
    ),
    click.option(
        "--other-controller",
        type=click.Choice(standby.POLICIES),
        default=standby.REFUSE,
        show_default=True,
        help="while another controller writes statuses: write nothing until it is silent, warn, or do not look",
    ),
)


def standing_in_options(command: F) -> F:
    """`command` with the flags; give what they set to `parse_standing_in`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def parse_standing_in(settings: ControllerSettings, options: Mapping[str, Any]) -> ControllerSettings:
    """The settings with what the values of `standing_in_options` (by click's names) mean."""
    return replace(
        settings,
        dry_run=options["dry_run"] or options["compare"],
        compares=options["compare"],
        other_controller=options["other_controller"],
    )
