"""Explains an autoscaler of a running cluster: reads and decides as its controller would, and writes nothing.

`podscaler.cli.explain.explain` calls `explain_one` and `summarize_all`; the commands of `podscaler.cli.diagnosis` use
the classes. Reading and deciding are the controller's own code (`Observer`, `podscaler.core.decide`). The settings and
the history of earlier syncs (recommendations, scale events) come from `podscaler.cli.explain.assumed_controller`. What
is read once for the whole command belongs to Cluster, once for a namespace to NamespaceCache.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from podscaler.api.machinery import instants, selectors
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.base.version import __version__
from podscaler.cli.commands import all_pages
from podscaler.cli.explain import explain_autoscalers
from podscaler.cli.explain.assumed_controller import AssumedController, SettingsFinder
from podscaler.cli.explain.explain_autoscalers import Autoscalers
from podscaler.cli.explain.explain_request import ExplainRequest, ExplainResult, SettingsWithOrigin
from podscaler.cli.explain.explain_sources import ReportedSourceReader
from podscaler.cli.explain.managing_controller import ManagingController
from podscaler.cli.options import heapster
from podscaler.controller import assembly
from podscaler.controller.informers import observed_objects
from podscaler.controller.informers.observed_objects import Autoscaler, CachedPod
from podscaler.controller.informers.scale_client import ScaleClient
from podscaler.controller.leaderelection import lease, observed_holder
from podscaler.controller.leaderelection.lease import Lease
from podscaler.controller.options.autoscaler_kinds import AutoscalerKind
from podscaler.controller.reconcile.autoscaler_state import AutoscalerStates
from podscaler.controller.reconcile.observer import Observer, SyncSources
from podscaler.core import decide
from podscaler.core.model import failure_policy
from podscaler.core.model import spec as specs
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.history import History, Recommendation
from podscaler.core.model.observation import Observation
from podscaler.explain import comparison, decide_again, explained, what_if
from podscaler.explain.decide_again import DecisionFacts
from podscaler.explain.explained import Explanation
from podscaler.explain.explanation_parts import TraceSource
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.kube.informers.cache import Cache, Key
from podscaler.kube.informers.reflector import WatchSource
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.transport import TransportError
from podscaler.metrics.queries import MetricsSource
from podscaler.sources.direct_metrics import DirectSources
from podscaler.sources.informer import MetricSourceFetcher
from podscaler.sources.open_sources import OpenSources

log = logging.getLogger(__name__)

CONCURRENT_READS_MAX = 8
"""How many targets are read, and how many autoscalers explained, at the same time."""
HISTORY_WITHOUT_EFFECT = History(recommendations=(Recommendation(0, instants.ZERO),))
"""Its only recommendation is older than any stabilization window, and takes the place of the current replicas, which a
decision with an empty history takes as the first recommendation."""


class Summary(NamedTuple):
    """One autoscaler, `namespace/name`, in one sentence; `assumption` is empty if no settings are assumed."""

    autoscaler: str
    sentence: str
    assumption: str = ""


async def explain_one(
    config: Config, request: ExplainRequest, controller: AssumedController, clock: Clock
) -> ExplainResult:
    """The requested explanation, from the cluster of `config`.

    Raises UsageError if the cluster cannot be reached, does not know the user, has no such autoscaler or several, or
    the what-if cannot be applied; StatusError for objects that may not be read.
    """
    async with connected(config, clock) as client:
        namespace = request.namespace or config.namespace
        assumed_settings = controller.settings.decision
        autoscalers = await explain_autoscalers.read_autoscalers(client, namespace, request.kind, assumed_settings)
        autoscaler = autoscalers.get_requested(request, namespace)
        effective = await SettingsFinder(client, controller).find(autoscalers.find_status_write(autoscaler))
        async with open_cluster(client, controller, clock) as cluster:
            namespace_cache = NamespaceCache(cluster, autoscalers)
            return await AutoscalerExplainer(cluster, namespace_cache, effective).explain(request, autoscaler)


async def summarize_all(
    config: Config, request: ExplainRequest, controller: AssumedController, clock: Clock
) -> list[Summary]:
    """One sentence for each requested autoscaler, in the order of namespaces and names.

    Raises UsageError if the cluster cannot be reached or does not know the user, StatusError where autoscalers may
    not be listed. A failure about one autoscaler is its sentence.
    """
    async with connected(config, clock) as client, open_cluster(client, controller, clock) as cluster:
        namespace, assumed_settings = request.namespace or "", controller.settings.decision
        listed = await explain_autoscalers.read_autoscalers(client, namespace, request.kind, assumed_settings)
        finder, slots = SettingsFinder(client, controller), asyncio.Semaphore(CONCURRENT_READS_MAX)

        async def summarize(namespace_cache: NamespaceCache, autoscaler: Autoscaler) -> Summary:
            async with slots:
                effective = await finder.find(listed.find_status_write(autoscaler))
                explainer = AutoscalerExplainer(cluster, namespace_cache, effective)
                name = "/".join(autoscaler.key)
                try:
                    explanation = (await explainer.explain(request, autoscaler)).explanation
                except (StatusError, UsageError) as error:
                    return Summary(name, f"{name} cannot be explained: {error}")
                return Summary(explanation.autoscaler, explanation.summary, effective.assumption)

        summaries = []
        for autoscalers in listed.by_namespace():
            namespace_cache = NamespaceCache(cluster, autoscalers, are_all_explained=True)
            summaries += [summarize(namespace_cache, autoscaler) for autoscaler in autoscalers.all_of(request.kind)]
        return sorted(await asyncio.gather(*summaries))


@asynccontextmanager
async def connected(config: Config, clock: Clock, command: str = "explain") -> AsyncIterator[Client]:
    """A client of the cluster, whose User-Agent names the command.

    TransportErrors and errors 401 of the block are raised as UsageErrors: the server cannot be reached, or rejects the
    credentials. Raises UsageError for unusable certificates, too.
    """
    transport = await http_transport.connect(config, user_agent=f"podscaler/{__version__} {command}")
    client = Client(transport, clock)
    try:
        yield client
    except TransportError as error:
        raise UsageError(f"cannot reach the API server {config.server} ({config.origin}): {error.cause}") from None
    except StatusError as error:
        if error.code != 401:
            raise
        raise UsageError(
            f"the API server {config.server} does not accept the credentials of {config.origin}: {error}; "
            "they may have expired, or belong to another cluster"
        ) from None
    finally:
        await client.close()


@asynccontextmanager
async def open_cluster(client: Client, controller: AssumedController, clock: Clock) -> AsyncIterator["Cluster"]:
    """The cluster of a client; its connections to Heapster and to metric sources are closed at the end."""
    open_sources = OpenSources(client, clock)
    reader = ReportedSourceReader(open_sources, clock)
    try:
        async with heapster.open_metrics(client, controller.settings, clock) as heapster_source:
            yield Cluster.of(client, controller, clock, reader=reader, heapster_source=heapster_source)
    finally:
        await open_sources.close()


@dataclass(frozen=True, slots=True)
class Cluster:
    """What all explanations of one command share.

    Attributes:
        controller: the assumed settings, history and Leases of the controller.
        scales: reads the scale subresources of targets.
        metrics: reads the metrics APIs; equal requests are sent once.
    """

    client: Client
    controller: AssumedController
    clock: Clock
    scales: ScaleClient
    metrics: MetricsSource

    @classmethod
    def of(
        cls,
        client: Client,
        controller: AssumedController,
        clock: Clock,
        *,
        reader: ReportedSourceReader,
        heapster_source: MetricsSource | None,
    ) -> "Cluster":
        """The cluster of a client.

        Args:
            heapster_source: responds to queries in place of the metrics APIs; None: `--heapster-url` is not set.
        """
        discovery, settings = Discovery(client, clock), controller.settings
        scales = ScaleClient(client, discovery, clock=clock, rng=random.Random())
        direct_sources = DirectSources(MetricSourceFetcher(client), reader, clock, fresh_s=settings.tick_s)
        api_source = heapster_source or assembly.api_metrics(client, discovery, settings, clock)
        metrics = assembly.shared_metrics(api_source, settings, clock, direct=direct_sources)
        return cls(client, controller, clock, scales, metrics)


class NamespaceCache:
    """The autoscalers of one namespace, the selectors of their targets, and the pods; each is read once.

    Args:
        autoscalers: the autoscalers of the namespace.
        are_all_explained: whether all of them are explained; then the pods of the namespace are listed once for all.
    """

    def __init__(self, cluster: Cluster, autoscalers: Autoscalers, *, are_all_explained: bool = False) -> None:
        self.autoscalers = autoscalers
        self._scales = cluster.scales
        self._slots = asyncio.Semaphore(CONCURRENT_READS_MAX)
        self._selectors: dict[tuple[AutoscalerKind, Key], asyncio.Future[Selector | None]] = {}
        self._client = cluster.client
        self._reads_all_pods = are_all_explained and len(autoscalers.all_of(None)) > 1
        self._pods_by_version: dict[str, asyncio.Future[list[CachedPod]]] = {}

    async def read_selector(self, autoscaler: Autoscaler) -> Selector | None:
        """The selector of an autoscaler's target; None if it cannot be read (its own explanation has the reason)."""
        identity = (autoscaler.kind, autoscaler.key)
        if identity not in self._selectors:
            self._selectors[identity] = asyncio.ensure_future(self._request_selector(autoscaler))
        return await self._selectors[identity]

    async def read_pods(self, namespace: str, selector: Selector, emulation: Emulation) -> list[CachedPod]:
        """The pods that match the selector, as this version of Kubernetes reads them. Raises StatusError."""
        if not self._reads_all_pods:
            return await self._request_pods(namespace, str(selector), emulation)
        version = emulation.version
        if version not in self._pods_by_version:
            self._pods_by_version[version] = asyncio.ensure_future(self._request_pods(namespace, "", emulation))
        return [pod for pod in await self._pods_by_version[version] if selector.matches(pod.core_pod.labels)]

    async def _request_pods(self, namespace: str, selector_text: str, emulation: Emulation) -> list[CachedPod]:
        """The pods of a namespace that match the selector; empty for all."""
        query = [("labelSelector", selector_text)] if selector_text else []
        path = "/api/v1" + urls.path("namespaces", namespace, "pods")
        return await all_pages.read(
            self._client, replace(observed_objects.pod_source(emulation), path=path, query=query)
        )

    async def _request_selector(self, autoscaler: Autoscaler) -> Selector | None:
        """The selector of an autoscaler's target; None if it cannot be read."""
        try:
            reference = autoscaler.wire.spec.scale_target_ref
            async with self._slots:
                target = await self._scales.read(autoscaler.metadata.namespace, reference)
            selector_text = target.scale.status.selector
            return selectors.parse(selector_text) if selector_text else None
        except (StatusError, SelectorError):
            return None


