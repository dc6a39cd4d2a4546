"""`podscaler migrate`: replaces a HorizontalPodAutoscaler by a PodAutoscaler, or the reverse.

`podscaler.cli.main` registers the command. Flags and messages are here; `podscaler.controller.coexistence.migration`
does the steps of one migration. A new flag is an attribute of its MigrationTerms.
"""

import asyncio
import sys
from typing import Any

import click

from podscaler.base.clock import NANOSECONDS, SystemClock
from podscaler.base.errors import StatusError, UsageError
from podscaler.base.version import __version__
from podscaler.cli.options.cluster_connection import ConnectionOptions, parse_connection
from podscaler.cli.options.flags import DURATION, NAMESPACE, kubeconfig_options
from podscaler.controller.coexistence import managing_controllers
from podscaler.controller.coexistence.migration import MigrationTerms, Migrator
from podscaler.controller.history import history_maps
from podscaler.controller.options import installation
from podscaler.controller.options.autoscaler_kinds import HPA, NAMES, POD_AUTOSCALER

USER_AGENT = f"{installation.MIGRATION}/{__version__} ({sys.platform})"


@click.command(epilog="Example: podscaler migrate hpa web -n shop")
@click.argument("kind", type=click.Choice(sorted(NAMES)), metavar="hpa|podautoscaler")
@click.argument("name", required=False)
@click.option("-n", "--namespace", metavar="NAMESPACE", help="default: the context's")
@click.option("-A", "--all-namespaces", is_flag=True, help="with --all: those of every namespace")
@click.option("--all", "is_all", is_flag=True, help="all of the namespace, one after the other")
@click.option("--dry-run", is_flag=True, help="print what would be done")
@click.option(
    "--timeout",
    type=DURATION,
    default="30s",
    show_default=True,
    help="how long to wait for the event of the controller of PodAutoscalers that it is ready; 0: do not wait",
)
@click.option("--history-namespace", type=NAMESPACE, default=history_maps.NAMESPACE, show_default=True)
@kubeconfig_options
def command(*, kind: str, name: str | None, namespace: str | None, all_namespaces: bool, **options: Any) -> None:
    """A HorizontalPodAutoscaler becomes a PodAutoscaler, or the other way round.

    The first argument is the present kind. Labels, annotations, owners, status and history are carried over; the object
    is deleted when a controller manages the new one. An interrupted migration continues when it is repeated. Before a
    HorizontalPodAutoscaler is made, a warning is printed if no controller seems to manage such objects.
    """
    if options["is_all"] == (name is not None):
        raise UsageError("give the NAME of an autoscaler, or --all")
    if all_namespaces and not options["is_all"]:
        raise UsageError("--all-namespaces needs --all")
    source_kind = NAMES[kind]
    terms = MigrationTerms(
        source_kind=source_kind,
        target_kind=POD_AUTOSCALER if source_kind is HPA else HPA,
        is_dry_run=options["dry_run"],
        ready_timeout_s=options["timeout"] / NANOSECONDS,
        history_namespace=options["history_namespace"],
    )
    connection = parse_connection(kubeconfig=options["kubeconfig"], context=options["context"])
    chosen_namespace = "" if all_namespaces else namespace or connection.config.namespace
    try:
        asyncio.run(_run(connection, terms, chosen_namespace, name))
    except StatusError as error:
        raise UsageError(str(error)) from None


async def _run(connection: ConnectionOptions, terms: MigrationTerms, namespace: str, name: str | None) -> None:
    """Migrate an autoscaler; `name` None: all; `namespace` empty: of every one. Raises UsageError, StatusError."""
    clock = SystemClock()
    open_client = connection.open_reader if terms.is_dry_run else connection.open_client
    client = await open_client(clock, user_agent=USER_AGENT)
    try:
        if terms.target_kind is HPA and (doubt := await managing_controllers.find_doubt(client, clock)):
            click.echo(f"podscaler: warning: {doubt}", err=True)
        migrator = Migrator(client, clock, terms, click.echo)
        if name is not None:
            await migrator.migrate(namespace, name)
        else:
            await _migrate_all(migrator, namespace)
        await migrator.remove_annotations()
    finally:
        await client.close()


async def _migrate_all(migrator: Migrator, namespace: str) -> None:
    """Migrate all autoscalers, and print the failures. Raises UsageError at the end if there were any, StatusError."""
    keys = await migrator.list_names(namespace)
    failures = 0
    for key in keys:
        try:
            await migrator.migrate(*key)
        except (UsageError, StatusError) as error:
            failures += 1
            click.echo(f"podscaler: {error}", err=True)
    if failures:
        await migrator.remove_annotations()
        raise UsageError(f"{failures} of {len(keys)} were not migrated")
