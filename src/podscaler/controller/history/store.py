"""Defines the interface for storing histories of autoscalers across restarts, and its implementation that stores
nothing.

The reconciler calls `find` before its first decision about an autoscaler, `keep` after each sync, and `store` before a
rescale is written; the controller runs `run` in the background. `podscaler.controller.history.config_map_store` stores
histories in the cluster. Which store a controller has is decided in `podscaler.controller.assembly`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from podscaler.controller.history.history_record import RestoredHistory
from podscaler.core.model.history import History
from podscaler.kube.informers.cache import Key


class HistorySnapshot(NamedTuple):
    """The history after a sync.

    Attributes:
        uid: the uid of the autoscaler.
        history: the whole history.
        replicas: spec.replicas of the target's scale after the sync; None: not known.
        at_ns: when the decision was made, in nanoseconds since the epoch.
        rescaled_from: the replicas before a rescale that is decided and not written yet; None if there is none.
    """

    uid: str
    history: History
    replicas: int | None
    at_ns: int
    rescaled_from: int | None = None


class HistoryStore:
    """Stores nothing, as kube-controller-manager; `ConfigMapHistoryStore` overrides every method."""

    async def find(self, key: Key, uid: str) -> RestoredHistory | None:
        """The history that an earlier process left of the autoscaler with that uid; None: none. Raises StatusError."""
        del key, uid
        return None

    def keep(self, key: Key, latest: HistorySnapshot) -> None:
        """Have the history of a sync written within a minute; call it only after `find` returned."""

    async def store(self, key: Key, latest: HistorySnapshot) -> None:
        """Return once the history is written, or cannot be for now; call it only after `find` returned."""

    def forget(self, key: Key) -> None:
        """The autoscaler was deleted: have its record removed."""

    def expect_changes(self) -> None:
        """Another process may have written since: records are read again."""

    async def hand_over(self, keys: Sequence[Key]) -> None:
        """Write the records of these autoscalers as they are now: another process continues from there."""

    def drop(self, key: Key) -> None:
        """Another process manages the autoscaler: write nothing about it any more."""

    async def run(self) -> None:
        """Write what was kept, until cancelled."""

    async def close(self) -> None:
        """Write everything as it is now."""
