"""Makes a scenario out of a recording of one autoscaler: its spec, its workload, and the demand that was observed.

Called by `podscaler backtest`, and by `podscaler.simulation.fleet.recorded_partitions` for each autoscaler of a fleet.
Lines are read one after the other; memory grows by one observation for each sync, not by its pods.
`RecordedWorkload.assumptions` states the values that a recording lacks, and that are assumed.

Source: the format of recordings (docs/recordings.md).
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from podscaler.api.machinery import selectors
from podscaler.api.typed import recording
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.api.typed.metrics import PodMetricsList
from podscaler.api.typed.recording import RecordingError
from podscaler.base.errors import UsageError
from podscaler.core.calculation import samples
from podscaler.core.model.metric_spec import ExternalMetric, ObjectMetric, PodsMetric, ResourceMetric
from podscaler.core.model.observation import Failure, Pod, PodSamples, Sample, Scale, Values
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.replay import RecordedSync, Replay
from podscaler.simulation.evaluation import demand_reconstruction, recorded_containers
from podscaler.simulation.evaluation.demand_reconstruction import Reconstruction, UsageObservation
from podscaler.simulation.evaluation.recorded_containers import CPULimits, RecordedContainers
from podscaler.simulation.model import step_series
from podscaler.simulation.model.distributions import DurationDistribution, fixed
from podscaler.simulation.model.scenario import AutoscalerModel, MetricFeed, MetricsServerModel, SimulationScenario
from podscaler.simulation.model.workloads import PodModel, ResourceLoad, WorkloadModel

_NS_PER_MS = 1_000_000
_SECOND_MS = 1_000
_ASSUMED_STARTUP_MS = 7_000  # the default launch and start-up of PodModel
_DEFAULT_PERIOD_MS = 15_000  # of the controller's syncs, and of metrics-server's measurements


class _FeedKey(NamedTuple):
    """A feed: the metric's name, `Kind/name` of its object (or empty), and whether pods share the value."""

    metric: str
    subject: str
    is_shared: bool


class RecordedSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a recording that is used.

    Attributes:
        autoscaler: `namespace/name`; empty: the only one of the recording.
        from_ns, to_ns: since the epoch; None: from the start, to the end.
        cpu_limit_milli: the CPU limit of one pod, in place of what the recording has; None: that of the recorded pods.
    """

    autoscaler: str = ""
    from_ns: int | None = None
    to_ns: int | None = None
    cpu_limit_milli: int | None = None


class RecordedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording or a monitoring system has of one autoscaler.

    Attributes:
        scenario: with the demand as its load, from the start of the observations.
        wire: the autoscaler's spec in the API's form, which candidates change.
        reconstruction: of the demand.
        assumptions: sentences about what was not observed.
    """

    scenario: SimulationScenario
    wire: HorizontalPodAutoscalerSpec
    reconstruction: Reconstruction
    assumptions: tuple[str, ...]


def read(lines: Iterable[bytes], selection: RecordedSelection) -> RecordedWorkload:
    """The workload of a recording.

    Args:
        lines: of the recording file, with their line ends; the first one that is not blank is the header.

    Raises UsageError, naming the line where one cannot be used, and where the selection has no usable sync.
    """
    reader: _Reader | None = None
    line_number = 0
    try:
        for line in lines:
            line_number += 1
            if not line or line.isspace():
                continue
            if reader is None:
                reader = _Reader(Replay(recording.read_header(line)), selection)
            else:
                reader.add(line)
    except RecordingError as error:
        raise UsageError(f"line {line_number}: {error}") from None
    except (OSError, EOFError) as error:
        raise UsageError(f"after line {line_number}: {error}") from None
    if reader is None:
        raise UsageError("line 1: the recording is empty; its first line must be a header")
    return reader.finish()


