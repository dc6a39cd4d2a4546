"""Wires an adapter from its parts, and runs them.

`podscaler adapter` calls `new_adapter` and `Adapter.run`; tests pass it fakes of Prometheus and of the API server. A
new API group: a `server.discovery.MetricsApi` that `new_adapter` adds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from podscaler.adapter.cluster.object_names import ObjectNames
from podscaler.adapter.cluster.rest_mapper import RESTMapper
from podscaler.adapter.config.rules import AdapterConfig
from podscaler.adapter.prometheus.client import MetricsDatabase
from podscaler.adapter.prometheus.telemetry import AdapterTelemetry, CountedDatabase
from podscaler.adapter.providers.custom_metrics import CustomMetrics
from podscaler.adapter.providers.external_metrics import ExternalMetrics
from podscaler.adapter.providers.metric_relisting import MetricRelisting
from podscaler.adapter.providers.object_values import Batching, ObjectValues
from podscaler.adapter.providers.protocols import ExternalMetricsProvider
from podscaler.adapter.providers.query_cache import QueryCache
from podscaler.adapter.providers.resource_metrics import ResourceMetrics
from podscaler.adapter.resource.kubelet_usage import KubeletUsage
from podscaler.adapter.resource.usage_storage import UsageStorage
from podscaler.adapter.server.access import RequestAccess
from podscaler.adapter.server.app import AdapterServer
from podscaler.adapter.server.custom_api import CustomMetricsApi
from podscaler.adapter.server.discovery import MetricsApi
from podscaler.adapter.server.external_api import ExternalMetricsApi
from podscaler.adapter.server.resource_api import ResourceMetricsApi
from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """The settings of an adapter, besides the rules.

    Attributes:
        relist_interval_s: the period of lists of series.
        max_age_s: how old the last sample of a listed series may be.
        tick_s: how long the result of a query is used.
        batching: when one query serves several requests.
        watches: whether objects are watched instead of listed for each request.
    """

    relist_interval_s: float = 600.0
    max_age_s: float = 600.0
    tick_s: float = 7.5
    batching: Batching = Batching.AUTO
    watches: bool = True


@dataclass(frozen=True, slots=True)
class AdapterServers:
    """The servers that an adapter uses.

    Attributes:
        database: the client of Prometheus.
        lister: a client of the API server, for discovery and for lists of objects.
        access: authenticates and authorizes requests.
        unready: returns the reasons why requests cannot be authorized yet; empty when they can.
    """

    database: MetricsDatabase
    lister: Client
    access: RequestAccess
    unready: Callable[[], list[str]] = list


class Adapter:
    """The parts of an adapter; made by `new_adapter`.

    Attributes:
        server: serves the APIs; the caller starts and stops it.
        relisting: keeps the metrics up to date.
    """

    def __init__(self, server: AdapterServer, relisting: MetricRelisting, objects: ObjectNames, clock: Clock) -> None:
        self.server = server
        self.relisting = relisting
        self._objects = objects
        self._clock = clock

    async def run(self, *other_tasks: tuple[str, Callable[[], Awaitable[None]]]) -> None:
        """Run until cancelled, with other tasks by name; a task that fails is started again."""
        tasks = (("the list of metrics", self.relisting.run), *other_tasks)
        try:
            async with asyncio.TaskGroup() as group:
                for name, run_task in tasks:
                    group.create_task(supervision.keep_running(name, run_task, self._clock))
        finally:
            await self._objects.stop()


def new_adapter(
    config: AdapterConfig,
    settings: AdapterSettings,
    servers: AdapterServers,
    clock: Clock,
    *,
    external: Sequence[ExternalMetricsProvider] = (),
    kubelets: UsageStorage | None = None,
) -> Adapter:
    """An adapter; nothing runs yet. It is ready without Prometheus where it serves other metrics, too.

    Args:
        config: the rules.
        settings: the periods, and how objects and values are read.
        servers: Prometheus and the API server; the caller closes their clients.
        clock: for ticks and periods.
        external: further providers of external metrics, which have precedence over Prometheus.
        kubelets: what kubelets reported, served as metrics.k8s.io in place of `resource_rules`; None if it is not read.
    """
    telemetry = AdapterTelemetry(clock)
    counted_database = CountedDatabase(servers.database, telemetry)
    mapper, objects = RESTMapper(servers.lister), ObjectNames(servers.lister, clock, watches=settings.watches)
    relisting = MetricRelisting(
        config,
        counted_database,
        mapper,
        clock,
        interval_s=settings.relist_interval_s,
        max_age_s=settings.max_age_s,
    )
    telemetry.set_errors(lambda: len(relisting.errors))
    cache = QueryCache(counted_database, clock, tick_s=settings.tick_s)
    apis: list[MetricsApi] = []
    if config.rules:
        object_values = ObjectValues(cache, clock, batching=settings.batching)
        apis.append(CustomMetricsApi(CustomMetrics(relisting, mapper, objects, object_values)))
    providers = [*external, *([ExternalMetrics(relisting, cache)] if config.external_rules else [])]
    if providers:
        apis.append(ExternalMetricsApi(providers))
    if kubelets is not None:
        apis.append(ResourceMetricsApi(KubeletUsage(kubelets, mapper, objects), clock))
    elif config.resource_rules is not None:
        container_values = ObjectValues(cache, clock, batching=settings.batching, has_several_samples=True)
        metrics = ResourceMetrics(config.resource_rules, mapper, objects, container_values)
        apis.append(ResourceMetricsApi(metrics, clock))

    # with other metrics the adapter is ready without Prometheus, once a list was tried
    serves_others = bool(external) or kubelets is not None

    def unready_reasons() -> list[str]:
        is_listed = relisting.has_listed or (serves_others and relisting.has_tried)
        return servers.unready() + ([] if is_listed else ["the metrics of Prometheus have not been listed yet"])

    server = AdapterServer(apis, servers.access, unready_reasons, telemetry)
    return Adapter(server, relisting, objects, clock)
