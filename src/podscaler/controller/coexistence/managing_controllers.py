"""Whether anybody seems to look after HorizontalPodAutoscalers, told from outside.

`podscaler migrate` asks before it makes some. Two signs count: a status that a controller wrote not long ago, and a
kube-controller-manager that renews its Lease. Neither is proof: statuses at rest are seldom written, and a
kube-controller-manager may run without its autoscaler. So without a sign there is a doubt, and no more than that.
"""

import logging

import msgspec

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.controller.informers import other_controllers
from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.kube.client.client import Client
from podscaler.kube.informers import watch_events
from podscaler.kube.transport.transport import TransportError

log = logging.getLogger(__name__)

_RECENT_MIN = other_controllers.RECENT_S / 60
LOOKED_AT = 500
"""How many autoscalers are looked at: a controller that writes one status follows them all."""


async def doubt(client: Client, clock: Clock) -> str:
    """A sentence for the user where nobody seems to look after HorizontalPodAutoscalers; else empty.

    What may not be read tells nothing. Raises TransportError.
    """
    unknown: list[str] = []
    for sign in (other_controllers.is_built_in_alive, _has_writer):
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
        f"nobody seems to look after {HPA.plural}: no controller wrote a status in the last {_RECENT_MIN:g} minutes, "
        f"and no {other_controllers.BUILT_IN} renews its Lease; {after}"
    )


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
    """Whether a controller wrote the object's status not long ago; a person is none, nor is a migration.

    Raises ValueError.
    """
    since = now - int(other_controllers.RECENT_S * NANOSECONDS)
    return any(
        each.at_ns > since and not each.manager.startswith(other_controllers.BY_HAND)
        for each in other_controllers.status_writes(raw)
    )
