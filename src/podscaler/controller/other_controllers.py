"""Other controllers at work on the same autoscalers, told by the field managers of their status writes.

The watch of autoscalers hands each object that changed to `note`; whoever wants to write asks `active`. It costs a look
at metadata.managedFields when an object changes, and keeps one instant for each manager. Rules:

1. Every manager but our own that wrote a status is another controller, unless it is kubectl: a person writes by hand.
   Another installation of podscaler has another manager (`podscaler.controller.installation`).
2. One that has written within SILENT_PERIODS periods is at work; after that it is taken to be gone. What was written
   before the first list counts from the server's time stamp, everything later from when we saw it: the clocks of two
   machines need not agree for that.
3. One write to one autoscaler counts for all: who writes one follows them all.
"""

import logging
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from podscaler.api import instants
from podscaler.clock import NANOSECONDS, Clock

log = logging.getLogger(__name__)

BY_HAND = "kubectl"
SILENT_PERIODS = 3


class _Entry(msgspec.Struct, gc=False, rename="camel"):
    manager: str = ""
    subresource: str = ""
    time: str | None = None


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    managed_fields: list[_Entry] | None = None


class _Managed(msgspec.Struct, gc=False):
    metadata: _Meta


_MANAGED = msgspec.json.Decoder(_Managed)


class StatusWrite(NamedTuple):
    """The last write of a status by one field manager, and when the API server took it."""

    manager: str
    at_ns: int


def status_writes(raw: msgspec.Raw | bytes) -> Iterator[StatusWrite]:
    """Who wrote the status of an object, by its metadata.managedFields. Raises ValueError."""
    for entry in _MANAGED.decode(raw).metadata.managed_fields or ():
        if entry.subresource == "status" and entry.time:
            yield StatusWrite(entry.manager, instants.parse(entry.time))


class OtherControllers:
    """See the module's rules.

    Args:
        clock: for how long ago a write was.
        period_s: of the syncs.
        own: the field manager of our own writes.
    """

    def __init__(self, clock: Clock, *, period_s: float, own: str) -> None:
        self._own = own
        self._clock = clock
        self._silence_s = SILENT_PERIODS * period_s
        self._stamped_ns: dict[str, int] = {}
        self._heard_s: dict[str, float] = {}
        self._is_listed = False

    def note(self, raw: msgspec.Raw) -> None:
        """An autoscaler as the server has it now."""
        for write in status_writes(raw):
            if write.manager != self._own and not write.manager.startswith(BY_HAND):
                self._wrote(*write)

    def listed(self) -> None:
        """All autoscalers have been noted once: what comes now is news."""
        self._is_listed = True

    def active(self) -> str:
        """Who of them is at work, by name; empty where nobody is."""
        oldest_s = self._clock.monotonic_s() - self._silence_s
        return ", ".join(sorted(manager for manager, heard_s in self._heard_s.items() if heard_s > oldest_s))

    def _wrote(self, manager: str, at_ns: int) -> None:
        if at_ns <= self._stamped_ns.get(manager, 0):
            return
        self._stamped_ns[manager] = at_ns
        age_s = 0.0 if self._is_listed else max(self._clock.now_ns() - at_ns, 0) / NANOSECONDS
        self._heard_s[manager] = self._clock.monotonic_s() - age_s
