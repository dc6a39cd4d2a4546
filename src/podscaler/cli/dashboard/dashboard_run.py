"""Runs the dashboard until a signal: connects to the cluster, finds the settings of its controller, decides and serves.

`podscaler.cli.dashboard.dashboard` makes a DashboardRun. The server answers from the start: until the cluster is listed
its routes say what they wait for.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from podscaler.base import supervision
from podscaler.base.clock import SystemClock
from podscaler.base.version import __version__
from podscaler.cli.dashboard import served_history
from podscaler.cli.dashboard.bearer_viewers import BearerViewers
from podscaler.cli.options import ending_signals, heapster, recording
from podscaler.cli.options import settings as flags
from podscaler.cli.options.cluster_connection import ConnectionOptions
from podscaler.controller import assembly
from podscaler.controller.options import effective_settings
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.server import api_server_wait
from podscaler.dashboard.server import DashboardOptions, DashboardServer
from podscaler.kube.client.client import Client
from podscaler.kube.client.connect import NamespacedTransport
from podscaler.kube.serving.serving_certificate import ServingCertificate
from podscaler.observe import decision_history, live_cluster
from podscaler.observe.decision_history import DecisionHistory
from podscaler.observe.live_cluster import LiveCluster

log = logging.getLogger(__name__)

AGENT = f"podscaler/{__version__} dashboard"


@dataclass(frozen=True, slots=True)
class DashboardRunSettings:
    """The flags of `podscaler dashboard` as values.

    Attributes:
        connection: the cluster.
        namespace: the only namespace that is read; empty: all.
        host, port: the address to listen on.
        server_names: further names by which browsers reach the server.
        certificate: the files of the certificate and its key; None: plain HTTP.
        is_open: whether other machines can reach the server, so that viewers log in with tokens of the cluster.
        allows_writes: whether viewers may change specs.
        recordings: files whose decisions are shown, too.
        reports: the folder of reports; None: there are none.
        history_bytes: the memory for decisions.
        options: the values of the controller's flags and of `--record`, by click's names.
        given: the names of the controller's flags that are on the command line.
    """

    connection: ConnectionOptions
    namespace: str
    host: str
    port: int
    server_names: tuple[str, ...]
    certificate: tuple[Path, Path] | None
    is_open: bool
    allows_writes: bool
    recordings: tuple[str, ...]
    reports: Path | None
    history_bytes: int
    options: Mapping[str, Any]
    given: frozenset[str]


class DashboardRun:
    """One run of the command.

    Args:
        settings: the flags.
    """

    def __init__(self, settings: DashboardRunSettings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._assumed = flags.parse_settings(settings.options)
        header = decision_history.header_of(self._assumed)
        self._history = DecisionHistory(header, self._clock, max_bytes=settings.history_bytes)

    async def run(self) -> None:
        """Serve until a signal. Raises UsageError for what cannot work: an address, a file, credentials."""
        await asyncio.to_thread(served_history.load, self._history, self._settings.recordings)
        connection = self._settings.connection
        async with AsyncExitStack() as stack:
            client = await connection.open_reader(self._clock, user_agent=AGENT)
            stack.push_async_callback(client.close)
            if namespace := self._settings.namespace:
                client.wrap_transport(lambda transport: NamespacedTransport(transport, namespace))
            writer = client
            if self._settings.allows_writes:
                writer = await connection.open_client(self._clock, user_agent=AGENT)
                stack.push_async_callback(writer.close)
            live = LiveCluster(self._history, writer, self._clock, name=connection.config.origin)
            server = DashboardServer(live, self._clock, await self._serving(stack))
            await server.start()
            stack.push_async_callback(server.stop)
            self._print(server)
            ended = asyncio.Event()
            for number in ending_signals.handled():
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
            working = asyncio.ensure_future(self._work(client, live))
            waiting = asyncio.ensure_future(ended.wait())
            await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if working.done():
                working.result()
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working

    async def _serving(self, stack: AsyncExitStack) -> DashboardOptions:
        settings, context = self._settings, None
        if settings.certificate is not None:
            certificate = await asyncio.to_thread(ServingCertificate, *settings.certificate)
            context = certificate.context
            following = supervision.keep_running(
                "the serving certificate", lambda: certificate.follow(self._clock), self._clock
            )
            stack.callback(asyncio.ensure_future(following).cancel)
        bearers = BearerViewers(settings.connection.config, self._clock, allows_writes=settings.allows_writes)
        open_viewer = bearers.open if settings.is_open else None
        return DashboardOptions(
            host=settings.host,
            port=settings.port,
            hosts=settings.server_names,
            tls=context,
            reports=settings.reports,
            open_viewer=open_viewer,
            allows_writes=settings.allows_writes,
            on_login=None if settings.is_open else _print_link,
        )

    def _print(self, server: DashboardServer) -> None:
        if self._settings.is_open:
            click.echo(f"the dashboard is at {server.url}; log in with a token of the cluster")
        else:
            click.echo(f"the dashboard is at {server.url}")
            _print_link(server.login_link())

    async def _work(self, client: Client, live: LiveCluster) -> None:
        """Find the controller's settings, and decide with them until cancelled. Raises UsageError."""
        await api_server_wait.wait_for_server(client, self._settings.connection.config, self._clock)
        settings = live_cluster.dry_run_settings(await self._found_settings(client))
        async with AsyncExitStack() as stack:
            file = recording.record_file(self._settings.options, settings)
            if file is not None:
                await asyncio.to_thread(served_history.load_own, self._history, file)
            recorder = await stack.enter_async_context(recording.open_recording(file, self._clock))
            self._history.configure(decision_history.header_of(settings), recorder)
            metrics = await stack.enter_async_context(heapster.open_metrics(client, settings, self._clock))
            controller = assembly.new_controller(
                client, settings, self._clock, metrics=metrics, recording=self._history
            )
            live.attach(controller)
            await controller.run()

    async def _found_settings(self, client: Client) -> ControllerSettings:
        """The settings of the flags, and those of the cluster's controller for flags that are not given.

        Raises UsageError.
        """
        found = await effective_settings.find_published(client, self._assumed.settings_namespace)
        found = found or await effective_settings.find_built_in(client)
        if found is None:
            log.info("the settings of the cluster's controller are not visible: defaults are assumed")
            return self._assumed
        log.info("decides with the settings of %s", found.origin)
        values = dict(self._settings.options)
        for each in flags.DECISION_OPTIONS:
            text = found.flags.get(each.name)
            if each.name not in self._settings.given and text not in (None, ""):
                value = each.kind.convert(str(text), None, None)
                values[each.name.replace("-", "_")] = (value,) if each.is_list else value
        return flags.parse_settings(values)


def _print_link(link: str) -> None:
    with suppress(OSError):  # nobody reads standard output any more
        click.echo(f"this link logs in once: {link}")
