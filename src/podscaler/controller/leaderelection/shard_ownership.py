"""Which autoscalers this process looks after, as the controller's loop sees it, and what it is told when that changes.

The loop asks a Share before each sync. Elections (`leadership`, `sharding`) are Shares, and tell the loop through the
protocol Work; a controller that is alone has EVERYTHING.
"""

from collections.abc import Callable
from typing import Protocol

from podscaler.controller.leaderelection.write_lease import Forever, Tenure
from podscaler.kube.informers.cache import Key

Part = Callable[[Key], bool]
"""Whether the autoscaler of a key belongs to the part."""


class Share(Protocol):
    """What this process looks after."""

    def find(self, key: Key) -> Tenure | None:
        """The tenure by which an autoscaler is looked after here; None where it is not."""
        ...


class Work(Protocol):
    """What is told when the share changes: the controller."""

    async def wait_listed(self) -> None:
        """Return once it could work."""
        ...

    def take_up(self, part: Part) -> None:
        """Begin with the autoscalers of a part, which the Share has now."""
        ...

    async def lay_down(self, part: Part) -> None:
        """End the work on a part, which the Share has not any more, in good order: everything is written on return."""
        ...

    async def drop(self, part: Part) -> None:
        """A part is lost: stop at once, and forget."""
        ...


class _Everything:
    """All autoscalers, for ever."""

    def __init__(self) -> None:
        self._tenure = Forever()

    def find(self, key: Key) -> Tenure | None:
        """The tenure without an end."""
        del key
        return self._tenure


EVERYTHING: Share = _Everything()


def all_of_it(key: Key) -> bool:
    """The part that is everything."""
    del key
    return True
