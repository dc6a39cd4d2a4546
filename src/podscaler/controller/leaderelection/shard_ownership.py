"""Defines the interfaces between leader election and the controller: who may sync which autoscalers, and callbacks.

The controller gets from a ShardOwnership the write lease of an autoscaler before each sync. Elections (`leadership`,
`sharding`) are ShardOwnerships, and call the controller's LeaderCallbacks; without an election it has EVERYTHING. A
further callback: here, in `WorkAssignment`, and its call in `lease_holder`.

Source: client-go's LeaderCallbacks (OnStartedLeading, OnStoppedLeading).
"""

from collections.abc import Callable
from typing import Protocol

from podscaler.controller.leaderelection.write_lease import UnlimitedWriteLease, WriteLease
from podscaler.kube.informers.cache import Key

KeyFilter = Callable[[Key], bool]
"""A function that returns whether an autoscaler belongs to a set, such as that of a shard."""


class ShardOwnership(Protocol):
    """The autoscalers that this process syncs."""

    def find(self, key: Key) -> WriteLease | None:
        """The write lease by which this process syncs an autoscaler; None: another process syncs it, or none."""
        ...


class LeaderCallbacks(Protocol):
    """Called when leases are acquired and lost; implemented by the controller."""

    async def wait_listed(self) -> None:
        """Return once autoscalers and pods are listed."""
        ...

    def on_started_leading(self, belongs: KeyFilter) -> None:
        """Begin to sync the autoscalers for which `belongs` is true."""
        ...

    async def on_stopped_leading(self, belongs: KeyFilter) -> None:
        """The lease is about to be released: return once running syncs have ended and everything is written."""
        ...

    async def on_lost_lease(self, belongs: KeyFilter) -> None:
        """The lease is lost: cancel the syncs at once, and drop the state of the autoscalers."""
        ...


class _Everything:
    """The ownership of all autoscalers, which never ends."""

    def __init__(self) -> None:
        self._write_lease = UnlimitedWriteLease()

    def find(self, key: Key) -> WriteLease | None:
        del key
        return self._write_lease


EVERYTHING: ShardOwnership = _Everything()


def every_key(key: Key) -> bool:
    """True for all autoscalers."""
    del key
    return True
