"""Reads and writes the annotations of a migration, in which an autoscaler of one kind replaces one of the other kind.

`podscaler.controller.coexistence.migration` writes them; `autoscaler_informer` and the reconciler read them. A
PodAutoscaler waits, which means that it is not synced and that an event reports it, while

* it is annotated MIGRATING_TO: its HorizontalPodAutoscaler is about to be created, or
* the HorizontalPodAutoscaler that it was made from (MIGRATED_FROM) still exists.

HISTORY is the history that the old object's controller stored, for the first sync of the new object. A further
annotation: also in `counterpart.MIGRATION_ANNOTATIONS`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podscaler.api.machinery.meta import ObjectMeta
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import Heartbeat, RestoredHistory
from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

MIGRATING_TO = "podscaler.dev/migrating-to"
MIGRATED_FROM = "podscaler.dev/migrated-from"
HISTORY = "podscaler.dev/history"
WAITING = "WaitingForHandover"
"""The reason of the event by which a controller reports that a PodAutoscaler waits."""


class MigrationOrigin(NamedTuple):
    """The autoscaler that another one of the namespace was made from: its `AutoscalerKind.flag`, name and uid."""

    kind: str
    name: str
    uid: str

    def __str__(self) -> str:
        """The value of the annotation."""
        return "/".join(self)


def find_origin(meta: ObjectMeta) -> MigrationOrigin | None:
    """The origin of the object; None if the annotation is absent or invalid."""
    parts = (meta.annotations or {}).get(MIGRATED_FROM, "").split("/")
    return MigrationOrigin(*parts) if len(parts) == 3 else None


def is_waiting(meta: ObjectMeta, find_hpa_uid: Callable[[Key], str | None]) -> bool:
    """Whether a PodAutoscaler waits for a migration.

    Args:
        meta: the PodAutoscaler's metadata.
        find_hpa_uid: returns the uid of the HorizontalPodAutoscaler of that namespace and name; None if there is none.
    """
    if MIGRATING_TO in (meta.annotations or {}):
        return True
    origin = find_origin(meta)
    return origin is not None and origin.kind == HPA.flag and find_hpa_uid((meta.namespace, origin.name)) == origin.uid


def waiting_message(annotations: Mapping[str, str]) -> str:
    """The message of the event WAITING, by the annotations of the PodAutoscaler, which is known to wait."""
    if MIGRATING_TO in annotations:
        return f"no longer managed: it becomes a {annotations[MIGRATING_TO]}"
    return f"waits until {annotations.get(MIGRATED_FROM, 'another')} is gone"


def find_history(meta: ObjectMeta, now_ns: int) -> RestoredHistory | None:
    """The history in the annotation; None if it is absent or invalid.

    It was read at the instant of the handover, so it is complete, as after an orderly end.
    """
    record_json = (meta.annotations or {}).get(HISTORY)
    if not record_json:
        return None
    try:
        record = history_record.decode(record_json)
    except ValueError as error:
        log.warning("the annotation %s of %s/%s is invalid: %s", HISTORY, meta.namespace, meta.name, error)
        return None
    if history_record.is_from_future(record, now_ns):
        return None
    return history_record.restored(record, Heartbeat(record.saved_at, ended=True), now_ns)
