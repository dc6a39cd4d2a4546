"""Wires the parts of a controller; called by the command line, by `podscaler.testing` and by benchmarks.

`new_controller` makes a controller that works on one API server. `podscaler explain` calls `api_metrics` and
`shared_metrics` alone. A new background task: add it to `_Wiring._make_services`.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from podscaler.base import concurrency
from podscaler.base.clock import Clock
from podscaler.base.concurrency import Slots, WithoutSlot
from podscaler.controller.coexistence import standby
from podscaler.controller.coexistence.comparison import DecisionComparison
from podscaler.controller.coexistence.standby import WriteGate
from podscaler.controller.controller import Controller, ControllerServices, ControllerStatus, Service
from podscaler.controller.early_syncs import Reactor
from podscaler.controller.history.config_map_store import ConfigMapHistoryStore
from podscaler.controller.history.history_maps import HistoryMaps
from podscaler.controller.history.store import HistoryStore
from podscaler.controller.informers.autoscaler_informer import AutoscalerInformer
from podscaler.controller.informers.controller_informers import ControllerInformers
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.other_controllers import OtherControllers
from podscaler.controller.informers.scale_client import ScaleClient
from podscaler.controller.informers.target_informer import TargetInformer
from podscaler.controller.options import effective_settings
from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.queue import MeteredQueue
from podscaler.controller.reconcile.autoscaler_state import AutoscalerStates
from podscaler.controller.reconcile.event_recorder import AutoscalerEventRecorder
from podscaler.controller.reconcile.observer import Observer, SyncSources
from podscaler.controller.reconcile.reconcile import AutoscalerReconciler, SyncWrites
from podscaler.controller.reconcile.status_writer import StatusWriter
from podscaler.controller.reconcile.sync_reporter import SyncReporter
from podscaler.controller.recording.recording import Recording
from podscaler.controller.telemetry.server_health import ServerHealth
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.controller.work_assignment import AutoscalerCleanup, LeaseHandover, RunningSyncs, WorkAssignment
from podscaler.controller.worker import KeyProcessor, SyncWorker
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.metrics.concurrency_limiter import LimitedMetricsSource
from podscaler.metrics.heapster import HeapsterMetricsSource
from podscaler.metrics.listed_pod_metrics import KnownPods, ListedMetricsSource
from podscaler.metrics.metrics_apis import APIMetricsSource
from podscaler.metrics.queries import MetricsSource
from podscaler.metrics.shared_queries import SharedMetricsSource
from podscaler.sources.cluster_sources import ClusterSources
from podscaler.sources.direct_metrics import DirectMetricsSource, DirectSources


def new_controller(
    client: Client,
    settings: ControllerSettings,
    clock: Clock,
    *,
    metrics: MetricsSource | None = None,
    recording: Recording | None = None,
    rng: random.Random | None = None,
) -> Controller:
    """A controller that is wired and whose `run` is not called yet.

    Args:
        client: the API server's client; the caller closes it.
        settings: the values of the flags.
        metrics: the source of metrics; None: the same API server (`api_metrics`).
        recording: records every sync; the caller closes it; None: no recording.
        rng: for jitter and for the correlation of events; None: a new one.
    """
    cluster = _Cluster(client, settings, clock, rng or random.Random(), Slots(settings.concurrency_slots))
    return _Wiring(cluster, recording or Recording(), metrics).make_controller()


def api_metrics(client: Client, discovery: Discovery, settings: ControllerSettings, clock: Clock) -> MetricsSource:
    """The metrics APIs of an API server, or Heapster behind its proxy, where the settings name that."""
    if settings.heapster is not None:
        return HeapsterMetricsSource(client, settings.heapster, clock)
    return APIMetricsSource(client, discovery, version_period_s=settings.sync_period_s)


def shared_metrics(
    source: MetricsSource,
    settings: ControllerSettings,
    clock: Clock,
    *,
    without_slot: WithoutSlot = concurrency.keep_slot,
    direct: DirectSources | None = None,
) -> MetricsSource:
    """A source that limits concurrent requests, and that responds to equal queries of one tick with one response.

    Args:
        without_slot: entered during waits, so that another sync can use the concurrency slot.
        direct: responds to queries for the external metrics of MetricSources; None if they are requested like others.
    """
    limited: MetricsSource = LimitedMetricsSource(source, clock)
    if direct is not None:
        limited = DirectMetricsSource(direct, limited)
    return SharedMetricsSource(limited, clock, fresh_s=settings.tick_s, without_slot=without_slot)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The arguments of `new_controller`, and the parts that are made from them alone.

    Attributes:
        slots: the concurrency slots of syncs.
    """

    client: Client
    settings: ControllerSettings
    clock: Clock
    rng: random.Random
    slots: Slots

    def make_informers(self, *, with_json: bool) -> tuple[ControllerInformers, WriteGate]:
        """The informers, and the gate that blocks writes while another controller is at work."""
        client, settings, clock, other_controllers = self.client, self.settings, self.clock, None
        if settings.other_controller != standby.IGNORE and HPA in settings.kinds:
            other_controllers = OtherControllers(client, clock, own=settings.field_manager)
        autoscalers = AutoscalerInformer(client, settings, clock, rng=self.rng, other_controllers=other_controllers)
        gate = WriteGate(
            is_dry_run=settings.dry_run,
            other_controllers=other_controllers,
            policy=settings.other_controller,
            is_current=autoscalers.is_current,
        )
        rules = settings.decision.emulation
        return ControllerInformers(client, autoscalers, rules, clock=clock, rng=self.rng, with_json=with_json), gate

    def make_metric_sources(self, gate: WriteGate) -> ClusterSources | None:
        """Reads the MetricSources of the cluster; None with `--metric-sources=false`."""
        if not self.settings.metric_sources:
            return None
        return ClusterSources(
            self.client,
            self.clock,
            self.rng,
            folder=self.settings.metric_source_folder,
            fresh_s=self.settings.tick_s,
            may_write=lambda: not gate.has_never_allowed_writes,
        )

    def make_sources(
        self,
        informers: ControllerInformers,
        targets: TargetInformer,
        metrics: MetricsSource | None,
        direct: DirectSources | None,
    ) -> SyncSources:
        """What syncs read from; `metrics` None: the metrics APIs."""
        client, settings, clock, without_slot = self.client, self.settings, self.clock, self.slots.without_slot
        discovery = Discovery(client, clock)
        source = metrics or api_metrics(client, discovery, settings, clock)
        shared = shared_metrics(source, settings, clock, without_slot=without_slot, direct=direct)
        pods, pause_s = KnownPods(informers.pods.count, informers.pod_names), settings.sync_period_s
        listed_metrics = ListedMetricsSource(shared, pods, clock, tick_s=settings.tick_s, pause_s=pause_s)
        scales = ScaleClient(
            client, discovery, clock=clock, rng=self.rng, cached_scales=targets, without_slot=without_slot
        )
        return SyncSources(scales, informers.pods, listed_metrics, informers.autoscalers.conflicting)

    def make_history(self, gate: WriteGate) -> HistoryStore:
        """The store of histories; it writes nothing before the controller is allowed to write."""
        settings = self.settings
        if settings.history_namespace is None:
            return HistoryStore()
        return ConfigMapHistoryStore(
            HistoryMaps(self.client, settings.history_namespace),
            self.clock,
            writer=f"{self.rng.getrandbits(32):08x}",
            flag_window_ns=settings.downscale_stabilization_ns,
            without_slot=self.slots.without_slot,
            is_held=lambda: gate.has_never_allowed_writes,
        )


