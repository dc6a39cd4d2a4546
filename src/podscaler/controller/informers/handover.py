"""An autoscaler that takes another's place, and what both say of it until it has: annotations.

`podscaler migrate` writes them; the controller obeys. A PodAutoscaler waits, which means that nothing is done about it
but to say so in an event, while

* it is marked MIGRATING_TO: its HorizontalPodAutoscaler is about to begin, or
* the HorizontalPodAutoscaler that it was made from (MIGRATED_FROM) is still there.

HISTORY is what an earlier controller remembered, for the first sync of the new object.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podscaler.api.machinery.meta import ObjectMeta
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import Heartbeat, RestoredHistory
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

MIGRATING_TO = "podscaler.dev/migrating-to"
MIGRATED_FROM = "podscaler.dev/migrated-from"
HISTORY = "podscaler.dev/history"
WAITING = "WaitingForHandover"
"""The reason of the event by which a controller tells that it follows a PodAutoscaler that waits."""


class MigrationOrigin(NamedTuple):
    """What an autoscaler was made from: the flag of its kind, its name and its uid."""

    kind: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As the annotation says it."""
        return "/".join(self)


def find_origin(meta: ObjectMeta) -> MigrationOrigin | None:
    """What the object was made from; None where it says nothing that makes sense."""
    parts = (meta.annotations or {}).get(MIGRATED_FROM, "").split("/")
    return MigrationOrigin(*parts) if len(parts) == 3 else None


def waits(meta: ObjectMeta, find_hpa_uid: Callable[[Key], str | None]) -> bool:
    """Whether a PodAutoscaler waits.

    Args:
        meta: its metadata.
        find_hpa_uid: the uid of the HorizontalPodAutoscaler of that namespace and name, None where there is none.
    """
    if MIGRATING_TO in (meta.annotations or {}):
        return True
    origin = find_origin(meta)
    return origin is not None and origin.kind == "hpa" and find_hpa_uid((meta.namespace, origin.name)) == origin.uid


def said_of(annotations: Mapping[str, str]) -> str:
    """The message of that event, by what the PodAutoscaler waits for."""
    if MIGRATING_TO in annotations:
        return f"no longer looked after: it becomes a {annotations[MIGRATING_TO]}"
    return f"waits until {annotations.get(MIGRATED_FROM, 'another')} is gone"


def find_history(meta: ObjectMeta, now_ns: int) -> RestoredHistory | None:
    """The history that was handed over to the object; None where there is none that makes sense.

    Whoever handed it over read it as it was at that moment: it is complete, as after an orderly end.
    """
    text = (meta.annotations or {}).get(HISTORY)
    if not text:
        return None
    try:
        record = history_record.decode(text)
    except ValueError as error:
        log.warning("the annotation %s of %s/%s makes no sense: %s", HISTORY, meta.namespace, meta.name, error)
        return None
    if history_record.is_from_the_future(record, now_ns):
        return None
    return history_record.found(record, Heartbeat(record.saved_at, ended=True), now_ns)
