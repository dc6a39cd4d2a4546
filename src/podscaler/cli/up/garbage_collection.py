"""Collects Python's oldest generation in a long-running process: new objects often, all objects rarely.

`podscaler.cli.up.up` runs it. Python collects the oldest generation whenever a quarter has been added, which takes half
a second for the objects of thousands of pods, repeatedly while they start. Here new objects are collected, and the
remaining ones are frozen (`gc.freeze`); all objects are collected only when the frozen ones have doubled, and
SLACK_OBJECTS more. Nearly all objects are freed by reference counts; a collection finds cycles only. Python itself
collects the younger generations.
"""

import gc

from podscaler.base.clock import Clock

CHECK_INTERVAL_S = 0.5
NEW_OBJECTS_MAX = 100_000
"""New objects are collected when there may be this many, which takes less than a tenth of a second."""
SLACK_OBJECTS = 1_000_000
"""Added to the double of the objects that a full collection left: a small process collects all objects hardly ever."""
_NEVER = 1 << 30
"""A threshold of the oldest generation that is not reached."""


class OldGenerationCollector:
    """Collects the oldest generation of this process's objects, which Python's own collector is set to leave out.

    Attributes:
        new_collections: how often new objects were collected.
        full_collections: how often all objects were collected.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects_after_full = 0  # that the last collection of all objects left
        self._frozen_max = 0  # an upper bound of the count of frozen objects
        self.new_collections = 0
        self.full_collections = 0

    async def run(self) -> None:
        """Collect until cancelled; then Python's thresholds are restored and all objects unfrozen."""
        python_thresholds = gc.get_threshold()
        gc.collect()
        gc.freeze()
        self._objects_after_full = self._frozen_max = gc.get_freeze_count()
        gc.set_threshold(python_thresholds[0], python_thresholds[1], _NEVER)
        try:
            while True:
                await self._clock.sleep(CHECK_INTERVAL_S)
                self.collect_if_due()
        finally:
            gc.set_threshold(*python_thresholds)
            gc.unfreeze()

    def collect_if_due(self) -> None:
        """Collect new objects or all objects, if either is due."""
        objects_max = 2 * self._objects_after_full + SLACK_OBJECTS
        threshold_0, threshold_1, _ = gc.get_threshold()
        if self._frozen_max > objects_max:
            self._frozen_max = gc.get_freeze_count()
            if self._frozen_max > objects_max:
                self._collect_all()
        # each count of the oldest generation stands for threshold_1 collections after threshold_0 new objects each
        elif gc.get_count()[2] * threshold_0 * threshold_1 >= NEW_OBJECTS_MAX:
            self._collect_new()

    def _collect_new(self) -> None:
        """Collect new objects, and freeze those that are left.

        Most frozen objects are freed later by reference counts, so that the sum of those frozen each time is an upper
        bound; `gc.get_freeze_count` would visit all frozen objects each time.
        """
        gc.collect()
        self._frozen_max += len(gc.get_objects())
        gc.freeze()
        self.new_collections += 1

    def _collect_all(self) -> None:
        """Collect all objects, frozen ones too, and freeze those that are left."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._objects_after_full = self._frozen_max = gc.get_freeze_count()
        self.full_collections += 1
