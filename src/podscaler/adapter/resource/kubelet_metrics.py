"""Wires and runs the scraping of kubelets: the watch of nodes, the scraper, and the storage that they fill.

`podscaler adapter --resource` makes one KubeletMetrics; `adapter.assembly` serves its storage.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from podscaler.adapter.resource import scraping
from podscaler.adapter.resource.kubelet_client import KubeletClient, KubeletTransports
from podscaler.adapter.resource.node_targets import KubeletAddressing
from podscaler.adapter.resource.scraping import KubeletScraper
from podscaler.adapter.resource.usage_storage import UsageStorage
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.kube.client.client import Client
from podscaler.kube.transport.config import Config

NOT_SCRAPED: Final = "no kubelet has been scraped yet"


@dataclass(frozen=True, slots=True)
class ScrapeSettings:
    """How kubelets are scraped.

    Attributes:
        config: the credentials for kubelets, and the authorities of their certificates.
        addressing: how kubelets are reached.
        resolution_s: seconds between two scrapes of a node.
        timeout_s: the time limit of one scrape.
    """

    config: Config
    addressing: KubeletAddressing = field(default_factory=KubeletAddressing)
    resolution_s: float = 15.0
    timeout_s: float = 10.0


class KubeletMetrics:
    """The running parts of `podscaler adapter --resource`: node watch, scraper and storage.

    Args:
        settings: how kubelets are scraped.
        lister: a client of the API server, for the watch of nodes.
        clock: for all parts.
        user_agent: the User-Agent of requests to kubelets.

    Attributes:
        storage: the points that the kubelets reported.
    """

    def __init__(self, settings: ScrapeSettings, lister: Client, clock: Clock, *, user_agent: str) -> None:
        self.storage = UsageStorage(round(settings.resolution_s * NANOSECONDS))
        self._nodes, self._reflector = scraping.node_informer(lister, clock, random.Random())
        transports = KubeletTransports(settings.config, user_agent=user_agent)
        self._client = KubeletClient(transports.open, clock, timeout_s=settings.timeout_s)
        self._scraper = KubeletScraper(
            lambda: list(self._nodes),
            self._client,
            self.storage,
            clock,
            addressing=settings.addressing,
            resolution_s=settings.resolution_s,
        )

    def unready(self) -> list[str]:
        """Why nothing is known yet; empty once the nodes were scraped."""
        return [] if self._scraper.rounds else [NOT_SCRAPED]

    async def run(self) -> None:
        """Watch and scrape until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._reflector.run())
                tasks.create_task(self._scrape())
        finally:
            await self._client.close()

    async def _scrape(self) -> None:
        """Scrape until cancelled, from the first list of nodes on."""
        await self._nodes.wait_synced()
        await self._scraper.run()
