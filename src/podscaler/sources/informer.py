"""Finds MetricSources, the custom resources that say where a metric is read (a query of Prometheus, a list of Redis).

Two ways: MetricSourceInformer caches all of a cluster, and MetricSourceFetcher requests single ones. `ClusterSources`
makes and runs the informer; `podscaler explain` uses the fetcher. If the CustomResourceDefinition of MetricSource does
not exist, the watch is tried again with back-off, and nothing is logged (`is_optional`).
"""

import random

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache, Key, ResourceEventHandler
from podscaler.kube.informers.reflector import Reflector, WatchSource
from podscaler.sources import metric_source
from podscaler.sources.metric_source import MetricSource

LIST_TIMEOUT_S = 5.0
POLL_PERIOD_S = 0.05


class MetricSourceInformer:
    """The cache of all MetricSources of a cluster; a `podscaler.sources.direct_metrics.SourceFinder`.

    Args:
        client: lists and watches.
        clock: for delays.
        rng: for jitter.
    """

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._cache: Cache[MetricSource] = Cache()
        path = f"{metric_source.BASE_PATH}/metricsources"
        watched = WatchSource(path, metric_source.RESOURCE, metric_source.decode, is_optional=True)
        self._reflector = Reflector(client, watched, cache=self._cache, clock=clock, rng=rng)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._reflector.run()

    def subscribe(self, handler: ResourceEventHandler[MetricSource]) -> None:
        """Call `handler` for every change."""
        self._cache.subscribe(handler)

    def names(self) -> set[str]:
        """The names of all MetricSources, in any namespace, for discovery; empty before the first list."""
        return {found.metadata.name for found in self._cache}

    async def find(self, key: Key) -> MetricSource | None:
        """The MetricSource of that namespace and name, after the first list.

        None if there is none, the server does not serve the kind, or it may not be listed; the caller then uses the
        external metrics API. Raises StatusError if the first list fails or takes longer than LIST_TIMEOUT_S.
        """
        deadline_s = self._clock.monotonic_s() + LIST_TIMEOUT_S
        while not self._can_find:
            if self._reflector.last_error:
                # code 0: no HTTP response is behind this error
                raise StatusError(f"MetricSources are not listed yet: {self._reflector.last_error}", code=0)
            if self._clock.monotonic_s() >= deadline_s:
                raise StatusError("MetricSources are not listed yet", code=0)
            await self._clock.sleep(POLL_PERIOD_S)
        return self._cache.find(key)

    @property
    def _can_find(self) -> bool:
        """Whether MetricSources are listed, or cannot be: the kind is not served, or listing it is forbidden."""
        return self._cache.synced or not self._reflector.is_served or self._reflector.is_forbidden


class MetricSourceFetcher:
    """Requests each MetricSource when `find` is called; a `podscaler.sources.direct_metrics.SourceFinder`.

    Args:
        client: sends the requests.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def find(self, key: Key) -> MetricSource | None:
        """The MetricSource; None if there is none, the kind is not served, or it may not be read.

        Raises StatusError for other failures, and ValueError for a response that is no MetricSource.
        """
        namespace, name = key
        path = metric_source.BASE_PATH + urls.path("namespaces", namespace, "metricsources", urls.object_name(name))
        try:
            return metric_source.decode(await self._client.get(path, subject=f"{metric_source.RESOURCE} {name}"))
        except StatusError as error:
            if error.code in (403, 404):  # the caller uses the external metrics API, as with the informer
                return None
            raise
