"""Defines the controller's Prometheus metrics, with kube-controller-manager's names, labels, buckets and stability
levels.

The controller calls a method for each event; `podscaler.controller.server.serving` renders `registry`. Each Telemetry
has a registry of its own, so that several controllers may run in one process. A new metric: make it in `__init__`, and
add a method that counts. Metrics named `podscaler_...` are podscaler's own.

Source: docs/spec/controller.md 8 (Prometheus metrics).
"""

from collections.abc import Iterable
from functools import cache
from typing import Literal, Protocol

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podscaler.base.clock import Clock
from podscaler.core.model.trace import FailureResponse
from podscaler.kube.informers.cache import Key

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # upstream exposes no *_created series

PREFIX = "horizontal_pod_autoscaler_controller"
QUEUE = "horizontalpodautoscaler"
DURATION_BUCKETS_S = tuple(0.001 * 2**exponent for exponent in range(15))
LATENESS_BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
QUEUE_BUCKETS_S = tuple(float(f"1e{exponent}") for exponent in range(-8, 2))
ACTION_AND_ERROR = (
    "The label 'action' should be either 'scale_down', 'scale_up', or 'none'. Also, the label 'error' should be either "
    "'spec', 'internal', or 'none'."
)
FIRST_ERROR = (
    "Note that if both spec and internal errors happen during a reconciliation, the first one to occur is reported in "
    "`error` label."
)
METRIC_TYPE = "The label 'metric_type' is the type of the metric in the HPA's spec."

ActionLabel = Literal["scale_up", "scale_down", "none"]
ErrorLabel = Literal["spec", "internal", "none"]


