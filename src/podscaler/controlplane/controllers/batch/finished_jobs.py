"""Deletes finished Jobs `spec.ttlSecondsAfterFinished` seconds after their end.

`controller_manager.Controllers` runs it. `_expires_at_ns` decides which Jobs expire, and when.
Source: the TTL-after-finished controller; a Job is deleted in the foreground.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.controllers.batch.jobs import JOBS
from podscaler.controlplane.controllers.framework import conditions, pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry


class FinishedJobs(Reconciler[Key]):
    """Deletes the Jobs of `registry` whose time to live has passed, by `clock`. Keys are namespace and name."""

    name = "ttl-after-finished-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def watches(self) -> Sequence[Watched[Key]]:
        """Jobs."""
        return [Watched(JOBS, _expiring_keys)]

    def prime(self) -> Iterable[Key]:
        """All Jobs that expire."""
        return [selection.key_of(job) for job in self._registry.list(JOBS) if _expires_at_ns(job) is not None]

    async def sync(self, key: Key) -> float | None:
        """Delete the Job if it has expired (returns None), or return the seconds until it does, None if it never does.

        Raises StatusError if it cannot be deleted.
        """
        job = self._registry.find(JOBS, *key)
        expires_at_ns = _expires_at_ns(job) if job is not None else None
        if job is None or expires_at_ns is None or pods.is_terminating(job):
            return None
        left_s = (expires_at_ns - self._clock.now_ns()) / NANOSECONDS
        if left_s > 0:
            return left_s
        uid = job["metadata"]["uid"]
        delete = self._registry.delete(JOBS, *key, uid=uid, propagation="Foreground")
        await write_errors.ignoring_gone(delete, or_replaced=True)
        return None


def _expiring_keys(event: ObjectEvent) -> list[Key]:
    """The key of the changed Job if it expires, otherwise none."""
    return [] if _expires_at_ns(event.object) is None else selection.own_keys(event)


def _expires_at_ns(job: Object) -> int | None:
    """When a Job is to be deleted, in nanoseconds since the epoch; None if it runs or has no time to live."""
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    if ttl_s is None:
        return None
    job_conditions = (job.get("status") or {}).get("conditions") or []
    for type_ in ("Complete", "Failed"):
        end = conditions.find(job_conditions, type_)
        if end is not None and end["status"] == "True":
            return instants.parse(end["lastTransitionTime"]) + int(ttl_s) * NANOSECONDS
    return None
