"""Where histories outlive the process: what syncs ask of it and tell it, and its form that keeps nothing.

The reconciler asks `find` before it decides about an autoscaler for the first time, tells with `keep` what every sync
left, and has with `store` a rescale written before it is carried out; the loop runs it beside the work.
`podscaler.controller.history.config_map_store` is the one that keeps.
"""

from collections.abc import Sequence
from typing import NamedTuple

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


class HistoryStore:
    """See the module. This one keeps nothing, as upstream; `ConfigMapHistoryStore` overrides every method."""

    async def find(self, key: Key, uid: str) -> RestoredHistory | None:
        """The history that an earlier process left of the autoscaler with that uid; None: there is none.

        Raises StatusError where it cannot be read now.
        """
        del key, uid
        return None

    def keep(self, key: Key, latest: HistorySnapshot) -> None:
        """Have it written within a minute; call it only after `find` returned."""

    async def store(self, key: Key, latest: HistorySnapshot) -> None:
        """Return once it is written, or cannot be for now; call it only after `find` returned."""

    def forget(self, key: Key) -> None:
        """The autoscaler was deleted: have its record removed."""

    def expect_changes(self) -> None:
        """Another process may have written since: records are read again."""

    async def hand_over(self, keys: Sequence[Key]) -> None:
        """Write the records of these as they are now: another process continues from there."""

    def drop(self, key: Key) -> None:
        """Another process manages the autoscaler: write nothing about it any more."""

    async def run(self) -> None:
        """Write what was kept, until cancelled."""

    async def close(self) -> None:
        """Write everything as it is now."""
