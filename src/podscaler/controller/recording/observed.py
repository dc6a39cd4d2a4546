"""What one sync saw: the facts for its decision, and what they were made from.

Made by the observer; the reconciler decides and writes with it, a recording keeps it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.controller.informers.observed_objects import CachedPod
from podscaler.controller.informers.scale_client import ScaleTarget
from podscaler.core.model.model import Observation
from podscaler.metrics.queries import Answered


@dataclass(frozen=True, slots=True)
class ObservedSync:
    """What a sync saw.

    Attributes:
        observation: for the decision.
        target: to write the scale with; None where it could not be read.
        pods: those of the observation, as they are cached.
        answers: those of the observation, as they came, None where nobody asked; empty where nothing was asked for.
        durations_s: how long each of them took.
    """

    observation: Observation
    target: ScaleTarget | None
    pods: Sequence[CachedPod] = ()
    answers: tuple[Answered | None, ...] = ()
    durations_s: tuple[float, ...] = ()
