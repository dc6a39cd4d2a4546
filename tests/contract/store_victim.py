"""A process that writes to a store and says what was acknowledged, until it is killed (see the test beside it).

    python store_victim.py DIRECTORY ROUND

Prints one line for each acknowledged write, after it: `NAME SIZE REVISION`.
"""

import asyncio
import os
import sys
from pathlib import Path

from podscaler.base.clock import SystemClock
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.store import open_store
from podscaler.testing.kinds import KINDS, obj

GADGETS = "gadgets.example.com"


async def write_on(registry: Registry, name: str) -> None:
    """Create a gadget and grow it for ever."""
    made = await registry.create(GADGETS, obj(name, size=0))
    while True:
        metadata = made["metadata"]
        line = f"{name} {made['spec']['size']} {metadata['resourceVersion']}\n"
        os.write(sys.stdout.fileno(), line.encode())  # one write: a line is whole or not there
        made = await registry.mutate(
            GADGETS, "default", name, lambda gadget: gadget["spec"].update(size=gadget["spec"]["size"] + 1)
        )


async def main(directory: Path, turn: str) -> None:
    """Several writers at once, so that commits hold several writes."""
    store = await open_store(directory, SystemClock())
    registry = Registry(Objects(store, KINDS))
    if registry.find("namespaces", "", "default") is None:
        await registry.create("namespaces", obj("default", namespace=""))
    await asyncio.gather(*(write_on(registry, f"round{turn}-writer{index}") for index in range(5)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
