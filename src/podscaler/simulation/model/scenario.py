"""Defines the input of a simulation: autoscalers, workloads, metrics, the cluster, and events with their instants.

`podscaler.simulation.engine` runs it; scenario files, recordings and traces are converted to it. Every `_ms` of an
instant counts from the start of the simulation; `_milli` are thousandths (of a core, of a metric's unit).
"""

from typing import Literal

import msgspec

from podscaler.core.model import settings as core_settings
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.simulation.model.distributions import DurationDistribution, fixed
from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.model.workloads import WorkloadModel

DEFAULT_START_NS = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z: the instant at which simulations start unless they state another one."""


class MetricFeed(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one Pods, Object or External metric over time.

    Attributes:
        metric: its name.
        sharing: `each`: the value of each ready pod, or of the object or the external metric; `shared`: a total that
            the ready pods share evenly.
        values: in thousandths.
        lag_ms: the delay after which the metrics API shows a value.
        object_name: `Kind/name` of the only object that has these values; empty: all objects, and other metrics.
    """

    metric: str
    values: StepSeries
    sharing: Literal["each", "shared"] = "each"
    lag_ms: int = 0
    object_name: str = ""


class MetricsServerModel(msgspec.Struct, frozen=True, kw_only=True):
    """The pipeline of resource metrics, as metrics-server has it.

    Attributes:
        resolution_ms: the time between two measurements, whose average is the sample (`--metric-resolution`).
        lag_ms: from a measurement until the metrics API shows it.
        fresh_ms: a younger pod has no sample; the first sample of an older one is its average since its start.
        dropout_ratio: the probability that a measurement of a pod fails; the pod has no sample until the next.
    """

    resolution_ms: int = 15_000
    lag_ms: int = 5_000
    fresh_ms: int = 10_000
    dropout_ratio: float = 0


class ClusterModel(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes, all alike.

    Attributes:
        nodes, max_nodes: their number at the start, and at most.
        cpu_milli, memory_bytes: what pods can request on each node (`status.allocatable`).
        provisioning: the duration in ms from the first pod that finds no room until its node is ready.
        idle_ms: how long a node is empty before it is removed.
    """

    nodes: int
    max_nodes: int
    cpu_milli: int
    memory_bytes: int
    provisioning: DurationDistribution = fixed(90_000)
    idle_ms: int = 600_000


class AutoscalerModel(msgspec.Struct, frozen=True, kw_only=True):
    """An autoscaler: its parsed spec, and the key (`WorkloadModel.key`) of the workload that it scales."""

    spec: Spec
    workload: str


class ManualScale(msgspec.Struct, frozen=True):
    """At `at_ms` a user sets the replicas of a workload."""

    at_ms: int
    workload: str
    replicas: int


class RolloutStart(msgspec.Struct, frozen=True):
    """At `at_ms` the template of a workload changes, and all its pods are replaced."""

    at_ms: int
    workload: str


class SpecEdit(msgspec.Struct, frozen=True):
    """At `at_ms` the autoscaler with the key of `spec` gets this spec."""

    at_ms: int
    spec: Spec


OUTAGE_MESSAGE = "the metrics API does not respond (an outage of the scenario)"
"""The error of every metric during its outage."""


class MetricsOutage(msgspec.Struct, frozen=True):
    """From `at_ms` until `until_ms` the API of a metric responds with an error.

    Attributes:
        metric: the name of the metric or resource; empty: all.
    """

    at_ms: int
    until_ms: int
    metric: str = ""


ScenarioEvent = ManualScale | RolloutStart | SpecEdit


class SimulationScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario; events and autoscalers refer to workloads and autoscalers of it by their keys.

    Attributes:
        duration_ms: its length; the last sync is at or before it.
        sync_period_ms: the controller's.
        first_sync_ms: the instant of the first sync.
        actuation_ms: from the write of a scale until its pods are made or removed.
        cluster: None: every pod finds room.
        seed: of all random draws; each purpose and pod has a stream of its own.
        start_ns: the instant of the start since the epoch, for timestamps; a whole second.
    """

    workloads: tuple[WorkloadModel, ...]
    autoscalers: tuple[AutoscalerModel, ...]
    duration_ms: int
    feeds: tuple[MetricFeed, ...] = ()
    metrics_server: MetricsServerModel = MetricsServerModel()
    cluster: ClusterModel | None = None
    settings: Settings = core_settings.DEFAULT
    sync_period_ms: int = 15_000
    first_sync_ms: int = 0
    actuation_ms: int = 1_000
    events: tuple[ScenarioEvent, ...] = ()
    outages: tuple[MetricsOutage, ...] = ()
    seed: int = 0
    start_ns: int = DEFAULT_START_NS
