"""When the garbage collector of a long-running process looks at how much: at what is new, and rarely at everything.

Python looks at all objects whenever a quarter has been added, which takes half a second for those of thousands of pods,
again and again while they start. Here what is new is collected, and what is left of it is then set aside
(`gc.freeze`); everything is collected only when what was set aside has doubled, and a million objects more. Nearly all
objects go without a collection, as soon as nobody refers to them: it finds cycles only. Younger generations are
collected as ever.
"""

import gc

from podscaler.base.clock import Clock

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
        """Collect what is due, in checks of their own: what is new, or everything."""
        most = 2 * self._left + SLACK_OBJECTS
        youngest, younger, _ = gc.get_threshold()
        if self._set_aside > most:
            self._set_aside = gc.get_freeze_count()
            if self._set_aside > most:
                self._collect_everything()
        elif gc.get_count()[2] * youngest * younger >= NEW_OBJECTS:
            self._collect_new()

    def _collect_new(self) -> None:
        """Set aside what is left of it, whose sum is at least what is set aside: most of that goes uncollected.

        `gc.get_freeze_count` would go through everything each time.
        """
        gc.collect()
        self._set_aside += len(gc.get_objects())
        gc.freeze()
        new, everything = self.collections
        self.collections = new + 1, everything

    def _collect_everything(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._left = self._set_aside = gc.get_freeze_count()
        new, everything = self.collections
        self.collections = new, everything + 1
