"""Detects from outside whether a controller manages HorizontalPodAutoscalers.

`podscaler migrate` checks it before it creates some. Two signs count: a status that a controller wrote recently, and a
kube-controller-manager that renews its Lease. Neither is proof: statuses that do not change are seldom written, and a
kube-controller-manager may run without its autoscaler. So without a sign the user gets a warning, and no more. A
further sign: a function beside `_has_writer`, in the tuple of `find_doubt`.
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
CHECKED_AUTOSCALERS = 500
"""How many autoscalers are read: a controller that writes one status manages them all."""


async def find_doubt(client: Client, clock: Clock) -> str:
    """A warning where no controller seems to manage HorizontalPodAutoscalers; else empty.

    Objects that the caller may not read are no sign. Raises TransportError.
    """
    unknown: list[str] = []
    for sign in (other_controllers.is_built_in_alive, _has_writer):
        try:
            if await sign(client, clock.now_ns()):
                return ""
        except TransportError:
            raise
        except (StatusError, ValueError) as error:
            log.info("whether a controller manages %s: %s", HPA.plural, error)
            unknown.append(str(error))
    effect = "what is migrated is not scaled until a controller manages it"
    if unknown:
        return f"whether a controller manages {HPA.plural} is not known ({'; '.join(unknown)}): if none does, {effect}"
    return (
        f"no controller seems to manage {HPA.plural}: none wrote a status in the last {_RECENT_MIN:g} minutes, "
        f"and no {other_controllers.BUILT_IN} renews its Lease; {effect}"
    )


async def _has_writer(client: Client, now_ns: int) -> bool:
    """Whether a controller wrote a status recently. Raises StatusError, and ValueError if there is no autoscaler."""
    body = await client.get(HPA.path(), subject=HPA.resource, query=[("limit", str(CHECKED_AUTOSCALERS))])
    items = watch_events.page(body).items
    if not items:
        raise ValueError("there are none yet")
    return any(_is_recent(autoscaler_json, now_ns) for autoscaler_json in items)


def _is_recent(autoscaler_json: msgspec.Raw, now_ns: int) -> bool:
    """Whether a controller (not kubectl, nor a migration) wrote the object's status recently. Raises ValueError."""
    since_ns = now_ns - int(other_controllers.RECENT_S * NANOSECONDS)
    return any(
        status_write.at_ns > since_ns and not status_write.manager.startswith(other_controllers.IGNORED_PREFIXES)
        for status_write in other_controllers.status_writes(autoscaler_json)
    )