class AutoscalerExplainer:
    """Explains one autoscaler.

    Args:
        namespace_cache: of the autoscaler's namespace.
        effective: the settings of decisions, as SettingsFinder finds them.
    """

    def __init__(self, cluster: Cluster, namespace_cache: NamespaceCache, effective: SettingsWithOrigin) -> None:
        self._client = cluster.client
        self._controller = cluster.controller
        self._clock = cluster.clock
        self._namespace_cache = namespace_cache
        self._autoscalers = namespace_cache.autoscalers
        self._states = AutoscalerStates()
        self._pods: Cache[CachedPod] = Cache()
        self._effective = effective
        self._settings = effective.decision
        kinds = cluster.controller.settings.kinds
        sources = SyncSources(
            cluster.scales,
            self._pods,
            cluster.metrics,
            lambda autoscaler: self._autoscalers.conflicting_hpa_keys(autoscaler, kinds),
        )
        self._observer = Observer(sources, self._states, cluster.clock, self._settings)

    async def explain(self, request: ExplainRequest, autoscaler: Autoscaler) -> ExplainResult:
        """The explanation, with a comparison if the request has a what-if. Raises UsageError, StatusError."""
        await self._fill_caches(autoscaler, self._autoscalers.managed_with(autoscaler, self._controller.settings.kinds))
        observation = (await self._observer.observe(autoscaler)).observation
        stored_history = await self._controller.history.find(self._client, autoscaler)
        source = TraceSource.CLUSTER if stored_history is not None else TraceSource.CLUSTER_WITHOUT_HISTORY
        now_ns, settings = self._clock.now_ns(), self._settings
        wire = failure_policy.with_annotations(autoscaler.wire.spec, autoscaler.metadata.annotations or {})
        facts = DecisionFacts(
            wire, *autoscaler.key, observation, stored_history or HISTORY_WITHOUT_EFFECT, now_ns, settings
        )
        manager = await self._managing_controller(autoscaler, now_ns)
        decision = decide.decide(autoscaler.spec, observation, facts.prior_history, now_ns, settings)
        explanation = _with_waiting_reason(explained.of_decision(decision, source), manager.waiting_reason)
        manager = replace(
            manager, differences=comparison.contradictions(decision, autoscaler.wire.status, explanation.verdict)
        )
        if not request.assignments:
            return ExplainResult(explanation, manager=manager, settings=self._effective)
        what_if_facts = await self._with_metrics(request, autoscaler, facts)
        what_if_decision = decide_again.decide_again(request.assignments, what_if_facts)
        what_if_explanation = explained.of_decision(what_if_decision, source)
        assignments_text = ",".join(str(assignment) for assignment in request.assignments)
        return ExplainResult(
            explanation, comparison.of(explanation, what_if_explanation, assignments_text), manager, self._effective
        )

    async def _managing_controller(self, autoscaler: Autoscaler, now_ns: int) -> ManagingController:
        """The controller that manages the autoscaler; without a Lease if none may be read. Raises TransportError."""
        namespace, election = self._controller.lease_namespace, self._controller.election
        holding = None
        try:
            leases = await self._read_leases(namespace, election)
            holding = observed_holder.find(leases, election, autoscaler.key, now_ns=now_ns)
        except TransportError:
            raise
        except StatusError as error:
            log.info("the holder of its Lease is not known: %s", error)
        return ManagingController(
            observed_at_ns=now_ns,
            waiting_reason=self._autoscalers.waiting_reason(autoscaler),
            status_write=self._autoscalers.find_status_write(autoscaler),
            lease=holding,
            lease_namespace=namespace,
        )

    async def _read_leases(self, namespace: str, election: str) -> list[Lease]:
        """The Leases of an election in a namespace."""
        query = [("labelSelector", f"{lease.ELECTION}={election}")]
        source = WatchSource(lease.path(namespace), lease.RESOURCE, lease.parse, query)
        return await all_pages.read(self._client, source)

    async def _with_metrics(
        self, request: ExplainRequest, autoscaler: Autoscaler, facts: DecisionFacts
    ) -> DecisionFacts:
        """The facts, with the metrics that the what-if needs if the present spec (disabled, say) needed none."""
        if any(measurement is not None for measurement in facts.observation.metrics):
            return facts
        wire, settings = what_if.apply(request.assignments, facts.wire, facts.flags)
        spec = specs.parse(facts.namespace, facts.name, wire, settings.emulation)
        changed_wire = msgspec.structs.replace(autoscaler.wire, spec=wire)
        changed_autoscaler = replace(autoscaler, wire=changed_wire, spec=spec)
        observation: Observation = (await self._observer.observe(changed_autoscaler)).observation
        return replace(facts, observation=msgspec.structs.replace(facts.observation, metrics=observation.metrics))

    async def _fill_caches(self, autoscaler: Autoscaler, managed: Sequence[Autoscaler]) -> None:
        """Read what the controller caches: the pods of the target, and the selectors of all autoscalers (`managed`)."""
        for managed_autoscaler in managed:
            self._states.register(managed_autoscaler.key)
        selectors_read = await asyncio.gather(
            *[self._namespace_cache.read_selector(managed_autoscaler) for managed_autoscaler in managed]
        )
        own_selector = await self._namespace_cache.read_selector(autoscaler)
        for managed_autoscaler, selector in zip(managed, selectors_read, strict=True):
            if selector is not None and managed_autoscaler.key != autoscaler.key:
                self._states.keep_selector(self._states.of(managed_autoscaler.key), selector)
        if own_selector is not None:
            namespace, emulation = autoscaler.metadata.namespace, self._settings.emulation
            pods = await self._namespace_cache.read_pods(namespace, own_selector, emulation)
            self._pods.replace(pods, version="")  # no watch goes on from it


def _with_waiting_reason(explanation: Explanation, waiting_reason: str) -> Explanation:
    """The explanation, whose summary begins with the reason why the controller does nothing yet, if it is not empty."""
    if not waiting_reason:
        return explanation
    summary = f"{explanation.autoscaler} is left alone for now ({waiting_reason}); else: {explanation.summary}"
    return msgspec.structs.replace(explanation, summary=summary)