class _Wiring:
    """Makes the parts of one controller, each with those that it depends on."""

    def __init__(self, cluster: _Cluster, recording: Recording, metrics: MetricsSource | None) -> None:
        client, settings, clock = cluster.client, cluster.settings, cluster.clock
        self._cluster = cluster
        self._recording = recording
        self._telemetry = Telemetry(clock)
        self._health = ServerHealth(client, clock, self._telemetry.registry)
        self._comparison = DecisionComparison(self._telemetry, settings) if settings.compares else None
        self._telemetry.add_recording_metrics(recording)
        self._informers, self._gate = cluster.make_informers(with_json=recording.is_on)
        self._targets = TargetInformer(client, clock=clock, rng=cluster.rng)
        self._metric_sources = cluster.make_metric_sources(self._gate)
        direct = None if self._metric_sources is None else self._metric_sources.direct
        self._sources = cluster.make_sources(self._informers, self._targets, metrics, direct)
        self._recorder = AutoscalerEventRecorder(client, clock, cluster.rng)
        self._history = cluster.make_history(self._gate)
        self._states = AutoscalerStates()
        self._cleanup = self._make_cleanup()
        self._queue = MeteredQueue(clock, self._telemetry.queue, period_s=settings.sync_period_s)
        self._assignment = WorkAssignment(
            self._states,
            RunningSyncs(self._queue),
            self._queue,
            handover=LeaseHandover(self._recorder, self._history, self._cleanup, clock),
            telemetry=self._telemetry,
            wait_listed=self._informers.wait_synced,
        )

    def make_controller(self) -> Controller:
        """The controller."""
        processor = self._make_processor()
        return Controller(
            self._informers,
            self._assignment,
            processor=processor,
            services=self._make_services(processor),
            status=ControllerStatus(self._telemetry, self._health, self._gate),
            clock=self._cluster.clock,
        )

    def _make_cleanup(self) -> AutoscalerCleanup:
        """What drops the state of an autoscaler that this process no longer syncs."""
        further_cleanups = [self._gate.release, self._telemetry.drop_desired]
        if self._comparison is not None:
            further_cleanups.append(self._comparison.forget)
        return AutoscalerCleanup(self._states, self._history, self._recording, self._cluster.clock, further_cleanups)

    def _make_processor(self) -> KeyProcessor:
        """The processor of queue keys, with the reconciler and the parts that it reads from and writes to."""
        settings, clock, autoscalers = self._cluster.settings, self._cluster.clock, self._informers.autoscalers
        reporter = SyncReporter(self._telemetry, self._recorder, self._recording, self._health, self._comparison)
        statuses = StatusWriter(self._cluster.client, clock, settings.status_period_s)
        reconciler = AutoscalerReconciler(
            Observer(self._sources, self._states, clock, settings.decision),
            self._states,
            writes=SyncWrites(self._gate, autoscalers.find, self._sources.targets, statuses, self._history),
            reporter=reporter,
            clock=clock,
            flags=settings.decision,
        )
        return KeyProcessor(
            autoscalers,
            self._states,
            reconciler=reconciler,
            cleanup=self._cleanup,
            reporter=reporter,
            settings=settings,
        )

    def _make_services(self, processor: KeyProcessor) -> ControllerServices:
        """The background tasks of the controller, by the names under which the log reports them."""
        cluster, assignment = self._cluster, self._assignment
        worker = SyncWorker(
            self._queue, cluster.slots, assignment, processor=processor, telemetry=self._telemetry, clock=cluster.clock
        )
        publish = partial(
            effective_settings.keep_published,
            cluster.client,
            cluster.settings,
            cluster.clock,
            has_begun=assignment.has_begun,
            is_held=lambda: self._gate.has_never_allowed_writes,
        )
        always: dict[str, Service] = {
            "the watch of autoscalers": self._informers.autoscalers.run,
            "the watch of pods": self._informers.run_pods,
            "the watches of targets": self._targets.run,
            "the recorder of events": self._recorder.run,
            "the recording": self._recording.run,
            "the history store": self._history.run,
            "the publication of settings": publish,
        }
        if self._metric_sources is not None:
            always["the metric sources"] = self._metric_sources.run
        working: dict[str, Service] = {"the worker": worker.run}
        if cluster.settings.reacts:
            working["the reactor"] = self._run_reactor
        close = self._history.close
        summarize = None if self._comparison is None else self._comparison.log_summary
        return ControllerServices(always, working, flush=self._recorder.flush, close=close, summarize=summarize)

    async def _run_reactor(self) -> None:
        """Queue autoscalers whose usage changed (`--react-to-changes`), until cancelled."""
        reactor = Reactor(self._sources, self._states, self._cluster.clock, self._cluster.settings)
        await reactor.run(self._assigned_autoscalers, self._queue.add)

    def _assigned_autoscalers(self) -> Iterator[Autoscaler]:
        """Those autoscalers of the informer that this process syncs."""
        return (autoscaler for autoscaler in self._informers.autoscalers if self._assignment.is_mine(autoscaler.key))
