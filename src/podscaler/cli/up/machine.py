"""Wires the node of `podscaler up`: the agent that runs pods as processes, its HTTPS endpoints, metrics, and DNS.

Made by `podscaler.cli.up.control_plane`, except with `--api-only`. A further background task: add it to
`Machine.tasks`; if it holds a resource, also to `Machine.stop`.
"""

import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from podscaler.api.resource.resources import Resource
from podscaler.base.clock import Clock
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.credentials import certificates
from podscaler.controlplane.kubelet.launching.image_map import ImageMap, ImageTable
from podscaler.controlplane.kubelet.node_agent import NodeAgent, NodeServices
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.kubelet.server import cadvisor_metrics, kubelet_pages, resource_metrics, stats_summary
from podscaler.controlplane.kubelet.server.node_access import NodeAccess
from podscaler.controlplane.kubelet.server.node_server import NodePage, NodeServer
from podscaler.controlplane.metrics.custom.apis import MetricValues
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.heapster import service as heapster_service
from podscaler.controlplane.metrics.heapster.endpoint import HeapsterEndpoint
from podscaler.controlplane.metrics.heapster.model import HeapsterModel
from podscaler.controlplane.metrics.resource.sampler import Sampler
from podscaler.controlplane.metrics.resource.totals import UsageSnapshot
from podscaler.controlplane.metrics.scraped.scrape_client import ScrapeClient
from podscaler.controlplane.metrics.scraped.scraper import Scraper
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.cluster_dns import ClusterDNS
from podscaler.controlplane.registry.pod_connections import NodeEndpoint
from podscaler.controlplane.registry.registry import Object, Registry


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """The settings of the node.

    Attributes:
        kubelet: the agent's settings; `Machine` fills in the address of the name server.
        certificates_folder: has the authority, for the certificate of the node's endpoints.
        metric_resolution_s: seconds between readings of CPU and memory, and between scrapes.
        images: the table of `--image`.
    """

    kubelet: KubeletSettings
    certificates_folder: Path
    metric_resolution_s: float
    images: ImageTable = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeAuth:
    """The parts of the API server's authentication that the node needs.

    Attributes:
        accounts: issues the tokens of pods.
        node_access: decides who may call the node's endpoints.
    """

    accounts: AccountTokens
    node_access: NodeAccess


class Machine:
    """The node of one `podscaler up` with the parts that belong to it.

    Args:
        registry: reads and writes the API objects.
        resources: the kinds that are served.
        block: the loopback addresses of node, pods and Services; the caller closes it after `stop`.
        auth: tokens and permissions.
    """

    def __init__(
        self,
        settings: MachineSettings,
        registry: Registry,
        resources: Iterable[Resource],
        clock: Clock,
        *,
        block: AddressBlock,
        auth: NodeAuth,
    ) -> None:
        self._clock = clock
        self._registry = registry
        self._heapster: HeapsterEndpoint | None = None
        self._certificates_folder = settings.certificates_folder
        self._address = block.node_address
        self._name_server = ClusterDNS(registry, block)
        self._endpoints = NodeServer(self._address, self._pages(), auth.node_access, make_tls_context=self._server_tls)
        self._node = NodeAgent(
            registry,
            replace(settings.kubelet, nameserver=self._name_server.address),
            clock,
            addresses=block,
            images=ImageMap(settings.images),
            services=NodeServices(auth.accounts.issue_for_pod, self._endpoints.start),
        )
        metric_resolution_s = settings.metric_resolution_s
        self._sampler = Sampler(
            registry,
            self._node.running_containers,
            clock=clock,
            get_node_name=lambda: self._node.node_name,
            resolution_s=metric_resolution_s,
        )
        self._scrape_client = ScrapeClient()
        self._scraper = Scraper(
            registry,
            DescribableKinds(resources),
            self._node.connections.locate,
            self._scrape_client.get,
            clock=clock,
            interval_s=metric_resolution_s,
        )
        running_pods = self._sampler.running_pods
        self._metrics = MetricValues(registry, resources, running_pods, clock, scraped=self._scraper.index)

    @property
    def server_parts(self) -> ServerParts:
        """The parts of the node that the API server needs."""
        sampler = self._sampler
        return ServerParts(
            virtual_objects={"pods.metrics.k8s.io": sampler.pod_metrics, "nodes.metrics.k8s.io": sampler.node_metrics},
            logs=self._node.logs,
            connections=self._node.connections,
            find_node_endpoint=self._find_node_endpoint,
            metrics=self._metrics,
            documents={"targets": lambda: self._scraper.targets},
        )

    @property
    def tasks(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """The functions of the node's background tasks by name; each runs until it is cancelled."""
        return {
            "names": self._name_server.run,
            "node": self._node.run,
            "metrics": self._sampler.run,
            "metric values": self._metrics.run,
            "scraper": self._scraper.run,
        }

    async def open_demanded_networks(self) -> None:
        """Open the network namespaces of pods if the settings demand them. Raises UsageError if they are impossible."""
        await self._node.open_demanded_networks()

    async def start_heapster(self) -> str:
        """Serve Heapster's API on the node's address; returns its URL. Raises OSError, StatusError."""
        self._heapster = HeapsterEndpoint(
            HeapsterModel(self._sampler.pod_metrics, self._sampler.node_metrics, self._metrics)
        )
        port = await self._heapster.start(self._address)
        await heapster_service.ensure(self._registry, self._address, port)
        return f"http://{self._address}:{port}"

    def _pages(self) -> dict[str, NodePage]:
        """The endpoints of the node by path; called before the sampler and the node agent exist, which they read."""

        def get_snapshot() -> UsageSnapshot | None:
            return self._sampler.snapshot()

        def list_pods() -> list[Object]:
            name = self._node.node_name  # empty until the node is registered
            return [pod for pod in self._registry.list("pods") if name and pod["spec"].get("nodeName") == name]

        return {
            **kubelet_pages.kubelet_pages(get_snapshot, list_pods, lambda: self._node.node_name),
            cadvisor_metrics.PATH: cadvisor_metrics.cadvisor_page(get_snapshot, list_pods),
            resource_metrics.PATH: resource_metrics.resource_metrics_page(get_snapshot),
            stats_summary.PATH: stats_summary.stats_summary_page(get_snapshot),
        }

    def _find_node_endpoint(self) -> NodeEndpoint | None:
        """The address of the node's endpoints; None as long as they do not listen."""
        if self._endpoints.bound is None:
            return None
        node_name, port = self._endpoints.bound
        return NodeEndpoint(node_name, self._address, port, self._client_tls)

    def _client_tls(self) -> ssl.SSLContext:
        """The TLS context of the API server as a client of the endpoints. Blocks. Raises UsageError."""
        return certificates.kubelet_client_context(self._certificates_folder, now_ns=self._clock.now_ns())

    def _server_tls(self, node_name: str) -> ssl.SSLContext:
        """The TLS context of the endpoints. Blocks. Raises UsageError."""
        now_ns = self._clock.now_ns()
        return certificates.node_context(self._certificates_folder, node_name, self._address, now_ns=now_ns)

    async def stop(self) -> None:
        """Stop the endpoints, the processes of pods, and the name server; call it after `tasks` have ended."""
        await self._endpoints.stop()
        if self._heapster is not None:
            await self._heapster.stop()
        await self._node.stop()
        await self._scrape_client.close()
        self._name_server.close()
