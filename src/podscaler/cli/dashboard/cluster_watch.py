"""Decides about the autoscalers of a cluster into a LiveCluster, and writes nothing, for views of the cluster.

`podscaler.cli.dashboard.dashboard_run` and `podscaler.cli.top.top` run a ClusterWatch: it waits for the API server,
finds the settings of the cluster's controller, and then runs a controller that only decides (a dry run).
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from podscaler.base.clock import Clock
from podscaler.cli.dashboard import served_history
from podscaler.cli.options import heapster, recording
from podscaler.cli.options import settings as flags
from podscaler.cli.options.cluster_connection import ConnectionOptions
from podscaler.controller import assembly
from podscaler.controller.options import effective_settings
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.server import api_server_wait
from podscaler.kube.client.client import Client
from podscaler.observe import decision_history, live_cluster
from podscaler.observe.decision_history import DecisionHistory
from podscaler.observe.live_cluster import LiveCluster

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The flags of a watch as values.

    Attributes:
        history_bytes: the memory for decisions.
        options: the values of the controller's flags and of `--record`, by click's names.
        given_flags: the names of the controller's flags that are on the command line, which take precedence over the
            settings of the cluster's controller.
    """

    connection: ConnectionOptions
    history_bytes: int
    options: Mapping[str, Any]
    given_flags: frozenset[str]


def given_flags(ctx: click.Context) -> frozenset[str]:
    """The names of the controller's flags that are on the command line."""
    command_line = ParameterSource.COMMANDLINE
    names = [option.name for option in flags.OPTIONS]
    return frozenset(name for name in names if ctx.get_parameter_source(name.replace("-", "_")) is command_line)


class ClusterWatch:
    """Decides about the autoscalers of one cluster.

    Attributes:
        history: the decisions.

    Raises UsageError for invalid values of flags.
    """

    def __init__(self, options: WatchOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._assumed_settings = flags.parse_settings(options.options)
        header = decision_history.header_of(self._assumed_settings)
        self.history = DecisionHistory(header, clock, max_bytes=options.history_bytes)

    def new_live_cluster(self, client: Client) -> LiveCluster:
        """The cluster for views; it has no autoscalers until `run` has listed them. `client` reads details."""
        return LiveCluster(self.history, client, self._clock, name=self._options.connection.config.origin)

    async def run(self, client: Client, live: LiveCluster) -> None:
        """Decide with the controller's settings until cancelled. Raises UsageError for an unusable cluster or file."""
        await api_server_wait.wait_for_server(client, self._options.connection.config, self._clock)
        settings = live_cluster.dry_run_settings(await self._find_settings(client))
        async with AsyncExitStack() as stack:
            file = recording.record_file(self._options.options, settings)
            if file is not None:
                await asyncio.to_thread(served_history.load_earlier_runs, self.history, file)
            recorder = await stack.enter_async_context(recording.open_recording(file, self._clock))
            self.history.configure(decision_history.header_of(settings), recorder)
            metrics = await stack.enter_async_context(heapster.open_metrics(client, settings, self._clock))
            controller = assembly.new_controller(client, settings, self._clock, metrics=metrics, recording=self.history)
            live.attach(controller)
            await controller.run()

    async def _find_settings(self, client: Client) -> ControllerSettings:
        """The settings of the flags, and those of the cluster's controller for flags that are not given.

        A podscaler controller takes precedence over kube-controller-manager. Raises UsageError for settings that are
        invalid here, TransportError.
        """
        cluster_settings = await effective_settings.find_published(client, self._assumed_settings.settings_namespace)
        cluster_settings = cluster_settings or await effective_settings.find_built_in(client)
        if cluster_settings is None:
            log.info("the settings of the cluster's controller are not visible: defaults are assumed")
            return self._assumed_settings
        log.info("decides with the settings of %s", cluster_settings.origin)
        flag_values = dict(self._options.options)
        for option in flags.DECISION_OPTIONS:
            cluster_value = cluster_settings.flags.get(option.name)
            if option.name not in self._options.given_flags and cluster_value not in (None, ""):
                flag_value = option.value_type.convert(str(cluster_value), None, None)
                # a list is published as one text with commas
                flag_values[option.name.replace("-", "_")] = (flag_value,) if option.is_list else flag_value
        return flags.parse_settings(flag_values)
