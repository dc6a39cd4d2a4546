"""Implements Knative's algorithm (the Knative Pod Autoscaler, KPA) as a Scaler, written from its documentation.

Called by `podscaler.cli.backtest` and `podscaler.simulation.fleet.trials`, which make a Knative of a KnativeConfig.

1. A metric is averaged over the stable window (60 s) and over the panic window (10 % of it).
2. Each average divided by the target for each pod, rounded up, is a wanted count. The target is 70 % of what a pod can
   do.
3. A wanted count is limited to 1000 times the ready pods, and to no less than half of them.
4. Where the panic average wants 200 % of the ready pods or more, panic mode begins: the replicas do not fall, and are
   the higher of both. It ends when that has not been so for a stable window.
5. The replicas are kept within the bounds, at least 1 here: there is no scale to zero.

Worked numbers: 10 ready pods of 1 core each, target 70 %: 0.7 cores a pod. The stable average is 8 cores:
ceil(8 / 0.7) = 12. The panic average is 14 cores: ceil(14 / 0.7) = 20 = 200 % of 10: panic, 20 pods.

The metric is one of two:

* Without `target_concurrency` the equivalent of concurrency in CPU: the CPU that was used during a tick, plus the work
  that waits, as if it were to be done within a second. For pods that serve one request for each core at a time both
  are the same, up to that second. A load need not have requests.
* With it the concurrency of requests, by Little's law L = lambda * T: arrivals a second times the mean response time in
  seconds. 100 requests/s that take 520 ms are 52 at once; with a target of 10 for each pod, ceil(52 / 7) = 8 pods.

Differs: concurrency is that of the instant of a tick, not an average over each second, and the mean response time is
that of the world, which is stationary up to a utilization of 0.99 (`podscaler.simulation.world.load_serving`); requests
that still wait when arrivals end do not count. The scale-down delay is its default, 0. A window that has begun just
now is averaged over what it has.

Source: Knative Serving documentation, Configuring autoscaling: metrics, targets, rate limits, additional autoscaling
configuration (windows, panic mode); config-autoscaler's defaults. J. D. C. Little, A Proof for the Queuing Formula
L = lambda W, Operations Research 9 (1961).
"""

import math
from collections import deque
from typing import NamedTuple

import msgspec

from podscaler.simulation.model.results import WorkloadState

_SECOND_MS = 1_000


class KnativeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of config-autoscaler that the algorithm has, with their defaults.

    Attributes:
        target_ucores: what one pod can do at 100 %, in millionths of a core; not used with `target_concurrency`.
        target_concurrency: the requests that one pod handles at once at 100 %, `container-concurrency-target-default`
            (100 there); None if the metric is CPU, with `target_ucores`.
        min_replicas, max_replicas: the bounds.
        target_utilization: `container-concurrency-target-percentage`.
        stable_window_ms: `stable-window`.
        panic_window_ratio: `panic-window-percentage`.
        panic_threshold: `panic-threshold-percentage` as a ratio.
        max_scale_up_rate, max_scale_down_rate: ratios of the ready pods.
        tick_ms: the time between two decisions.
    """

    target_ucores: int
    target_concurrency: int | None = None
    min_replicas: int = 1
    max_replicas: int
    target_utilization: float = 0.7
    stable_window_ms: int = 60_000
    panic_window_ratio: float = 0.1
    panic_threshold: float = 2.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    tick_ms: int = 2_000


class _Reading(NamedTuple):
    """The value of the metric at an instant."""

    at_ms: int
    value: float


class Knative:
    """The Scaler; keeps the readings of the metric in the stable window, and when panic mode was last confirmed."""

    def __init__(self, config: KnativeConfig) -> None:
        self._config = config
        self._readings: deque[_Reading] = deque()
        self._panic_since_ms: int | None = None
        self._most_pods_in_panic = 0

    @property
    def tick_ms(self) -> int:
        """As in Scaler."""
        return self._config.tick_ms

    def replicas(self, at_ms: int, state: WorkloadState) -> int:
        """As in Scaler."""
        config = self._config
        metric_value = (
            _cpu_concurrency_ucores(state) if config.target_concurrency is None else _request_concurrency(state)
        )
        if at_ms and metric_value is not None:  # at 0 nothing has been used yet
            self._readings.append(_Reading(at_ms, metric_value))
        while self._readings and self._readings[0].at_ms <= at_ms - config.stable_window_ms:
            self._readings.popleft()
        if not self._readings:  # without a metric the scale stays as it is
            return state.replicas
        ready = max(state.ready, 1)
        stable_pods = self._desired_pods_of_window(at_ms, config.stable_window_ms)
        panic_pods = self._desired_pods_of_window(at_ms, round(config.stable_window_ms * config.panic_window_ratio))
        self._update_panic(at_ms, panic_pods / ready >= config.panic_threshold)
        stable_pods, panic_pods = self._limit_rate(stable_pods, ready), self._limit_rate(panic_pods, ready)
        desired_pods = stable_pods
        if self._panic_since_ms is not None:
            self._most_pods_in_panic = max(self._most_pods_in_panic, stable_pods, panic_pods, state.ready)
            desired_pods = self._most_pods_in_panic
        return min(max(desired_pods, config.min_replicas, 1), config.max_replicas)

    def _desired_pods_of_window(self, at_ms: int, window_ms: int) -> int:
        """The metric's average over the last `window_ms` divided by the target, rounded up; 0 without a reading."""
        values = [reading.value for reading in self._readings if reading.at_ms > at_ms - window_ms]
        config = self._config
        target_of_pod = config.target_ucores if config.target_concurrency is None else config.target_concurrency
        if not values:
            return 0
        average = math.fsum(values) / len(values)
        return math.ceil(average / (target_of_pod * config.target_utilization))

    def _limit_rate(self, desired_pods: int, ready: int) -> int:
        """The desired pods within the scale rates, which are ratios of the ready pods."""
        lowest = math.floor(ready / self._config.max_scale_down_rate)
        highest = math.ceil(ready * self._config.max_scale_up_rate)
        return min(max(desired_pods, lowest), highest)

    def _update_panic(self, at_ms: int, is_over_threshold: bool) -> None:
        """Begin or prolong panic mode over the threshold, and end it a stable window after the last such tick."""
        if is_over_threshold:
            self._panic_since_ms = at_ms
        elif self._panic_since_ms is not None and at_ms - self._panic_since_ms >= self._config.stable_window_ms:
            self._panic_since_ms = None
            self._most_pods_in_panic = 0


def _cpu_concurrency_ucores(state: WorkloadState) -> float:
    """The CPU in use, and the work that waits as if it were to be done within a second."""
    return state.used_ucores + state.backlog_ucores_ms / _SECOND_MS


def _request_concurrency(state: WorkloadState) -> float | None:
    """The mean number of requests that are handled or wait; None if no pod is ready, so nothing is measured."""
    if state.latency_ms is None:
        return None
    return state.rate_milli / 1000 * state.latency_ms / _SECOND_MS