class Telemetry:
    """The metrics of one controller.

    Args:
        clock: for the ages of work in progress.
    """

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.queue = QueueMetrics(self.registry, clock)
        self._reconciliations = Counter(
            f"{PREFIX}_reconciliations",
            f"[BETA] Number of reconciliations of HPA controller. {ACTION_AND_ERROR} {FIRST_ERROR}",
            ["action", "error"],
            registry=self.registry,
        )
        self._reconciliation_s = Histogram(
            f"{PREFIX}_reconciliation_duration_seconds",
            f"[BETA] How long one reconciliation of an HPA takes. {ACTION_AND_ERROR} {FIRST_ERROR}",
            ["action", "error"],
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self._computations = Counter(
            f"{PREFIX}_metric_computation",
            f"[BETA] Number of metric computations. {ACTION_AND_ERROR} {METRIC_TYPE}",
            ["action", "error", "metric_type"],
            registry=self.registry,
        )
        self._computation_s = Histogram(
            f"{PREFIX}_metric_computation_duration_seconds",
            f"[BETA] How long the computation of one metric takes. {ACTION_AND_ERROR} {METRIC_TYPE}",
            ["action", "error", "metric_type"],
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self._autoscalers = Gauge(
            f"{PREFIX}_num_horizontal_pod_autoscalers",
            "[ALPHA] Current number of controlled HPA objects.",
            registry=self.registry,
        )
        self._desired_replicas = Gauge(
            f"{PREFIX}_desired_replicas",
            "[ALPHA] Current desired replica count for HPA objects.",
            ["namespace", "hpa_name"],
            registry=self.registry,
        )
        self._shown_desired: dict[Key, int] = {}
        # cached: looking up the labels costs more than counting
        self._reconciliation_series = cache(
            lambda *labels: (self._reconciliations.labels(*labels), self._reconciliation_s.labels(*labels))
        )
        self._computation_series = cache(
            lambda *labels: (self._computations.labels(*labels), self._computation_s.labels(*labels))
        )
        self._stale_skips = Counter(
            f"{PREFIX}_stale_sync_skips",
            "[ALPHA] Total number of HPA syncs skipped due to a stale watch cache.",
            ["group", "resource"],
            registry=self.registry,
        )

        self._panics = _panic_counter(self.registry)
        self._failure_responses = _failure_response_counter(self.registry)

    def failure_response(self, response: FailureResponse) -> None:
        """A failure policy applied in a sync."""
        self._failure_responses.labels(response.value).inc()

    def sync_panicked(self, duration_s: float) -> None:
        """A sync failed by a bug; kube-controller-manager's counters have that as an internal error."""
        self.reconciled("none", "internal", duration_s)
        self.panicked("sync")

    def panicked(self, task_name: str) -> None:
        """A background task of the controller failed by a bug."""
        self._panics.labels(task_name).inc()

    def reconciled(self, action: ActionLabel, error: ErrorLabel, duration_s: float) -> None:
        """One reconciliation ended."""
        counter, histogram = self._reconciliation_series(action, error)
        counter.inc()
        histogram.observe(duration_s)

    def metric_computed(self, action: ActionLabel, error: ErrorLabel, *, metric_type: str, duration_s: float) -> None:
        """The proposal of one metric was computed, or failed."""
        counter, histogram = self._computation_series(action, error, metric_type)
        counter.inc()
        histogram.observe(duration_s)

    def autoscaler_added(self) -> None:
        """One more autoscaler is controlled."""
        self._autoscalers.inc()

    def autoscaler_deleted(self) -> None:
        """One autoscaler less is controlled."""
        self._autoscalers.dec()

    def set_desired(self, key: Key, replicas: int) -> None:
        """Set the desired replicas of an autoscaler.

        Differs: kube-controller-manager keeps the series of a deleted autoscaler; here `drop_desired` removes it, so
        that memory is bounded.
        """
        if self._shown_desired.get(key) != replicas:
            self._shown_desired[key] = replicas
            self._desired_replicas.labels(*key).set(replicas)

    def drop_desired(self, key: Key) -> None:
        """Drop the gauge of an autoscaler that was deleted, or that another process manages from now on."""
        if self._shown_desired.pop(key, None) is not None:
            self._desired_replicas.remove(*key)

    def stale_skip(self) -> None:
        """A sync was skipped because the cache lacks the controller's last write."""
        self._stale_skips.labels("autoscaling", "horizontalpodautoscalers").inc()

    def add_comparison_metrics(self, verdicts: Iterable[str]) -> None:
        """Add the metrics of comparisons with another controller; call it once, with `--compare`."""
        self._comparisons = Counter(
            "podscaler_comparisons",
            "Decisions that were compared with the status that another controller wrote, by what that found.",
            ["verdict"],
            registry=self.registry,
        )
        self._differences = Counter(
            "podscaler_comparison_differences",
            "Differences from another controller's status that nothing explains; one that stays counts once.",
            ["field"],
            registry=self.registry,
        )
        for verdict in verdicts:
            self._comparisons.labels(verdict)
        for field in ("desiredReplicas", "conditions"):
            self._differences.labels(field)

    def compared(self, verdict: str) -> None:
        """One decision was compared; call it only after `add_comparison_metrics`, as `differed`."""
        self._comparisons.labels(verdict).inc()

    def differed(self, field: str) -> None:
        """Another controller wrote an unexplained difference into that field of the status."""
        self._differences.labels(field).inc()

    def add_recording_metrics(self, recording: "RecordingFigures") -> None:
        """Add the metrics of a recording, if it is on."""
        if recording.is_on:
            self.registry.register(RecordingMetrics(recording))

    def render(self) -> bytes:
        """The metrics in Prometheus' text format; slow with thousands of autoscalers, so call it in a thread."""
        return prometheus_client.generate_latest(self.registry)


class RecordingFigures(Protocol):
    """The counts of a recording; `podscaler.controller.recording.recording.Recording` has them."""

    @property
    def is_on(self) -> bool: ...
    @property
    def lines_written(self) -> int: ...
    @property
    def lines_lost(self) -> int: ...


class RecordingMetrics(Collector):
    """How many lines of a recording are written and lost.

    Args:
        recording: has the counts.
    """

    def __init__(self, recording: RecordingFigures) -> None:
        self._recording = recording

    def collect(self) -> Iterable[Metric]:
        """The counters, as of now."""
        lines_written, lines_lost = self._recording.lines_written, self._recording.lines_lost
        yield CounterMetricFamily("podscaler_recording_lines", "Lines written to the recording.", value=lines_written)
        yield CounterMetricFamily("podscaler_recording_lost_lines", "Lines that the recording lost.", value=lines_lost)


class QueueMetrics(Collector):
    """The work queue metrics of kube-controller-manager, and lateness; `MeteredQueue` reports to it."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        self._added_at_s: dict[Key, float] = {}
        self._due_at_s: dict[Key, float] = {}
        self._started_at_s: dict[Key, float] = {}
        self._adds = _queue_counter("adds", "Total number of adds handled by workqueue", registry)
        self._retries = _queue_counter("retries", "Total number of retries handled by workqueue", registry)
        self._queue_s = _queue_histogram(
            "queue", "How long an item stays in workqueue before being requested.", registry
        )
        self._work_s = _queue_histogram("work", "How long processing an item from workqueue takes.", registry)
        self._lateness_s = Histogram(
            "podscaler_sync_lateness_seconds",
            "How long after it was due the sync of an autoscaler began.",
            buckets=LATENESS_BUCKETS_S,
            registry=registry,
        )
        registry.register(self)

    def added(self, key: Key, due_at_s: float) -> None:
        """The key waits now, and its sync was due at that instant of the monotonic clock."""
        self._adds.inc()
        self._added_at_s[key] = self._clock.monotonic_s()
        self._due_at_s[key] = due_at_s

    def delayed(self) -> None:
        """A key was added with a delay, which upstream counts as a retry."""
        self._retries.inc()

    def started(self, key: Key) -> None:
        """The sync of the key began."""
        now_s = self._clock.monotonic_s()
        self._started_at_s[key] = now_s
        self._queue_s.observe(now_s - self._added_at_s.pop(key, now_s))
        self._lateness_s.observe(max(now_s - self._due_at_s.pop(key, now_s), 0.0))

    def finished(self, key: Key) -> None:
        """The sync of the key ended."""
        now_s = self._clock.monotonic_s()
        self._work_s.observe(now_s - self._started_at_s.pop(key, now_s))

    def collect(self) -> Iterable[Metric]:
        """The gauges, as of now."""
        now_s = self._clock.monotonic_s()
        ages_s = [now_s - started_s for started_s in self._started_at_s.copy().values()]
        yield _queue_gauge("depth", "Current depth of workqueue", len(self._added_at_s))
        yield _queue_gauge(
            "unfinished_work_seconds", "Seconds of work in progress that no duration shows yet.", sum(ages_s)
        )
        yield _queue_gauge(
            "longest_running_processor_seconds", "Age of the work that began first.", max(ages_s, default=0.0)
        )


def _panic_counter(registry: CollectorRegistry) -> Counter:
    """The counter of failures that are bugs, by the name of the background task."""
    help_text = (
        "Failures that are bugs, by the part that failed and was started again; the log has the traceback of each."
    )
    counter = Counter("podscaler_panics", help_text, ["part"], registry=registry)
    counter.labels("sync")
    return counter


def _failure_response_counter(registry: CollectorRegistry) -> Counter:
    """The counter of applied failure policies; each response has a series from the start."""
    help_text = (
        "Syncs in which the failure policy of an autoscaler applied because metrics could not be read, by what it did: "
        f"{', '.join(FailureResponse)}."
    )
    counter = Counter("podscaler_metric_failure_responses", help_text, ["response"], registry=registry)
    for response in FailureResponse:
        counter.labels(response.value)
    return counter


def _queue_counter(name: str, help_text: str, registry: CollectorRegistry) -> Counter:
    return Counter(f"workqueue_{name}", f"[BETA] {help_text}", ["name"], registry=registry).labels(QUEUE)


def _queue_histogram(name: str, help_text: str, registry: CollectorRegistry) -> Histogram:
    """A histogram of the work queue for durations in seconds, named `workqueue_<name>_duration_seconds`."""
    histogram = Histogram(
        f"workqueue_{name}_duration_seconds",
        f"[BETA] {help_text}",
        ["name"],
        buckets=QUEUE_BUCKETS_S,
        registry=registry,
    )
    return histogram.labels(QUEUE)


def _queue_gauge(name: str, help_text: str, gauge_value: float) -> GaugeMetricFamily:
    """A gauge of the work queue, as client-go names and labels it."""
    family = GaugeMetricFamily(f"workqueue_{name}", f"[BETA] {help_text}", labels=["name"])
    family.add_metric([QUEUE], gauge_value)
    return family
