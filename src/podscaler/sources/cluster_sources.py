"""Wires the parts that read the MetricSources of one cluster: informer, open sources, status writes.

`podscaler.controller.assembly` makes a ClusterSources; `podscaler adapter` makes its own, and its server of
external.metrics.k8s.io calls `direct.find_values` and lists `names`. A source is closed when its object is deleted or
edited; all sources are closed when `run` ends.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import key_of
from podscaler.sources.direct_metrics import DirectSources
from podscaler.sources.informer import MetricSourceInformer
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.open_sources import OpenSources
from podscaler.sources.status import SourceStatusWriter


class ClusterSources:
    """Watches the MetricSources of a cluster (as a ResourceEventHandler), reads them on demand, writes their statuses.

    Args:
        client: the API server's client.
        clock: measures time and delays in all parts.
        rng: for the jitter of the watch.
        folder: the folder below which files may be read; None if no file may be read.
        fresh_s: how long a read is shared, in seconds.
        may_write: whether statuses are written now.

    Attributes:
        direct: responds to queries.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: random.Random,
        *,
        folder: Path | None,
        fresh_s: float,
        may_write: Callable[[], bool],
    ) -> None:
        self._informer = MetricSourceInformer(client, clock, rng)
        self._open_sources = OpenSources(client, clock, folder=folder)
        self._statuses = SourceStatusWriter(client, may_write=may_write)
        self.direct = DirectSources(
            self._informer, self._open_sources, clock, fresh_s=fresh_s, on_read=self._statuses.record_read
        )
        self._informer.subscribe(self)

    def names(self) -> set[str]:
        """The names of all MetricSources, in any namespace."""
        return self._informer.names()

    async def run(self) -> None:
        """Watch MetricSources and write their statuses until cancelled; then close all sources."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._informer.run(), name="the watch of metricsources")
                group.create_task(self._statuses.run(), name="the statuses of metricsources")
        finally:
            await self._open_sources.close()

    def added(self, metric_source: MetricSource) -> None:
        """Do nothing: a source is opened when it is read."""

    def updated(self, old: MetricSource, new: MetricSource) -> None:
        """Close the source of an object whose spec was edited."""
        if old.spec != new.spec:
            self._open_sources.discard(key_of(new))

    def deleted(self, metric_source: MetricSource) -> None:
        """Close the source of a deleted object."""
        self._open_sources.discard(key_of(metric_source))
        self._statuses.forget(key_of(metric_source))
