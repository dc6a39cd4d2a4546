"""Whether anybody seems to look after HorizontalPodAutoscalers, told from outside.

`podscaler migrate` asks before it makes some. Two signs count: a status that a controller wrote not long ago, and a
kube-controller-manager that renews its Lease. Neither is proof: statuses at rest are seldom written, and a
kube-controller-manager may run without its autoscaler. So without a sign there is a doubt, and no more than that.
"""

import logging

import msgspec

from podscaler.api import instants
from podscaler.clock import NANOSECONDS, Clock
from podscaler.controller import handover, installation, other_controllers
from podscaler.controller.autoscaler_kinds import HPA
from podscaler.controller.leading import lease
from podscaler.errors import StatusError
from podscaler.kube import watch_events
from podscaler.kube.client import Client, is_not_found
from podscaler.kube.transport import TransportError

log = logging.getLogger(__name__)

RECENT_S = 300
"""For how long the last write of a status tells that its writer is at work."""
LOOKED_AT = 500
"""How many autoscalers are looked at: a controller that writes one status follows them all."""
MANAGER = "kube-controller-manager"
CLOCKS_APART_S = 30
"""By how much the clock of the Lease's holder may be behind ours."""


class _Meta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta


_OBJECT = msgspec.json.Decoder(_Object)


async def doubt(client: Client, clock: Clock) -> str:
    """A sentence for the user where nobody seems to look after HorizontalPodAutoscalers; else empty.

    What may not be read tells nothing. Raises TransportError.
    """
    unknown: list[str] = []
    for sign in (_has_manager, _has_writer):
        try:
            if await sign(client, clock.now_ns()):
                return ""
        except TransportError:
            raise
        except (StatusError, ValueError) as error:
            log.info("whether anybody looks after %s: %s", HPA.plural, error)
            unknown.append(str(error))
    after = "what is migrated is not scaled until a controller looks after it"
    if unknown:
        return f"whether anybody looks after {HPA.plural} is not known ({'; '.join(unknown)}): if nobody does, {after}"
    return (
        f"nobody seems to look after {HPA.plural}: no controller wrote a status in the last {RECENT_S // 60} minutes, "
        f"and no {MANAGER} renews its Lease; {after}"
    )


async def _has_manager(client: Client, now: int) -> bool:
    """Whether a kube-controller-manager renews its Lease. Raises StatusError, ValueError."""
    place = lease.path(lease.NAMESPACE, MANAGER)
    try:
        record = lease.read(await client.get(place, subject=f"{lease.RESOURCE} {MANAGER}")).record
    except StatusError as error:
        if is_not_found(error):
            return False
        raise
    if not record.holder or not record.renewed_at:
        return False
    lasts_s = record.duration_s + CLOCKS_APART_S
    return now < instants.parse(record.renewed_at) + lasts_s * NANOSECONDS


async def _has_writer(client: Client, now: int) -> bool:
    """Whether a controller wrote a status not long ago.

    Raises StatusError, and ValueError where that cannot be told, for one because there is no autoscaler to write about.
    """
    body = await client.get(HPA.path(), subject=HPA.resource, query=[("limit", str(LOOKED_AT))])
    items = watch_events.page(body).items
    if not items:
        raise ValueError("there are none yet")
    return any(_is_recent(raw, now) for raw in items)


def _is_recent(raw: msgspec.Raw, now: int) -> bool:
    """Whether a controller wrote the object's status not long ago. Raises ValueError."""
    writes = other_controllers.status_writes(raw)
    is_migrated = handover.MIGRATED_FROM in (_OBJECT.decode(raw).metadata.annotations or {})
    since = now - RECENT_S * NANOSECONDS
    return any(each.at_ns > since and _is_controller(each.manager, is_migrated=is_migrated) for each in writes)


def _is_controller(manager: str, *, is_migrated: bool) -> bool:
    """Whether a writer of statuses is one; a person is not, nor is a migration, which writes under our name."""
    is_migration = is_migrated and manager == installation.MANAGER
    return not is_migration and not manager.startswith(other_controllers.BY_HAND)
