"""The node of `up`: the agent that runs pods, the sampler of their usage, custom metrics, and the name server.

Made by `control_plane`, except with `--api-only`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from podscaler.api.resource.resources import Resource
from podscaler.base.clock import Clock
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.kubelet.node_agent import NodeAgent
from podscaler.controlplane.metrics.custom.apis import MetricValues
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.lookup import ScrapedMetrics
from podscaler.controlplane.metrics.resource.sampler import Sampler
from podscaler.controlplane.metrics.scraped.association import PodAssociation
from podscaler.controlplane.metrics.scraped.scrape_client import ScrapeClient
from podscaler.controlplane.metrics.scraped.scraper import Scraper
from podscaler.controlplane.network.cluster_dns import ClusterNames
from podscaler.controlplane.registry.registry import Registry


class Machine:
    """See the module.

    Args:
        node: runs the pods.
        registry: the objects.
        resources: the kinds that are served.
        clock: for all parts.
        names: the name server of Services and pods.
        metric_resolution_s: seconds between readings of CPU and memory, and between scrapes.
    """

    def __init__(
        self,
        node: NodeAgent,
        registry: Registry,
        resources: Iterable[Resource],
        clock: Clock,
        *,
        names: ClusterNames,
        metric_resolution_s: float,
    ) -> None:
        self._node = node
        self._names = names
        self._sampler = Sampler(
            registry,
            self._node.running_containers,
            clock=clock,
            node_name=lambda: self._node.node_name,
            resolution_s=metric_resolution_s,
        )
        self._scrape_client = ScrapeClient()
        self._scraper = Scraper(
            registry,
            DescribableKinds(resources),
            node.connections.locate,
            self._scrape_client.get,
            clock=clock,
            interval_s=metric_resolution_s,
        )
        running_pods = self._sampler.running_pods
        scraped = ScrapedMetrics(self._scraper.index, PodAssociation(registry, running_pods))
        self._metrics = MetricValues(registry, resources, running_pods, clock, scraped=scraped)

    @property
    def neighbours(self) -> ServerParts:
        """The parts of the node that the API server needs."""
        sampler = self._sampler
        return ServerParts(
            virtual={"pods.metrics.k8s.io": sampler.pod_metrics, "nodes.metrics.k8s.io": sampler.node_metrics},
            logs=self._node.logs,
            connections=self._node.connections,
            metrics=self._metrics,
            documents={"targets": lambda: self._scraper.targets},
        )

    @property
    def parts(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """The tasks of the node by name; each runs until it is cancelled."""
        return {
            "names": self._names.run,
            "node": self._node.run,
            "metrics": self._sampler.run,
            "metric values": self._metrics.run,
            "scraper": self._scraper.run,
        }

    async def stop(self) -> None:
        """End every process that was started; after the parts have ended."""
        await self._node.stop()
        await self._scrape_client.close()
        self._names.close()
