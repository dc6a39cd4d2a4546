"""Which autoscaler the code that runs now is working on, for those that look on: logs and traces.

The loop sets it in the task of each sync, so that whatever a sync awaits, down to a repeated request, finds it.
"""

from contextvars import ContextVar
from typing import Protocol

from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options.autoscaler_kinds import object_key, of_key
from podscaler.core.decision import Decision
from podscaler.kube.informers.cache import Key

CURRENT: ContextVar[Key | None] = ContextVar("autoscaler", default=None)
"""Its key; None outside of syncs."""


class Reconciler(Protocol):
    """What carries out a sync: the reconciler, or something around it that looks on."""

    async def reconcile(self, autoscaler: Autoscaler) -> Decision:
        """What was decided and done."""
        ...


def log_fields() -> dict[str, str]:
    """The fields that a log record of the running sync has besides its own: `kind`, `namespace` and `autoscaler`."""
    key = CURRENT.get()
    if key is None:
        return {}
    namespace, name = object_key(key)
    return {"kind": of_key(key).kind, "namespace": namespace, "autoscaler": name}
