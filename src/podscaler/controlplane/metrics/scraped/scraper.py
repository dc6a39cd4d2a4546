"""Scrapes the Prometheus metrics of running pods every `--metric-resolution`, and indexes them as custom metrics.

`podscaler.cli.up.machine` runs one `Scraper`; `metrics.custom.lookup` reads its index. A watch keeps the set of pods; a
round scrapes all of them, at most `SCRAPES_AT_ONCE` at a time. For a pod `web-1` the sample

    requests_total{service="web"} 1200

becomes two series of the metric `requests`, one of Pod web-1 and one of Service web in the pod's namespace (likewise
for the labels `deployment` and `ingress`); its value is the rate per second, as the sample is a counter (`counters`). A
failed scrape removes the series of the pod; an event on the pod and a log line give each cause once.

Source: Prometheus (documentation): series of a failed scrape are stale at once.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import trunc
from typing import Final, Protocol

from yarl import URL

from podscaler.api.machinery.quantity import Quantity
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.metrics.custom.index import MetricIndex
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.schedule import Constant
from podscaler.controlplane.metrics.custom.series import Series
from podscaler.controlplane.metrics.scraped import exposition, service_discovery
from podscaler.controlplane.metrics.scraped.counters import CounterRates
from podscaler.controlplane.metrics.scraped.exposition import ExposedSample, ExpositionError, Labels
from podscaler.controlplane.metrics.scraped.scrape_client import ScrapeError
from podscaler.controlplane.metrics.scraped.targets import ScrapeTarget, TargetError, target_of
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Object, ObjectEvent, Registry

COMPONENT: Final = "metrics-scraper"
REASON: Final = "ScrapeFailed"
SCRAPES_AT_ONCE: Final = 32
TIMEOUT_MAX_S: Final = 10.0
INLINE_CHARACTERS: Final = 32 * 1024
"""A body that is longer is parsed in a thread: parsing this much takes about 5 ms."""

_OBJECT_LABELS: Final = ("service", "deployment", "ingress")
"""The labels of samples that name an object of that kind, in the pod's namespace."""
_log = logging.getLogger(__name__)

Locate = Callable[[Object, int], tuple[str, int] | None]
"""From a pod and a containerPort to the address and port to connect to; None as long as the pod has no address."""

PodKey = tuple[str, str]
"""Namespace and name."""


class Fetch(Protocol):
    """`ScrapeClient.get`, or a fake of it."""

    async def __call__(self, url: URL, timeout_s: float) -> tuple[str, str]:
        """The body and its Content-Type. Raises ScrapeError."""
        ...


@dataclass(slots=True)
class _ScrapedPod:
    """A running pod that is to be scraped.

    Attributes:
        pod: the core/v1 Pod in its newest version.
        target: where to scrape it; None if its annotations are invalid, and `reported_failure` is the reason.
        rates: the rates of its counters, from the former scrapes.
        reported_failure: the message of the last failure that was reported; empty after a success.
    """

    pod: Object
    target: ScrapeTarget | None
    rates: CounterRates[tuple[str, Labels]] = field(default_factory=CounterRates)
    reported_failure: str = ""


