"""Where histories outlive the process: what syncs ask of it and tell it, and its form that keeps nothing.

The reconciler asks `find` before it decides about an autoscaler for the first time, tells with `keep` what every sync
left, and has with `store` a rescale written before it is carried out; the loop runs it beside the work.
`podscaler.controller.history.config_map_store` is the one that keeps.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from podscaler.controller.history.history_record import RestoredHistory
from podscaler.core.model.history import History
from podscaler.kube.informers.cache import Key


class HistorySnapshot(NamedTuple):
    """What a sync left.

    Attributes:
        uid: the autoscaler's.
        history: all of it.
        replicas: what the target has now; None where that is not known.
        at_ns: the instant of the decision.
        rescaled_from: what the target had before, where this is what a rescale will leave that is yet to be written.
    """

    uid: str
    history: History
    replicas: int | None
    at_ns: int
    rescaled_from: int | None = None


class HistoryStore(Protocol):
    """Where histories outlive the process."""

    async def find(self, key: Key, uid: str) -> RestoredHistory | None:
        """What is kept of an autoscaler. Raises StatusError where that cannot be known now."""
        ...

    def keep(self, key: Key, latest: HistorySnapshot) -> None:
        """Have it written in time; only after `find` told what there was."""
        ...

    async def store(self, key: Key, latest: HistorySnapshot) -> None:
        """Return once it is written, or cannot be for now; only after `find` told what there was."""
        ...

    def forget(self, key: Key) -> None:
        """The autoscaler is gone."""
        ...

    def expect_changes(self) -> None:
        """Another process may have written since: what is asked for from now on is read again."""
        ...

    async def hand_over(self, keys: Sequence[Key]) -> None:
        """Write everything about these as it is now: another process goes on from there."""
        ...

    def drop(self, key: Key) -> None:
        """The autoscaler is another process's: write nothing about it any more."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...

    async def close(self) -> None:
        """Write everything as it is now."""
        ...


class NoHistoryStore:
    """Histories end with the process, as upstream's do."""

    async def find(self, key: Key, uid: str) -> RestoredHistory | None:
        """Nothing."""
        del key, uid
        return None

    def keep(self, key: Key, latest: HistorySnapshot) -> None:
        """Nothing."""

    async def store(self, key: Key, latest: HistorySnapshot) -> None:
        """Nothing."""

    def forget(self, key: Key) -> None:
        """Nothing."""

    def expect_changes(self) -> None:
        """Nothing."""

    async def hand_over(self, keys: Sequence[Key]) -> None:
        """Nothing."""

    def drop(self, key: Key) -> None:
        """Nothing."""

    async def run(self) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""
