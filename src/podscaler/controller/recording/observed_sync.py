"""Defines what one sync read: the Observation for its decision, with the objects that this was made from.

`podscaler.controller.reconcile.observer` makes one; the reconciler decides and writes with it, a recording stores it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.controller.informers.observed_objects import CachedPod
from podscaler.controller.informers.scale_client import ScaleTarget
from podscaler.core.model.observation import Observation
from podscaler.metrics.metric_fetching import FetchedMetric


@dataclass(frozen=True, slots=True)
class ObservedSync:
    """What a sync read.

    Attributes:
        observation: the input of `podscaler.core.decide`.
        target: the target's scale, for writing it; None if it could not be read.
        pods: the cached pods of the observation.
        fetched_metrics: a result for each metric of the spec, None for one that was not queried; empty if none was.
        durations_s: the duration of each query in seconds, in the order of `fetched_metrics`; 0.0 where it has None.
    """

    observation: Observation
    target: ScaleTarget | None
    pods: Sequence[CachedPod] = ()
    fetched_metrics: tuple[FetchedMetric | None, ...] = ()
    durations_s: tuple[float, ...] = ()
