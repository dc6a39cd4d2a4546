"""Scrapes the kubelets of all nodes once in each resolution, and stores what they report.

`resource.kubelet_metrics` runs a KubeletScraper until it is cancelled. At most CONCURRENT_SCRAPES kubelets are read at
once, each with a time-out of its own, so that nodes that do not respond delay no others for longer than that. A failure
is logged when its text changes, and once when the node works again. An unexpected error is a failure of its node, too,
logged with its traceback and counted.

Source: metrics-server's scraper. Differs: requests are limited in number, not spread in time.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from podscaler.adapter.resource import node_targets
from podscaler.adapter.resource.kubelet_client import KubeletClient, KubeletError
from podscaler.adapter.resource.node_targets import KubeletAddressing, KubeletTarget, NodeTargetError, ScrapedNode
from podscaler.adapter.resource.usage_storage import UsageStorage
from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector, WatchSource

log = logging.getLogger(__name__)

CONCURRENT_SCRAPES: Final = 64
NODES: Final = "/api/v1/nodes"
_NODE: Final = msgspec.json.Decoder(ScrapedNode)


def node_informer(
    client: Client, clock: Clock, rng: random.Random
) -> tuple[Cache[ScrapedNode], Reflector[ScrapedNode]]:
    """A cache of all Nodes, and what keeps it up to date while it runs; `rng` is for jitter."""
    cache: Cache[ScrapedNode] = Cache()
    source = WatchSource(NODES, "nodes", _NODE.decode)
    return cache, Reflector(client, source, cache=cache, clock=clock, rng=rng)


class KubeletScraper:
    """The periodic scrape of the kubelets of all nodes.

    Args:
        nodes: returns the Nodes of the cluster.
        client: reads one kubelet.
        storage: gets the points.
        clock: for rounds.
        addressing: how kubelets are reached.
        resolution_s: seconds between two rounds.
    """

    def __init__(
        self,
        nodes: Callable[[], Iterable[ScrapedNode]],
        client: KubeletClient,
        storage: UsageStorage,
        clock: Clock,
        *,
        addressing: KubeletAddressing,
        resolution_s: float,
    ) -> None:
        self._nodes = nodes
        self._client = client
        self._storage = storage
        self._clock = clock
        self._addressing = addressing
        self._resolution_s = resolution_s
        self._failures: dict[str, str] = {}
        self._scrape_slots = asyncio.Semaphore(CONCURRENT_SCRAPES)
        self.rounds = 0
        """The number of complete rounds; without one, nothing is known."""
        self.unexpected_errors = 0
        """The number of scrapes that ended with an error that is a defect of this program."""

    async def run(self) -> None:
        """Scrape until cancelled."""
        due_s = self._clock.monotonic_s()
        while True:
            await self.scrape()
            due_s = max(due_s + self._resolution_s, self._clock.monotonic_s())
            await self._clock.sleep(due_s - self._clock.monotonic_s())

    async def scrape(self) -> None:
        """Scrape every node once."""
        targets = dict(self._find_targets())
        async with asyncio.TaskGroup() as tasks:
            for name, target in targets.items():
                tasks.create_task(self._scrape_node(name, target))
        await self._client.close_others(target.server for target in targets.values())
        names = {node.metadata.name for node in self._nodes()}
        self._storage.drop_stale(self._clock.now_ns(), names)
        self._failures = {name: failure for name, failure in self._failures.items() if name in names}
        self.rounds += 1

    def _find_targets(self) -> Iterable[tuple[str, KubeletTarget]]:
        """Name and target of each node that has one; the others are logged."""
        for node in self._nodes():
            try:
                yield node.metadata.name, node_targets.find_target(node, self._addressing)
            except NodeTargetError as error:
                self._log_failure(node.metadata.name, str(error))

    async def _scrape_node(self, name: str, target: KubeletTarget) -> None:
        """Scrape one kubelet and store its points; a failure is logged and ends nothing else."""
        try:
            async with self._scrape_slots:
                points = await self._client.read(target)
            self._storage.store(name, points, self._clock.now_ns())
        except KubeletError as error:
            self._log_failure(name, str(error))
            return
        except Exception as error:  # whatever one node causes, the others are scraped
            self.unexpected_errors += 1
            self._log_failure(name, f"unexpected error: {error!r}", cause=error)
            return
        if self._failures.pop(name, None) is not None:
            log.info("node %s is scraped again", name)

    def _log_failure(self, name: str, failure: str, *, cause: Exception | None = None) -> None:
        """Log the failure of a node, unless the last log line about it says the same."""
        if self._failures.get(name) != failure:
            self._failures[name] = failure
            log.warning("node %s cannot be scraped: %s", name, failure, exc_info=cause)
