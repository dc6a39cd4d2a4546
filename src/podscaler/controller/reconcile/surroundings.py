"""What a sync works with besides the autoscaler: the API server's parts, metrics, events, telemetry, time.

The loop makes one, the reconciler uses it.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from podscaler.base.clock import Clock
from podscaler.base.concurrency import Away, Slots
from podscaler.controller.coexistence.comparison import DecisionComparison
from podscaler.controller.coexistence.standby import ALWAYS_WRITES, Standing
from podscaler.controller.history.config_map_store import ConfigMapArchive
from podscaler.controller.history.history_maps import HistoryMaps
from podscaler.controller.history.read_only_store import HeldArchive
from podscaler.controller.history.store import Archive, NoArchive
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.reconcile.events import Recorder
from podscaler.controller.reconcile.writer import ClusterWriter, Writer
from podscaler.controller.recording.recording import NoRecording, Recording
from podscaler.controller.scales.target import Targets
from podscaler.controller.scales.target_informer import FollowedTargets
from podscaler.controller.telemetry.server_health import ServerHealth
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.kube.informers.cache import Key
from podscaler.metrics.api import APIMetricsSource
from podscaler.metrics.concurrency_limiter import LimitedMetricsSource
from podscaler.metrics.listed import KnownPods, ListedMetricsSource
from podscaler.metrics.queries import MetricsSource
from podscaler.metrics.shared import SharedMetricsSource


def _nobody(autoscaler: Autoscaler) -> Iterable[Key]:
    del autoscaler
    return ()


def _unknown(key: Key) -> Autoscaler | None:
    del key
    return None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """See the module; `of` makes the usual ones.

    Attributes:
        rivals: the autoscalers that nobody here looks after and that scale the same target.
        find_latest: an autoscaler as it is now; None: it is gone, or nobody knows.
        comparison: what decisions are compared with while the controller stands by; None: with nothing.
    """

    targets: Targets
    followed: FollowedTargets
    writer: Writer
    turns: Slots
    metrics: MetricsSource
    recorder: Recorder
    telemetry: Telemetry
    recording: Recording
    archive: Archive
    clock: Clock
    health: ServerHealth
    standing: Standing = ALWAYS_WRITES
    rivals: Callable[[Autoscaler], Iterable[Key]] = _nobody
    find_latest: Callable[[Key], Autoscaler | None] = _unknown
    comparison: DecisionComparison | None = None

    @classmethod
    def of(
        cls,
        client: Client,
        settings: ControllerSettings,
        clock: Clock,
        *,
        metrics: MetricsSource | None,
        recording: Recording | None = None,
        rng: random.Random,
    ) -> "Surroundings":
        """Those of one API server; `metrics` None: its metrics APIs, `recording` None: nobody records."""
        telemetry = Telemetry(clock)
        health = ServerHealth(client, clock, telemetry.registry)
        discovery = Discovery(client, clock)
        source = metrics or APIMetricsSource(client, discovery, version_period_s=settings.sync_period_s)
        turns = Slots(settings.turns)
        followed = FollowedTargets(client, clock=clock, rng=rng)
        targets = Targets(client, discovery, clock=clock, rng=rng, known=followed, away=turns.away)
        limited = LimitedMetricsSource(source, clock)
        return cls(
            targets=targets,
            followed=followed,
            writer=ClusterWriter(client, targets),
            turns=turns,
            metrics=SharedMetricsSource(limited, clock, fresh_s=settings.tick_s, away=turns.away),
            recorder=Recorder(client, clock, rng),
            telemetry=telemetry,
            recording=recording or NoRecording(),
            archive=_archive(client, settings, clock, rng=rng, away=turns.away),
            clock=clock,
            health=health,
        )

    def listing(self, pods: KnownPods, settings: ControllerSettings) -> "Surroundings":
        """The same, with the metrics of pods listed for whole namespaces where that costs less."""
        listed = ListedMetricsSource(
            self.metrics, pods, self.clock, tick_s=settings.tick_s, pause_s=settings.sync_period_s
        )
        return replace(self, metrics=listed)

    def forget(self, key: Key) -> None:
        """A sync found the autoscaler gone."""
        self.archive.forget(key)
        self._let_go(key)

    def lay_down(self, key: Key) -> None:
        """Another process looks after the autoscaler from now on."""
        self.archive.drop(key)
        self._let_go(key)

    def _let_go(self, key: Key) -> None:
        """Drop what is known of an autoscaler besides its history."""
        self.standing.lay_down(key)
        self.telemetry.undesired(key)
        if self.comparison is not None:
            self.comparison.forget(key)

    def reading(self, find_latest: Callable[[Key], Autoscaler | None]) -> "Surroundings":
        """The same, with a way to see what autoscalers are now."""
        return replace(self, find_latest=find_latest)

    def standing_by(
        self, standing: Standing, rivals: Callable[[Autoscaler], Iterable[Key]], settings: ControllerSettings
    ) -> "Surroundings":
        """The same, for a controller that may have to stand by, among autoscalers that others look after."""
        return replace(
            self,
            standing=standing,
            rivals=rivals,
            archive=HeldArchive(self.archive, lambda: standing.leaves_all_alone, self.clock),
            comparison=DecisionComparison(self.telemetry, settings) if settings.compares else None,
        )


def _archive(client: Client, settings: ControllerSettings, clock: Clock, *, rng: random.Random, away: Away) -> Archive:
    if settings.history_namespace is None:
        return NoArchive()
    maps = HistoryMaps(client, settings.history_namespace)
    writer = f"{rng.getrandbits(32):08x}"
    window_ns = settings.downscale_stabilization_ns
    return ConfigMapArchive(maps, clock, writer=writer, flag_window_ns=window_ns, away=away)
