"""The CronJob controller: creates Jobs at the times of a schedule, and removes old finished ones.

`controller_manager.Controllers` runs it. A Job's name contains its scheduled time, so that no time gets two Jobs.
Of several missed times only the last is made up for. As upstream, its search starts at an estimate from the interval
of the first two missed times, so that a schedule with uneven intervals can miss it.

Source: documentation of CronJob, `mostRecentScheduleTime` of its controller; events are upstream's.
"""

import copy
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from podscaler.api.kinds.apps.cron_schedule import CronSchedule, ScheduleError, parse_zone
from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.batch import job_verdict
from podscaler.controlplane.controllers.batch.jobs import JOBS
from podscaler.controlplane.controllers.framework import ownership, pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

CRON_JOBS = "cronjobs.batch"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY_MISSED = 100
_DELAY_S = 0.1
"""A sync for a scheduled time comes so much later, against clocks that differ."""


class CronJobs(Reconciler[Key]):
    """Reconciles CronJobs. Keys are namespace and name.

    Args:
        registry: the objects.
        clock: for the schedules.
    """

    name = "cronjob-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)

    def watches(self) -> Sequence[Watched[Key]]:
        """CronJobs and their Jobs."""
        return [Watched(CRON_JOBS, selection.own_key), Watched(JOBS, _owner_keys)]

    def prime(self) -> Iterable[Key]:
        """All CronJobs."""
        return [selection.key_of(cron_job) for cron_job in self._registry.list(CRON_JOBS)]

    async def sync(self, key: Key) -> float | None:
        """Create the Job that is due; returns the seconds until the next one, None if none will be."""
        stored = self._registry.find(CRON_JOBS, *key)
        if stored is None:
            return None
        cron_job = copy.deepcopy(stored)
        children = ownership.controlled_by(self._registry, JOBS, cron_job)
        self._note_ends(cron_job, children)
        try:
            wait_s = None if pods.is_terminating(cron_job) else await self._start_due(cron_job)
            await self._remove_old(cron_job, children)
        finally:
            await write_errors.write_status(self._registry, CRON_JOBS, stored, cron_job["status"])
        return wait_s

    def _note_ends(self, cron_job: Object, children: Sequence[Object]) -> None:
        """Remove finished and missing Jobs from `status.active`, and note the last success."""
        status = cron_job.setdefault("status", {})
        by_uid = {job["metadata"]["uid"]: job for job in children}
        active = {reference["uid"]: reference["name"] for reference in status.get("active") or []}
        for uid, job in by_uid.items():
            name, is_over = job["metadata"]["name"], job_verdict.is_finished(job)
            if uid not in active and not is_over:
                message = f"Saw a job that the controller did not create or forgot: {name}"
                self._events.event(cron_job, "Warning", "UnexpectedJob", message)
            elif uid in active and is_over:
                end = "Complete" if job_verdict.is_true(job, "Complete") else "Failed"
                _deactivate(status, uid)
                message = f"Saw completed job: {name}, condition: {end}"
                self._events.event(cron_job, "Normal", "SawCompletedJob", message)
            completed = (job.get("status") or {}).get("completionTime")
            if job_verdict.is_true(job, "Complete") and completed:
                status["lastSuccessfulTime"] = max(status.get("lastSuccessfulTime") or "", completed)
        for uid in active.keys() - by_uid.keys():
            _deactivate(status, uid)
            self._events.event(cron_job, "Normal", "MissingJob", f"Active job went missing: {active[uid]}")

    async def _start_due(self, cron_job: Object) -> float | None:
        """Create the Job that is due, if any; returns the seconds until the next time."""
        spec, now_ns = cron_job["spec"], self._clock.now_ns()
        if spec.get("suspend"):
            return None
        try:
            zone = parse_zone(spec["timeZone"]) if spec.get("timeZone") else None
        except ScheduleError as error:
            self._warn(cron_job, "UnknownTimeZone", f'invalid timeZone: "{spec["timeZone"]}": {error}')
            return None
        try:
            schedule = CronSchedule(spec["schedule"], zone)
            due_ns, missed = _last_due(cron_job, schedule, now_ns)
            wait_s = (schedule.next_ns(now_ns) - now_ns) / NANOSECONDS + _DELAY_S
        except ScheduleError as error:
            self._warn(cron_job, "UnparseableSchedule", f'unparseable schedule: "{spec["schedule"]}" : {error}')
            return None
        if due_ns is not None and missed > MANY_MISSED:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._warn(cron_job, "TooManyMissedTimes", message)
        if due_ns is not None and self._may_start(cron_job, due_ns):
            await self._replace_active(cron_job)
            await self._start(cron_job, due_ns, zone)
        return wait_s

    def _may_start(self, cron_job: Object, due_ns: int) -> bool:
        """Whether the Job of a time may be created: once, and with Forbid only if no other is active."""
        status, name = cron_job["status"], _job_name(cron_job, due_ns)
        active = status.get("active") or []
        is_active = any(reference["name"] == name for reference in active)
        if is_active or status.get("lastScheduleTime") == instants.text(due_ns):
            return False
        if cron_job["spec"]["concurrencyPolicy"] == "Forbid" and active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._events.event(cron_job, "Normal", "JobAlreadyActive", message)
            return False
        return True

    async def _replace_active(self, cron_job: Object) -> None:
        active = cron_job["status"].get("active") or [] if cron_job["spec"]["concurrencyPolicy"] == "Replace" else []
        for reference in list(active):
            job = self._registry.find(JOBS, cron_job["metadata"]["namespace"], reference["name"])
            if job is not None:
                await self._delete(cron_job, job)

    async def _start(self, cron_job: Object, due_ns: int, zone: ZoneInfo | None) -> None:
        """Create the Job of a time, or find the one that an earlier attempt has created."""
        new = _job(cron_job, due_ns, zone)
        try:
            job = await self._registry.create(JOBS, new)
            self._events.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        except StatusError as error:
            if not write_errors.is_already_exists(error):
                if not write_errors.is_namespace_terminating(error):
                    self._warn(cron_job, "FailedCreate", f"Error creating job: {error.message}")
                raise
            job = self._registry.get(JOBS, *selection.key_of(new))
            if not ownership.is_controlled_by(job, cron_job["metadata"]["uid"]):
                return
        status = cron_job["status"]
        status["active"] = [*(status.get("active") or []), _reference(job)]
        status["lastScheduleTime"] = instants.text(due_ns)

    async def _remove_old(self, cron_job: Object, children: Sequence[Object]) -> None:
        """Delete the oldest finished Jobs beyond the history limits."""
        limits = {"Complete": "successfulJobsHistoryLimit", "Failed": "failedJobsHistoryLimit"}
        for type_, limit in limits.items():
            over = [job for job in children if job_verdict.is_true(job, type_)]
            surplus = len(over) - cron_job["spec"][limit]
            for job in sorted(over, key=_age_order)[: max(surplus, 0)]:
                await self._delete(cron_job, job)

    async def _delete(self, cron_job: Object, job: Object) -> None:
        metadata = job["metadata"]
        delete = self._registry.delete(JOBS, *selection.key_of(job), uid=metadata["uid"], propagation="Background")
        await write_errors.ignoring_gone(delete, another=True)
        _deactivate(cron_job["status"], metadata["uid"])
        self._events.event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {metadata['name']}")

    def _warn(self, cron_job: Object, reason: str, message: str) -> None:
        self._events.event(cron_job, "Warning", reason, message)


