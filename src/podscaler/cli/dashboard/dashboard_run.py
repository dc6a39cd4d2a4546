"""Runs the dashboard until a signal: connects to the cluster, finds the settings of its controller, decides and serves.

`podscaler.cli.dashboard.dashboard` makes a DashboardRun. The server responds from the start: until the cluster is
listed, its routes return what they wait for.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from podscaler.base import supervision
from podscaler.base.clock import SystemClock
from podscaler.base.version import __version__
from podscaler.cli.dashboard import served_history
from podscaler.cli.dashboard.bearer_viewers import BearerViewers
from podscaler.cli.dashboard.cluster_watch import ClusterWatch, WatchOptions
from podscaler.cli.options import ending_signals
from podscaler.dashboard.server import DashboardOptions, DashboardServer
from podscaler.kube.client.connect import NamespacedTransport
from podscaler.kube.serving.serving_certificate import ServingCertificate

USER_AGENT = f"podscaler/{__version__} dashboard"


@dataclass(frozen=True, slots=True)
class DashboardRunSettings:
    """The flags of `podscaler dashboard` as values.

    Attributes:
        watch: the cluster, and the flags of decisions.
        namespace: the only namespace that is read; empty: all.
        host, port: the address to listen on.
        server_names: further names by which browsers reach the server.
        certificate_files: the certificate and its key; None: plain HTTP.
        serves_other_machines: whether other machines reach the server, and viewers log in with tokens of the cluster.
        allows_writes: whether viewers may change specs.
        recordings: files whose decisions are shown, too.
        reports: the folder of reports; None if there are none.
    """

    watch: WatchOptions
    namespace: str
    host: str
    port: int
    server_names: tuple[str, ...]
    certificate_files: tuple[Path, Path] | None
    serves_other_machines: bool
    allows_writes: bool
    recordings: tuple[str, ...]
    reports: Path | None


class DashboardRun:
    """One run of the command."""

    def __init__(self, settings: DashboardRunSettings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._watch = ClusterWatch(settings.watch, self._clock)

    async def run(self) -> None:
        """Serve until a signal. Raises UsageError for what cannot work: an address, a file, credentials."""
        await asyncio.to_thread(served_history.load, self._watch.history, self._settings.recordings)
        connection = self._settings.watch.connection
        async with AsyncExitStack() as stack:
            client = await connection.open_reader(self._clock, user_agent=USER_AGENT)
            stack.push_async_callback(client.close)
            if namespace := self._settings.namespace:
                client.wrap_transport(lambda transport: NamespacedTransport(transport, namespace))
            viewers_client = client
            if self._settings.allows_writes:
                viewers_client = await connection.open_client(self._clock, user_agent=USER_AGENT)
                stack.push_async_callback(viewers_client.close)
            live_cluster = self._watch.new_live_cluster(viewers_client)
            server = DashboardServer(live_cluster, self._clock, await self._make_options(stack))
            await server.start()
            stack.push_async_callback(server.stop)
            self._print_address(server)
            signal_received = asyncio.Event()
            for signal_number in ending_signals.handled():
                asyncio.get_running_loop().add_signal_handler(signal_number, signal_received.set)
            watch_task = asyncio.ensure_future(self._watch.run(client, live_cluster))
            signal_task = asyncio.ensure_future(signal_received.wait())
            await asyncio.wait((watch_task, signal_task), return_when=asyncio.FIRST_COMPLETED)
            signal_task.cancel()
            if watch_task.done():
                watch_task.result()  # raises the error that ended the watch
            watch_task.cancel()
            with suppress(asyncio.CancelledError):
                await watch_task

    async def _make_options(self, stack: AsyncExitStack) -> DashboardOptions:
        """The options of the server, whose certificate is renewed as long as `stack` is open. Raises UsageError."""
        settings, context = self._settings, None
        if settings.certificate_files is not None:
            certificate = await asyncio.to_thread(ServingCertificate, *settings.certificate_files)
            context = certificate.context
            renew = supervision.keep_running(
                "the serving certificate", lambda: certificate.follow(self._clock), self._clock
            )
            stack.callback(asyncio.ensure_future(renew).cancel)
        bearers = BearerViewers(settings.watch.connection.config, self._clock, allows_writes=settings.allows_writes)
        open_viewer = bearers.open if settings.serves_other_machines else None
        return DashboardOptions(
            host=settings.host,
            port=settings.port,
            hosts=settings.server_names,
            tls=context,
            reports=settings.reports,
            open_viewer=open_viewer,
            allows_writes=settings.allows_writes,
            on_login=None if settings.serves_other_machines else _print_link,
        )

    def _print_address(self, server: DashboardServer) -> None:
        """Print where the dashboard is; a dashboard for this machine alone gets a link that logs in."""
        if self._settings.serves_other_machines:
            click.echo(f"the dashboard is at {server.url}; log in with a token of the cluster")
        else:
            click.echo(f"the dashboard is at {server.url}")
            _print_link(server.login_link())


def _print_link(link: str) -> None:
    with suppress(OSError):  # nobody reads standard output any more
        click.echo(f"this link logs in once: {link}")
