"""Watches: changes of one resource, in order, exactly once, from any retained resourceVersion on.

`Objects.watch` makes a `Subscription`; the HTTP stream and the in-process registry read it in batches.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

from podscaler.controlplane.entries import Entry


@dataclass(frozen=True, slots=True)
class Notice:
    """One watch event.

    Attributes:
        type: as the watcher sees it (an object that enters its selection is ADDED, one that leaves it DELETED).
        entry: the object as it now is; for DELETED as it last was, with the resourceVersion of the deletion.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    entry: Entry
    _memo: dict[Hashable, bytes]

    def encoded(self, form: Hashable, encode: Callable[["Notice"], bytes]) -> bytes:
        """`encode(self)`, made once for each `form` (version, Table, ...) and shared by all watchers of this event."""
        frame = self._memo.get((form, self.type))
        if frame is None:
            frame = self._memo[(form, self.type)] = encode(self)
        return frame


@dataclass(frozen=True, slots=True)
class Batch:
    """What came since the last batch.

    Attributes:
        notices: in order; empty only where `initial_done` is set.
        revision: everything up to here has been given: the resourceVersion of a bookmark sent now.
        initial_done: this batch ends the initial ADDED events (comes once in a subscription that has them,
            also where there are none).
    """

    notices: list[Notice]
    revision: int
    initial_done: bool = False


class Subscription:
    """One watcher. Costs nothing while nothing happens; holds a place in the shared log, no buffer of its own."""

    async def batch(self) -> Batch:
        """The next changes, at most a few hundred; waits until there is one. Cancelling loses nothing.

        Raises StatusError 410 once the watcher fell behind the retained history: end the stream, the client resumes.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End it; a waiting `batch` raises asyncio.CancelledError."""
        raise NotImplementedError
