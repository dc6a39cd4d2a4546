"""The facts of one sync, with the objects that they were made from.

`podscaler.controller.reconcile.observe` makes one; the reconciler decides and writes with it, a recording keeps it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.controller.informers.observed_objects import CachedPod
from podscaler.controller.informers.scale_client import ScaleTarget
from podscaler.core.model.model import Observation
from podscaler.metrics.fetched import FetchedMetric


@dataclass(frozen=True, slots=True)
class ObservedSync:
    """The facts of a sync.

    Attributes:
        observation: the facts, as the decision takes them.
        target: the scale, to write it; None where it could not be read.
        pods: of the observation, as they are cached.
        answers: the results of the metrics queries, None where a metric was not queried; empty where none was.
        durations_s: of each query.
    """

    observation: Observation
    target: ScaleTarget | None
    pods: Sequence[CachedPod] = ()
    answers: tuple[FetchedMetric | None, ...] = ()
    durations_s: tuple[float, ...] = ()
