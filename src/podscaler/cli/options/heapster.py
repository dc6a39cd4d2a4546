"""Opens the source of metrics for `--heapster-url`: a Heapster that is reached at that address, not by its Service.

Heapster is the metrics server of Kubernetes before 1.11. `podscaler.cli.commands.controller`,
`podscaler.cli.explain.explain_cluster` and `podscaler.cli.up.own_autoscaler` wrap their work in `open_metrics`. The
flags are in `podscaler.cli.options.settings`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podscaler.base.clock import Clock
from podscaler.controller.options import installation
from podscaler.controller.options.settings import ControllerSettings
from podscaler.kube.client import connect
from podscaler.kube.client.client import Client
from podscaler.kube.transport.config import Config
from podscaler.metrics.heapster import HeapsterMetricsSource
from podscaler.metrics.queries import MetricsSource


@asynccontextmanager
async def open_metrics(
    client: Client, settings: ControllerSettings, clock: Clock
) -> AsyncIterator[MetricsSource | None]:
    """The source of metrics if the settings have a URL of Heapster; None: the controller makes its own source.

    Credentials of the API server are not sent to Heapster.

    Args:
        client: of the API server, which lists pods; the caller closes it.
        settings: name Heapster's URL, and the field manager for the User-Agent.
    """
    service = settings.heapster
    if service is None or not service.url:
        yield None
        return
    user_agent = installation.user_agent(settings.field_manager)
    heapster_config = Config(service.url, origin="--heapster-url")
    heapster_client = await connect.open_client(heapster_config, clock, user_agent=user_agent)
    try:
        yield HeapsterMetricsSource(client, service, clock, direct=heapster_client)
    finally:
        await heapster_client.close()