class Scraper:
    """Scrapes the pods of all namespaces in rounds, and puts their series into `index`.

    Args:
        registry: where pods are watched.
        kinds: resolves the objects that labels name.
        locate: returns where to connect to a pod.
        fetch: sends the HTTP request of a scrape.
        clock: instants of scrapes, and the delay between rounds.
        interval_s: seconds between the starts of two rounds; also the timeout of a scrape, up to `TIMEOUT_MAX_S`.

    Attributes:
        index: the series of the last successful scrape of each pod; the owner of a series is the pod's `PodKey`.
    """

    def __init__(
        self,
        registry: Registry,
        kinds: DescribableKinds,
        locate: Locate,
        fetch: Fetch,
        *,
        clock: Clock,
        interval_s: float,
    ) -> None:
        self.index = MetricIndex()
        self._registry = registry
        self._kinds = kinds
        self._locate = locate
        self._fetch = fetch
        self._clock = clock
        self._interval_s = interval_s
        self._events = EventRecorder(registry, COMPONENT, clock)
        self._pods: dict[PodKey, _ScrapedPod] = {}
        self._scrape_slots = asyncio.Semaphore(SCRAPES_AT_ONCE)

    async def run(self) -> None:
        """Scrape until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_pods())
            tasks.create_task(self._scrape_repeatedly())

    @property
    def targets(self) -> list[Object]:
        """The scraped pods as target groups of Prometheus' HTTP service discovery."""
        located = []
        for scraped in self._pods.values():
            target = scraped.target
            if target is not None and (address := self._locate(scraped.pod, target.port)) is not None:
                located.append((scraped.pod, target, address))
        return service_discovery.target_groups(located)

    async def _scrape_repeatedly(self) -> None:
        """Scrape all pods in each interval; a round that takes longer is followed by the next at once."""
        while True:
            started_s = self._clock.monotonic_s()
            await asyncio.gather(*(self._scrape_pod(key, scraped_pod) for key, scraped_pod in list(self._pods.items())))
            await self._clock.sleep(self._interval_s - (self._clock.monotonic_s() - started_s))

    async def _watch_pods(self) -> None:
        async for change in self._registry.watch_renewed("pods", on_watch=self._forget_deleted):
            self._update_pod(change)

    def _forget_deleted(self) -> None:
        """Remove pods that were deleted between two watches."""
        for key in [key for key in self._pods if self._registry.find("pods", *key) is None]:
            self._forget_pod(key)

    def _update_pod(self, change: ObjectEvent) -> None:
        """Add, update or remove the pod of a watch event, by its phase and annotations."""
        pod, key = change.object, _pod_key(change.object)
        scraped_pod = self._pods.get(key)
        if scraped_pod is not None and scraped_pod.pod["metadata"]["uid"] != pod["metadata"]["uid"]:
            self._forget_pod(key)
            scraped_pod = None
        if change.type == "DELETED" or (pod.get("status") or {}).get("phase") != "Running":
            self._forget_pod(key)
            return
        try:
            target = target_of(pod)
        except TargetError as error:
            invalid_pod = self._pods.setdefault(key, _ScrapedPod(pod, None))  # a known one keeps `reported_failure`
            invalid_pod.pod, invalid_pod.target = pod, None
            self._mark_failed(key, invalid_pod, str(error))
            return
        if target is None:
            self._forget_pod(key)
        elif scraped_pod is None:
            self._pods[key] = _ScrapedPod(pod, target)
        else:
            scraped_pod.pod, scraped_pod.target = pod, target

    def _forget_pod(self, key: PodKey) -> None:
        """Stop scraping a pod, and remove its series."""
        if self._pods.pop(key, None) is not None:
            self.index.put(key, ())

    async def _scrape_pod(self, key: PodKey, scraped_pod: _ScrapedPod) -> None:
        """Scrape one pod and index its series; does nothing for a pod without a target or an address."""
        target = scraped_pod.target
        if target is None or (address := self._locate(scraped_pod.pod, target.port)) is None:
            return
        async with self._scrape_slots:
            try:
                body, content_type = await self._fetch(target.url(*address), min(self._interval_s, TIMEOUT_MAX_S))
                samples = await self._parse_body(body, content_type)
            except (ScrapeError, ExpositionError) as error:
                if self._pods.get(key) is scraped_pod:
                    self._mark_failed(key, scraped_pod, str(error))
                return
        if self._pods.get(key) is not scraped_pod:  # the pod was deleted or replaced during the scrape
            return
        scraped_pod.reported_failure = ""
        self.index.put(key, list(self._pod_series(key, scraped_pod, samples)))

    async def _parse_body(self, body: str, content_type: str) -> list[ExposedSample]:
        """The samples of a body, parsed in a thread if it is long. Raises ExpositionError."""
        now_s = self._clock.now_ns() / NANOSECONDS
        if len(body) <= INLINE_CHARACTERS:
            return exposition.parse(body, content_type, now_s)
        return await asyncio.to_thread(exposition.parse, body, content_type, now_s)

    def _mark_failed(self, key: PodKey, scraped_pod: _ScrapedPod, reason: str) -> None:
        """Remove the series of a pod, and report the reason unless it is that of the previous failure."""
        self.index.put(key, ())
        if scraped_pod.reported_failure == reason:
            return
        scraped_pod.reported_failure = reason
        _log.warning("pod %s/%s cannot be scraped: %s", *key, reason)
        reference = {"apiVersion": "v1", "kind": "Pod", "metadata": scraped_pod.pod["metadata"]}
        self._events.event(reference, "Warning", REASON, f"metrics cannot be scraped: {reason}")

    def _pod_series(self, key: PodKey, scraped_pod: _ScrapedPod, samples: Iterable[ExposedSample]) -> Iterable[Series]:
        """The series of a scrape: one of the pod for each value, and one of each object that a label names."""
        namespace, name = key
        pod_object = self._kinds.described(f"pod/{name}", namespace)
        for metric, labels, metric_value, window_s in _metric_values(
            scraped_pod.rates, samples, self._clock.monotonic_s()
        ):
            series = Series(metric, pod_object, labels, Constant(_milli_quantity(metric_value)), window_s=window_s)
            yield series
            for kind in _OBJECT_LABELS:
                if labels.get(kind) and "/" not in labels[kind]:  # else no object can have the name
                    described = self._kinds.described(f"{kind}/{labels[kind]}", namespace)
                    yield Series(metric, described, labels, series.schedule, window_s=window_s)


def _metric_values(
    rates: CounterRates[tuple[str, Labels]], samples: Iterable[ExposedSample], at_s: float
) -> Iterable[tuple[str, Mapping[str, str], float, int | None]]:
    """Metric, labels, value and window in seconds (None for a gauge); a counter's value is its rate per second."""
    counters = []
    for sample in samples:
        if sample.is_counter:
            counters.append(((sample.metric, sample.labels), sample.value))
        else:
            yield sample.metric, dict(sample.labels), sample.value, None
    for (metric, labels), rate in rates.observe(counters, at_s).items():
        yield metric, dict(labels), rate.per_second, max(round(rate.window_s), 1)


def _milli_quantity(metric_value: float) -> Quantity:
    """A value in whole thousandths, cut towards zero, as the Prometheus adapter writes values."""
    return Quantity.from_milli(trunc(metric_value * 1000))


def _pod_key(pod: Object) -> PodKey:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
