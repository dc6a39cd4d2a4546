"""What a sync works with besides the autoscaler: the API server's parts, metrics, events, telemetry, time.

The loop makes one, the reconciler uses it.
"""

import random
from dataclasses import dataclass

from podscaler.clock import Clock
from podscaler.controller.archive import Archive, NoArchive
from podscaler.controller.config_map_archive import ConfigMapArchive
from podscaler.controller.events import Recorder
from podscaler.controller.history_maps import HistoryMaps
from podscaler.controller.recording import NoRecording, Recording
from podscaler.controller.settings import Settings
from podscaler.controller.target import Targets
from podscaler.controller.telemetry import Telemetry
from podscaler.kube.client import Client
from podscaler.kube.discovery import Discovery
from podscaler.metrics.api import APIMetricsSource
from podscaler.metrics.shared import SharedMetricsSource
from podscaler.metrics.source import MetricsSource


@dataclass(frozen=True, slots=True)
class Surroundings:
    """See the module; `of` makes the usual ones."""

    client: Client
    targets: Targets
    metrics: MetricsSource
    recorder: Recorder
    telemetry: Telemetry
    recording: Recording
    archive: Archive
    clock: Clock

    @classmethod
    def of(
        cls,
        client: Client,
        settings: Settings,
        clock: Clock,
        *,
        metrics: MetricsSource | None,
        recording: Recording | None = None,
        rng: random.Random,
    ) -> "Surroundings":
        """Those of one API server; `metrics` None: its metrics APIs, `recording` None: nobody records."""
        discovery = Discovery(client, clock)
        source = metrics or APIMetricsSource(client, discovery, version_period_s=settings.sync_period_s)
        return cls(
            client=client,
            targets=Targets(client, discovery, clock=clock, rng=rng),
            metrics=SharedMetricsSource(source),
            recorder=Recorder(client, clock, rng),
            telemetry=Telemetry(clock),
            recording=recording or NoRecording(),
            archive=_archive(client, settings, clock, rng),
            clock=clock,
        )


def _archive(client: Client, settings: Settings, clock: Clock, rng: random.Random) -> Archive:
    if settings.history_namespace is None:
        return NoArchive()
    maps = HistoryMaps(client, settings.history_namespace)
    writer = f"{rng.getrandbits(32):08x}"
    return ConfigMapArchive(maps, clock, writer=writer, flag_window_ns=settings.downscale_stabilization_ns)
