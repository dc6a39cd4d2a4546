"""The garbage collector's share of a controller: what stays is not looked through again and again.

`podscaler controller` calls `settle_when_listed` once. Autoscalers, pods and scales live as long as the process or are
replaced one by one, and hold no cycles; without this every full collection would look through all of them.
"""

import gc

from podscaler.controller.controller import Controller

YOUNG_OBJECTS = 20_000
"""How many objects are made before the young ones are looked through: what one busy tick makes."""


async def settle_when_listed(controller: Controller) -> None:
    """Once everything is listed, take what is there out of the collector's sight. For processes of their own only."""
    await controller.wait_listed()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
