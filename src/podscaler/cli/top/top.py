"""`podscaler top`: the autoscalers of a cluster in the terminal.

`podscaler.cli.main` registers the command. It decides as the controller would, by a `ClusterWatch`, and shows that in a
TopApp (`_run_program`); `--once` prints the list (`_print_once`). A new flag of the list is an attribute of ListView.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from podscaler.base.clock import SystemClock
from podscaler.base.errors import UsageError
from podscaler.base.version import __version__
from podscaler.cli.dashboard.cluster_watch import ClusterWatch, WatchOptions, given_flags
from podscaler.cli.options import settings as flags
from podscaler.cli.options.cluster_connection import parse_connection
from podscaler.cli.options.flags import kubeconfig_options
from podscaler.cli.top import list_rows
from podscaler.cli.top.list_rows import ListView
from podscaler.kube.client.connect import NamespacedTransport
from podscaler.observe.views import Notice

if TYPE_CHECKING:
    from podscaler.observe.live_cluster import LiveCluster

HISTORY_MAX_BYTES = 64 * 1024 * 1024
"""The memory for decisions."""
LIST_TIMEOUT_S = 30.0
POLL_PERIOD_S = 0.1
"""How often `--once` checks whether the list is complete."""
NO_RECORD = {"record": None, "record_max_size": 0, "record_max_files": 1}
"""The values of the flags of recordings, which this command does not have and a ClusterWatch reads."""

EXAMPLE = """\b
Examples:
  podscaler top
  podscaler top -n shop --problems
  kubectl podscaler top --context production
  podscaler top --once
"""


@click.command(epilog=EXAMPLE)
@click.option("-n", "--namespace", default="", metavar="NAMESPACE", help="read only this namespace  [default: all]")
@click.option("--problems", is_flag=True, help="problems only")
@click.option(
    "--sort", type=click.Choice(list(list_rows.ORDERS)), default="problems", show_default=True, help="the first order"
)
@click.option("--once", is_flag=True, help="print the list as text, and end")
@kubeconfig_options
@flags.decision_options
@click.pass_context
def command(ctx: click.Context, /, *, namespace: str, problems: bool, sort: str, once: bool, **options: Any) -> None:
    """Show the autoscalers of a cluster in the terminal.

    Lists all autoscalers with what they do, problems first; Enter shows one with plots of its replicas and metrics, its
    decisions with their explanations, events, pods and findings. `?` lists the keys. Reads the cluster with your
    kubeconfig and writes nothing. Works where kube-controller-manager decides, too.
    """
    logging.basicConfig(level=logging.ERROR)
    options |= NO_RECORD
    watch = WatchOptions(
        connection=parse_connection(kubeconfig=options["kubeconfig"], context=options["context"]),
        history_bytes=HISTORY_MAX_BYTES,
        options=options,
        given_flags=given_flags(ctx),
    )
    view = ListView(namespace=namespace, order=sort, only_problems=problems)
    asyncio.run(_print_once(watch, view) if once else _run_program(watch, view))


@asynccontextmanager
async def _watched_cluster(
    options: WatchOptions, namespace: str
) -> AsyncIterator[tuple["LiveCluster", asyncio.Future[None]]]:
    """The autoscalers of a namespace (empty: all), and the task that follows them. Raises UsageError."""
    clock = SystemClock()
    watch = ClusterWatch(options, clock)
    client = await options.connection.open_reader(clock, user_agent=f"podscaler/{__version__} top")
    if namespace:
        client.wrap_transport(lambda transport: NamespacedTransport(transport, namespace))
    live_cluster = watch.new_live_cluster(client)
    watch_task = asyncio.ensure_future(watch.run(client, live_cluster))
    try:
        yield live_cluster, watch_task
    finally:
        watch_task.cancel()
        with suppress(asyncio.CancelledError, UsageError):
            await watch_task
        await client.close()


async def _run_program(options: WatchOptions, view: ListView) -> None:
    """Run the program until the user quits. Raises UsageError for what cannot work, such as credentials."""
    try:
        from podscaler.cli.top.top_app import TopApp
    except ModuleNotFoundError as error:
        raise UsageError(f"podscaler top needs {error.name}: pip install 'podscaler[top]'") from None
    async with _watched_cluster(options, view.namespace) as (live_cluster, watch_task):
        app = TopApp(
            live_cluster,
            cluster=live_cluster.name,
            clock=SystemClock(),
            view=view,
            find_notice=lambda: _find_notice(live_cluster),
        )
        watch_task.add_done_callback(lambda ended_task: None if ended_task.cancelled() else app.exit())
        await app.run_async()
        if watch_task.done():
            watch_task.result()  # raises the error that ended the watch


def _find_notice(live_cluster: "LiveCluster") -> Notice | None:
    """What is wrong with the connection; None: nothing."""
    if faults := live_cluster.faults():
        return Notice("error", "; ".join(faults))
    if reasons := live_cluster.unready():
        return Notice("info", "; ".join(reasons))
    return None


async def _print_once(options: WatchOptions, view: ListView) -> None:
    """Print the list as soon as every autoscaler was synced once. Raises UsageError if that takes too long."""
    async with _watched_cluster(options, view.namespace) as (live_cluster, watch_task):
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                while not _is_complete(live_cluster):
                    if watch_task.done():
                        watch_task.result()  # raises the error that ended the watch
                    await asyncio.sleep(POLL_PERIOD_S)
        except TimeoutError:
            reasons = "; ".join([*live_cluster.faults(), *live_cluster.unready()]) or "not all autoscalers were synced"
            raise UsageError(f"no list within {LIST_TIMEOUT_S:.0f} s: {reasons}") from None
        now_ms = SystemClock().now_ns() // 1_000_000
        click.echo(list_rows.table(list_rows.select(live_cluster.rows(), view), now_ms))


def _is_complete(live_cluster: "LiveCluster") -> bool:
    """Whether all autoscalers are listed, and a decision about each is known."""
    if live_cluster.unready():
        return False
    tracks = [live_cluster.history.find(key) for key in list(live_cluster.keys())]
    return all(track is not None and track.latest is not None for track in tracks)