def _owner_keys(event: ObjectEvent) -> list[Key]:
    owner = ownership.controller_of(event.object)
    is_owned = owner is not None and owner["kind"] == "CronJob"
    return [(event.object["metadata"]["namespace"], owner["name"])] if owner and is_owned else []


def _last_due(cron_job: Object, schedule: CronSchedule, now_ns: int) -> tuple[int | None, int]:
    """The last scheduled time that is not in the future, None if there is none, and about how many were missed."""
    status, deadline_s = cron_job["status"], cron_job["spec"].get("startingDeadlineSeconds")
    earliest_ns = instants.parse(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    if deadline_s is not None:
        earliest_ns = max(earliest_ns, now_ns - deadline_s * NANOSECONDS)
    first_ns = schedule.next_ns(earliest_ns)
    if first_ns > now_ns:
        return None, 0
    second_ns = schedule.next_ns(first_ns)
    if second_ns > now_ns:
        return first_ns, 0
    missed = (now_ns - first_ns) // (second_ns - first_ns) + 1
    at_ns = schedule.next_ns(first_ns + (missed - 2) * (second_ns - first_ns))
    last_ns: int | None = None
    while at_ns <= now_ns:
        last_ns, at_ns = at_ns, schedule.next_ns(at_ns)
    return last_ns, missed


def _job_name(cron_job: Object, due_ns: int) -> str:
    return f"{cron_job['metadata']['name']}-{due_ns // NANOSECONDS // 60}"


def _job(cron_job: Object, due_ns: int, zone: ZoneInfo | None) -> Object:
    """The Job of a scheduled time."""
    template = cron_job["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    at = datetime.fromtimestamp(due_ns // NANOSECONDS, UTC).astimezone(zone or UTC).isoformat()
    annotations = {**(metadata.get("annotations") or {}), SCHEDULED_AT: at.replace("+00:00", "Z")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": _job_name(cron_job, due_ns),
            "namespace": cron_job["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {})},
            "annotations": annotations,
            "ownerReferences": [ownership.controller_reference(cron_job)],
        },
        "spec": copy.deepcopy(template["spec"]),
    }


def _reference(job: Object) -> Object:
    names = ("name", "namespace", "uid", "resourceVersion")
    return {"apiVersion": "batch/v1", "kind": "Job", **{name: job["metadata"][name] for name in names}}


def _deactivate(status: Object, uid: str) -> None:
    left = [reference for reference in status.get("active") or [] if reference["uid"] != uid]
    if left:
        status["active"] = left
    else:
        status.pop("active", None)


def _age_order(job: Object) -> tuple[str, str]:
    return (job.get("status") or {}).get("startTime") or "~", job["metadata"]["name"]