class _Reader:
    """Reads the syncs of one autoscaler line by line, and makes a `RecordedWorkload` of them.

    Args:
        replay: parses lines, with the header's settings.
    """

    def __init__(self, replay: Replay, selection: RecordedSelection) -> None:
        self._replay = replay
        self._selection = selection
        self._other_keys: set[str] = set()
        self._autoscaler_key = selection.autoscaler
        self._observations: list[UsageObservation] = []
        self._feed_points: dict[_FeedKey, list[tuple[int, int]]] = {}  # ms since the epoch, value in thousandths
        self._periods_ms: Counter[int] = Counter()
        self._windows_ms: Counter[int] = Counter()
        self._containers = RecordedContainers(replay.settings.emulation, CPULimits(selection.cpu_limit_milli))
        self._pods: list[Pod] = []
        self._start_ups_ms: dict[str, int] = {}
        self._least_age_ms: int | None = None
        self._first_sync: RecordedSync | None = None
        self._last_sync: RecordedSync | None = None
        self._last_usage_at_ms = 0

    def add(self, line: bytes) -> None:
        """Parse one line, and add its sync if it is one of the selection. Raises RecordingError."""
        sync = self._replay.parse(line)
        if sync is None:
            return
        if not self._autoscaler_key:
            self._autoscaler_key = sync.spec.key
        if sync.spec.key != self._autoscaler_key:
            self._other_keys.add(sync.spec.key)
            return
        selection = self._selection
        is_late_enough = sync.now_ns >= (selection.from_ns or 0)
        is_early_enough = selection.to_ns is None or sync.now_ns <= selection.to_ns
        if is_late_enough and is_early_enough:
            self._add_sync(sync)

    def _add_sync(self, sync: RecordedSync) -> None:
        """Add the pods, limits, usage and metric values of one sync. Raises RecordingError."""
        pod_indexes = _selected_pods(sync)
        self._pods = [sync.observation.pods[index] for index in pod_indexes]
        if self._pods:
            self._containers.add_pod(self._pods[0])
        if self._selection.cpu_limit_milli is None and pod_indexes:
            pod_json = bytes((sync.line.pods or ())[pod_indexes[0]])
            self._containers.limits = recorded_containers.read_limits(pod_json)
        if self._last_sync is not None:
            period_s = (sync.now_ns - self._last_sync.now_ns) / _NS_PER_MS / _SECOND_MS
            self._periods_ms[round(period_s) * _SECOND_MS] += 1
        self._first_sync, self._last_sync = self._first_sync or sync, sync
        self._add_start_ups(self._pods)
        usage = next(
            (metrics_list for metrics_list in sync.line.metrics or () if isinstance(metrics_list, PodMetricsList)), None
        )
        if usage is not None:
            self._add_usage(sync, usage)
        self._add_metric_values(sync)

    def _add_metric_values(self, sync: RecordedSync) -> None:
        """Add a point to the feed of each Pods, Object and External metric that could be read."""
        for metric, measurement in zip(sync.spec.metrics, sync.observation.metrics, strict=False):
            if measurement is None or isinstance(measurement, Failure):
                continue
            match metric:
                case PodsMetric() if isinstance(measurement, PodSamples):
                    total = sum(sample.value_milli for sample in measurement.samples.values())
                    self._add_feed_point(metric.identifier.name, "", total, sync, is_shared=True)
                case ObjectMetric() | ExternalMetric() if isinstance(measurement, Values):
                    total = sum(measurement.values_milli)
                    self._add_feed_point(metric.identifier.name, metric.subject, total, sync, is_shared=False)
                case _:
                    pass

    def _add_feed_point(self, name: str, subject: str, milli: int, sync: RecordedSync, *, is_shared: bool) -> None:
        feed_points = self._feed_points.setdefault(_FeedKey(name, subject, is_shared), [])
        feed_points.append((sync.now_ns // _NS_PER_MS, milli))

    def _add_start_ups(self, pods: Iterable[Pod]) -> None:
        """Keep, for each pod that is ready, the time from its start until it was ready when it was first seen so."""
        for pod in pods:
            if pod.started_at is not None and pod.ready == "True":
                self._start_ups_ms.setdefault(pod.name, max((pod.ready_changed_at - pod.started_at) // _NS_PER_MS, 0))

    def _add_usage(self, sync: RecordedSync, usage: PodMetricsList) -> None:
        """Observe the usage, unless it is that of the sync before. Raises RecordingError."""
        try:
            usage_by_pod = samples.of_resource(usage, "cpu", version=self._replay.settings.emulation).samples
            if usage_by_pod:
                self._add_observation(sync, usage, usage_by_pod)
        except ValueError as error:
            raise RecordingError(str(error)) from None

    def _add_observation(self, sync: RecordedSync, usage: PodMetricsList, cpu_samples: Mapping[str, Sample]) -> None:
        """Add the usage at the newest sample, unless the syncs before had it already.

        Args:
            cpu_samples: the CPU of each pod that was measured, by the pod's name; not empty.
        """
        newest = max(cpu_samples.values(), key=lambda sample: sample.taken_at)
        window_ms = newest.window_ns // _NS_PER_MS
        at_ms = (newest.taken_at - newest.window_ns) // _NS_PER_MS
        age_ms = (sync.now_ns - newest.taken_at) // _NS_PER_MS
        self._least_age_ms = age_ms if self._least_age_ms is None else min(self._least_age_ms, age_ms)
        if at_ms <= self._last_usage_at_ms:
            return
        self._last_usage_at_ms = at_ms
        self._windows_ms[round(window_ms / _SECOND_MS) * _SECOND_MS] += 1
        ready = {pod.name for pod in self._pods if pod.ready == "True" and not pod.is_deleting}
        cpu_milli = {pod: sample.value_milli for pod, sample in cpu_samples.items()}
        limited = self._containers.add_usage(usage, at_ms, ready, cpu_milli=cpu_milli)
        self._observations.append(
            UsageObservation(
                at_ms=at_ms,
                used_milli=sum(cpu_milli.values()),
                measured=len(cpu_samples),
                ready=len(ready),
                limited=limited,
            )
        )

    def finish(self) -> RecordedWorkload:
        """The workload.

        Raises UsageError if no sync was selected, the first one could not read the scale, none has the usage that a
        resource metric needs, or the recording has several autoscalers and the selection names none.
        """
        first_sync, last_sync = self._first_sync, self._last_sync
        if first_sync is None or last_sync is None or last_sync.line.hpa is None:
            raise UsageError(self._no_sync_message())
        if not self._selection.autoscaler and self._other_keys:
            raise UsageError(
                f"the recording has {1 + len(self._other_keys)} autoscalers; choose one with --hpa, such as "
                f"{self._autoscaler_key} or {min(self._other_keys)}"
            )
        if not self._observations:
            raise UsageError(
                f"the recording has no CPU usage of the pods of {self._autoscaler_key}, so the demand is unknown; "
                "its autoscaler needs a resource metric, or use a trace"
            )
        reconstruction = demand_reconstruction.reconstruct(self._observations, last_sync.now_ns // _NS_PER_MS)
        wire = msgspec.json.decode(bytes(last_sync.line.hpa.spec), type=HorizontalPodAutoscalerSpec)
        workload = self._make_workload(first_sync, reconstruction)
        self._check_metrics(last_sync.spec, workload)
        return RecordedWorkload(
            scenario=self._make_scenario(workload, last_sync.spec, reconstruction),
            wire=wire,
            reconstruction=reconstruction,
            assumptions=(*self._assumptions(last_sync.spec, workload), *reconstruction.sentences()),
        )

    def _no_sync_message(self) -> str:
        """The error of a selection that has no sync."""
        if self._selection.autoscaler and self._other_keys:
            return (
                f"the recording has no sync of {self._autoscaler_key}; it has {', '.join(sorted(self._other_keys)[:5])}"
            )
        return "the recording has no sync in the time that is asked for"

    def _make_workload(self, first_sync: RecordedSync, reconstruction: Reconstruction) -> WorkloadModel:
        """The workload with the replicas of the first sync. Raises UsageError if that sync could not read them."""
        scale = first_sync.observation.scale
        if not isinstance(scale, Scale):
            raise UsageError(
                f"the first sync of {self._autoscaler_key} could not read the scale; choose a later --from"
            )
        kind, _, name = first_sync.spec.reference.split("/", 2)
        memory = self._containers.memory_load(reconstruction.start_ms)
        return WorkloadModel(
            key=f"{first_sync.spec.namespace}/{name}",
            kind=kind,
            replicas=scale.replicas,
            pod=PodModel(containers=self._containers.models(), launch=fixed(0), startup=self._median_startup()),
            demands=(ResourceLoad(resource="cpu", total=reconstruction.demand), *([] if memory is None else [memory])),
        )

    def _check_metrics(self, spec: Spec, workload: WorkloadModel) -> None:
        """Raises UsageError if a resource metric has no recorded usage: it would count as 0."""
        for metric in spec.metrics:
            if isinstance(metric, ResourceMetric) and not workload.has_load(metric.resource):
                raise UsageError(
                    f"the recording has no {metric.resource} usage of the pods of {self._autoscaler_key}, which its "
                    f"metric {metric.name} needs"
                )

    def _median_startup(self) -> DurationDistribution:
        """The median of the observed start-ups, so that all candidates have the same."""
        if not self._start_ups_ms:
            return fixed(_ASSUMED_STARTUP_MS)
        return fixed(round(statistics.median(self._start_ups_ms.values())))

    def _make_scenario(self, workload: WorkloadModel, spec: Spec, reconstruction: Reconstruction) -> SimulationScenario:
        """The scenario, whose start is the second of the first observation; periods are the most frequent ones."""
        start_ms = reconstruction.start_ms // _SECOND_MS * _SECOND_MS
        resolution_ms = _most_frequent(self._windows_ms, _DEFAULT_PERIOD_MS)
        settings: Settings = self._replay.settings
        return SimulationScenario(
            workloads=(workload,),
            autoscalers=(AutoscalerModel(spec=spec, workload=workload.key),),
            duration_ms=reconstruction.end_ms - start_ms,
            feeds=tuple([self._make_feed(feed_key, start_ms) for feed_key in self._feed_points]),
            metrics_server=MetricsServerModel(
                resolution_ms=resolution_ms, lag_ms=min(max(self._least_age_ms or 0, 0), resolution_ms)
            ),
            settings=settings,
            sync_period_ms=_most_frequent(self._periods_ms, _DEFAULT_PERIOD_MS),
            start_ns=start_ms * _NS_PER_MS,
        )

    def _make_feed(self, key: _FeedKey, start_ms: int) -> MetricFeed:
        """One feed of the scenario, with instants since `start_ms` (since the epoch)."""
        points = {max(at_ms - start_ms, 0): milli for at_ms, milli in self._feed_points[key]}
        return MetricFeed(
            metric=key.metric,
            values=step_series.from_steps(points.items()),
            sharing="shared" if key.is_shared else "each",
            object_name=key.subject,
        )

    def _assumptions(self, spec: Spec, workload: WorkloadModel) -> list[str]:
        """Sentences about what the recording lacks, and what is assumed in its place."""
        sentences = []
        if workload.cpu_capacity_ucores is None:
            missing_limits = (
                "a container without CPU limit" if self._containers.limits.containers_milli else "no CPU limits"
            )
            sentences.append(f"The recording has {missing_limits}, so no pod is limited; --cpu-limit states one.")
        if not self._start_ups_ms:
            sentences.append("No pod became ready in the recording, so a pod is assumed to need 7 s.")
        else:
            seconds = self._median_startup().low_ms / _SECOND_MS
            sentences.append(f"A new pod is ready after {seconds:g} s, the median of {len(self._start_ups_ms)} pods.")
        sentences.extend(
            f"The values of the metric {feed_key.metric} stay as recorded, whatever the replicas are"
            + (", as a total that pods share." if feed_key.is_shared else ".")
            for feed_key in self._feed_points
        )
        sentences.extend(self._containers.sentences(spec, workload.pod.containers))
        return sentences


def _selected_pods(sync: RecordedSync) -> Sequence[int]:
    """The indexes of the pods that the scale's selector picks; empty without a scale. Raises RecordingError."""
    scale, pods = sync.observation.scale, sync.observation.pods
    if not isinstance(scale, Scale):
        return ()
    try:
        selector = selectors.parse(scale.selector)
    except ValueError as error:
        raise RecordingError(f"the selector {scale.selector} cannot be read: {error}") from None
    return [index for index, pod in enumerate(pods) if selector.matches(pod.labels)]


def _most_frequent(counts: Counter[int], default: int) -> int:
    """The most frequent number above 0, the larger of two that are equally frequent; `default` if there is none."""
    positive = [number for number in counts if number > 0]
    return max(positive, key=lambda number: (counts[number], number), default=default)
