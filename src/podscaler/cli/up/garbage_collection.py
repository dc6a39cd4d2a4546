"""Collects Python's oldest generation in a long-running process: new objects often, all objects rarely.

Python collects the oldest generation whenever a quarter has been added, which takes half a second for the objects of
thousands of pods, repeatedly while they start. Here new objects are collected, and the remaining ones are frozen
(`gc.freeze`); all objects are collected only when the frozen ones have doubled, and a million more. Nearly all objects
are freed by reference counts, without a collection, which finds cycles only. Younger generations are collected by
Python.
"""

import gc

from podscaler.base.clock import Clock

CHECK_S = 0.5
"""How often is checked whether a collection is due."""
NEW_OBJECTS = 100_000
"""New objects are collected when there may be this many, which takes less than a tenth of a second."""
SLACK_OBJECTS = 1_000_000
_NEVER = 1 << 30


class OldGenerationCollector:
    """Collects the oldest generation of this process's objects, which Python's own collector is set to leave out.

    Attributes:
        collections: how often new objects were collected, and how often all.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left_after_full = 0
        self._frozen = 0
        self.collections = (0, 0)

    async def run(self) -> None:
        """Collect until cancelled; then Python does it again."""
        python_thresholds = gc.get_threshold()
        gc.collect()
        gc.freeze()
        self._left_after_full = self._frozen = gc.get_freeze_count()
        gc.set_threshold(python_thresholds[0], python_thresholds[1], _NEVER)
        try:
            while True:
                await self._clock.sleep(CHECK_S)
                self.check()
        finally:
            gc.set_threshold(*python_thresholds)
            gc.unfreeze()

    def check(self) -> None:
        """Collect new objects or all objects, if either is due."""
        objects_max = 2 * self._left_after_full + SLACK_OBJECTS
        youngest, younger, _ = gc.get_threshold()
        if self._frozen > objects_max:
            self._frozen = gc.get_freeze_count()
            if self._frozen > objects_max:
                self._collect_all()
        elif gc.get_count()[2] * youngest * younger >= NEW_OBJECTS:
            self._collect_new()

    def _collect_new(self) -> None:
        """Collect new objects, and freeze those that are left.

        The sum of these is an upper bound of the frozen objects, as most of them are freed later by reference counts;
        `gc.get_freeze_count` would visit all of them each time.
        """
        gc.collect()
        self._frozen += len(gc.get_objects())
        gc.freeze()
        new_count, full_count = self.collections
        self.collections = new_count + 1, full_count

    def _collect_all(self) -> None:
        """Collect all objects, frozen ones too, and freeze those that are left."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._left_after_full = self._frozen = gc.get_freeze_count()
        new_count, full_count = self.collections
        self.collections = new_count, full_count + 1
