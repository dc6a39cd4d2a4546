"""Which autoscalers this process looks after, as the controller's loop sees it, and what it is told when that changes.

The loop asks a ShardOwnership before each sync. Elections (`leadership`, `sharding`) are Shares, and tell the loop
through the protocol LeaderCallbacks; a controller that is alone has EVERYTHING.
"""

from collections.abc import Callable
from typing import Protocol

from podscaler.controller.leaderelection.write_lease import UnlimitedWriteLease, WriteLease
from podscaler.kube.informers.cache import Key

KeyFilter = Callable[[Key], bool]
"""Whether the autoscaler of a key belongs to the part."""


class ShardOwnership(Protocol):
    """What this process looks after."""

    def find(self, key: Key) -> WriteLease | None:
        """The write lease by which an autoscaler is looked after here; None where it is not."""
        ...


class LeaderCallbacks(Protocol):
    """What is told when the share changes: the controller."""

    async def wait_listed(self) -> None:
        """Return once it could work."""
        ...

    def on_started_leading(self, belongs: KeyFilter) -> None:
        """Begin with the autoscalers of a part, which the ShardOwnership has now."""
        ...

    async def on_stopped_leading(self, belongs: KeyFilter) -> None:
        """End the work on a part, which the ShardOwnership has not any more, in good order: everything is written on return."""
        ...

    async def on_lost_lease(self, belongs: KeyFilter) -> None:
        """A part is lost: stop at once, and forget."""
        ...


class _Everything:
    """All autoscalers, for ever."""

    def __init__(self) -> None:
        self._tenure = UnlimitedWriteLease()

    def find(self, key: Key) -> WriteLease | None:
        """The write lease without an end."""
        del key
        return self._tenure


EVERYTHING: ShardOwnership = _Everything()


def every_key(key: Key) -> bool:
    """The part that is everything."""
    del key
    return True
