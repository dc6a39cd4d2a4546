"""When the garbage collector of a long-running process looks at how much: at what is new, and rarely at everything.

Python looks at all objects whenever a quarter has been added, which takes half a second for those of thousands of pods,
again and again while they start. Here what is new is collected, and what is left of it is then set aside
(`gc.freeze`); everything is collected only when what was set aside has doubled, and a million objects more. Nearly all
objects go without a collection, as soon as nobody refers to them: it finds cycles only. Younger generations are
collected as ever.
"""

import gc

from podscaler.clock import Clock

CHECK_S = 0.5
NEW_OBJECTS = 100_000
"""What is new is collected when it may be so many objects, which takes less than a tenth of a second."""
SLACK_OBJECTS = 1_000_000
_NEVER = 1 << 30


class OldGarbage:
    """Collects the oldest generation of this process, in place of Python.

    Attributes:
        collections: how often what is new was collected, and how often everything.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = 0
        self._set_aside = 0
        self.collections = (0, 0)

    async def run(self) -> None:
        """Until cancelled; then Python does it again."""
        before = gc.get_threshold()
        gc.collect()
        gc.freeze()
        self._left = self._set_aside = gc.get_freeze_count()
        gc.set_threshold(before[0], before[1], _NEVER)
        try:
            while True:
                await self._clock.sleep(CHECK_S)
                self.check()
        finally:
            gc.set_threshold(*before)
            gc.unfreeze()

    def check(self) -> None:
        """Collect what is due."""
        youngest, younger, _ = gc.get_threshold()
        if gc.get_count()[2] * youngest * younger < NEW_OBJECTS:
            return
        gc.collect()
        self._set_aside += len(gc.get_objects())
        gc.freeze()
        new, everything = self.collections
        if self._is_too_much_set_aside():
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._left = self._set_aside = gc.get_freeze_count()
            everything += 1
        self.collections = new + 1, everything

    def _is_too_much_set_aside(self) -> bool:
        """Whether everything is due; what is set aside is counted one by one, so only where it may be too much.

        The sum of what was set aside is at least what is left of it: most of that goes without a collection.
        """
        most = 2 * self._left + SLACK_OBJECTS
        if self._set_aside > most:
            self._set_aside = gc.get_freeze_count()
        return self._set_aside > most
