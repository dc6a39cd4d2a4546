"""Names the autoscaler that the running task syncs, for log records, and defines the interface of a reconciler.

The worker sets `CURRENT` in the task of each sync, so that all code that the sync awaits can read it; the command line
gives `log_fields` to the log's formatter. `SyncHandler` is the interface that wrappers of the reconciler (traces) have.
A further field of log records: in `log_fields`.
"""

from contextvars import ContextVar
from typing import Protocol

from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options.autoscaler_kinds import object_key, of_key
from podscaler.core.decision import Decision
from podscaler.kube.informers.cache import Key

CURRENT: ContextVar[Key | None] = ContextVar("autoscaler", default=None)
"""The key of the autoscaler that is synced; None outside of syncs."""


class SyncHandler(Protocol):
    """Carries out a sync: the reconciler, or a wrapper of it."""

    async def reconcile(self, autoscaler: Autoscaler) -> Decision:
        """The decision, as it turned out."""
        ...


def log_fields() -> dict[str, str]:
    """The additional fields of log records in a sync: `kind`, `namespace` and `autoscaler`; empty outside of one."""
    key = CURRENT.get()
    if key is None:
        return {}
    namespace, name = object_key(key)
    return {"kind": of_key(key).kind, "namespace": namespace, "autoscaler": name}
