"""The CronJob controller: creates Jobs at the times of a schedule, and removes old finished ones.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync reads a CronJob and its Jobs, creates
the Job that is due, deletes finished Jobs beyond the history limits, and writes the status. A Job's name contains its
scheduled time, so that no time gets two Jobs. Of several missed times only the last gets a Job (`_last_due`). A new
concurrencyPolicy: `_may_create`, and in `_create_due` what it does to active Jobs.

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
"""Annotation of a Job: its scheduled time."""
MANY_MISSED_TIMES = 100
"""With more missed times than this, an Event warns of them, as the clock may be wrong."""
_DUE_MARGIN_S = 0.1
"""A sync is planned so much after a scheduled time, so that a clock that differs a little shows the time as reached."""
_AFTER_ALL_TIMES = "~"
"""Sorts after every RFC 3339 time."""


class CronJobs(Reconciler[Key]):
    """Reconciles the CronJobs of `registry`. Keys are namespace and name; `clock` is for the schedules."""

    name = "cronjob-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)

    def watches(self) -> Sequence[Watched[Key]]:
        """CronJobs and their Jobs."""
        return [Watched(CRON_JOBS, selection.own_keys), Watched(JOBS, _owner_keys)]

    def prime(self) -> Iterable[Key]:
        """All CronJobs."""
        return [selection.key_of(cron_job) for cron_job in self._registry.list(CRON_JOBS)]

    async def sync(self, key: Key) -> float | None:
        """Create the Job that is due and delete old ones; returns the seconds until the next time, None without one.

        The status is written even if another write fails, so that `status.active` has the Jobs created before it.
        Raises StatusError.
        """
        stored = self._registry.find(CRON_JOBS, *key)
        if stored is None:
            return None
        cron_job = copy.deepcopy(stored)
        children = ownership.controlled_by(self._registry, JOBS, cron_job)
        self._update_active(cron_job, children)
        try:
            wait_s = None if pods.is_terminating(cron_job) else await self._create_due(cron_job)
            await self._delete_old(cron_job, children)
        finally:
            await write_errors.write_status(self._registry, CRON_JOBS, stored, cron_job["status"])
        return wait_s

    def _update_active(self, cron_job: Object, children: Sequence[Object]) -> None:
        """Remove ended and missing Jobs from `status.active`, with Events, and set `lastSuccessfulTime`, in place."""
        status = cron_job.setdefault("status", {})
        job_by_uid = {job["metadata"]["uid"]: job for job in children}
        active_name_by_uid = {reference["uid"]: reference["name"] for reference in status.get("active") or []}
        for uid, job in job_by_uid.items():
            name, is_finished = job["metadata"]["name"], job_verdict.is_finished(job)
            if uid not in active_name_by_uid and not is_finished:
                message = f"Saw a job that the controller did not create or forgot: {name}"
                self._events.event(cron_job, "Warning", "UnexpectedJob", message)
            elif uid in active_name_by_uid and is_finished:
                condition_type = "Complete" if job_verdict.has_condition(job, "Complete") else "Failed"
                _remove_active(status, uid)
                message = f"Saw completed job: {name}, condition: {condition_type}"
                self._events.event(cron_job, "Normal", "SawCompletedJob", message)
            completion_time = (job.get("status") or {}).get("completionTime")
            if job_verdict.has_condition(job, "Complete") and completion_time:
                status["lastSuccessfulTime"] = max(status.get("lastSuccessfulTime") or "", completion_time)
        for uid in active_name_by_uid.keys() - job_by_uid.keys():
            _remove_active(status, uid)
            message = f"Active job went missing: {active_name_by_uid[uid]}"
            self._events.event(cron_job, "Normal", "MissingJob", message)

    async def _create_due(self, cron_job: Object) -> float | None:
        """Create the Job that is due, if any; returns the seconds until the next time, None without a next time."""
        spec, now_ns = cron_job["spec"], self._clock.now_ns()
        if spec.get("suspend"):
            return None
        try:
            zone = parse_zone(spec["timeZone"]) if spec.get("timeZone") else None
        except ScheduleError as error:
            self._record_warning(cron_job, "UnknownTimeZone", f'invalid timeZone: "{spec["timeZone"]}": {error}')
            return None
        try:
            schedule = CronSchedule(spec["schedule"], zone)
            due_ns, missed_times = _last_due(cron_job, schedule, now_ns)
            wait_s = (schedule.next_ns(now_ns) - now_ns) / NANOSECONDS + _DUE_MARGIN_S
        except ScheduleError as error:
            message = f'unparseable schedule: "{spec["schedule"]}" : {error}'
            self._record_warning(cron_job, "UnparseableSchedule", message)
            return None
        if due_ns is not None and missed_times > MANY_MISSED_TIMES:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._record_warning(cron_job, "TooManyMissedTimes", message)
        if due_ns is not None and self._may_create(cron_job, due_ns):
            if spec["concurrencyPolicy"] == "Replace":
                await self._delete_active_jobs(cron_job)
            await self._create_job(cron_job, due_ns, zone)
        return wait_s

    def _may_create(self, cron_job: Object, due_ns: int) -> bool:
        """Whether the Job of a time may be created: only once, and with Forbid only while no other is active.

        An Event is recorded if Forbid prevents it.
        """
        status, job_name = cron_job["status"], _job_name(cron_job, due_ns)
        active = status.get("active") or []
        is_active = any(reference["name"] == job_name for reference in active)
        if is_active or status.get("lastScheduleTime") == instants.text(due_ns):
            return False
        if cron_job["spec"]["concurrencyPolicy"] == "Forbid" and active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._events.event(cron_job, "Normal", "JobAlreadyActive", message)
            return False
        return True

    async def _delete_active_jobs(self, cron_job: Object) -> None:
        """Delete the Jobs of `status.active`."""
        for reference in list(cron_job["status"].get("active") or []):
            job = self._registry.find(JOBS, cron_job["metadata"]["namespace"], reference["name"])
            if job is not None:
                await self._delete_job(cron_job, job)

    async def _create_job(self, cron_job: Object, due_ns: int, zone: ZoneInfo | None) -> None:
        """Create the Job of a time, or find that of an earlier attempt; add it to `status.active`. Raises StatusError.

        A Job of that name that the CronJob does not control is left alone.
        """
        new_job = _job_manifest(cron_job, due_ns, zone)
        try:
            job = await self._registry.create(JOBS, new_job)
            self._events.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        except StatusError as error:
            if not write_errors.is_already_exists(error):
                if not write_errors.is_namespace_terminating(error):
                    self._record_warning(cron_job, "FailedCreate", f"Error creating job: {error.message}")
                raise
            job = self._registry.get(JOBS, *selection.key_of(new_job))
            if not ownership.is_controlled_by(job, cron_job["metadata"]["uid"]):
                return
        status = cron_job["status"]
        status["active"] = [*(status.get("active") or []), _job_reference(job)]
        status["lastScheduleTime"] = instants.text(due_ns)

    async def _delete_old(self, cron_job: Object, children: Sequence[Object]) -> None:
        """Delete the oldest finished Jobs beyond the history limits."""
        limit_fields = {"Complete": "successfulJobsHistoryLimit", "Failed": "failedJobsHistoryLimit"}
        for condition_type, limit_field in limit_fields.items():
            finished = [job for job in children if job_verdict.has_condition(job, condition_type)]
            surplus = max(len(finished) - cron_job["spec"][limit_field], 0)
            for job in sorted(finished, key=_start_order)[:surplus]:
                await self._delete_job(cron_job, job)

    async def _delete_job(self, cron_job: Object, job: Object) -> None:
        """Delete a Job, which may be gone, and remove it from `status.active`."""
        metadata = job["metadata"]
        delete = self._registry.delete(JOBS, *selection.key_of(job), uid=metadata["uid"], propagation="Background")
        await write_errors.ignoring_gone(delete, or_replaced=True)
        _remove_active(cron_job["status"], metadata["uid"])
        self._events.event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {metadata['name']}")

    def _record_warning(self, cron_job: Object, reason: str, message: str) -> None:
        """Record a Warning Event at the CronJob."""
        self._events.event(cron_job, "Warning", reason, message)


def _owner_keys(event: ObjectEvent) -> list[Key]:
    """The key of the CronJob that controls a changed Job; none for other Jobs."""
    owner = ownership.controller_of(event.object)
    if owner is None or owner["kind"] != "CronJob":
        return []
    return [(event.object["metadata"]["namespace"], owner["name"])]


def _last_due(cron_job: Object, schedule: CronSchedule, now_ns: int) -> tuple[int | None, int]:
    """The last scheduled time that is not in the future, None if there is none, and how many were missed, estimated.

    Times count after the last scheduled one (or the creation), and within startingDeadlineSeconds; a single one is not
    missed. As upstream, the search starts at an estimate from the interval of the first two times, one interval before
    the last, so that with uneven intervals it can miss the last one (the time is None).
    """
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
    interval_ns = second_ns - first_ns
    missed_times = (now_ns - first_ns) // interval_ns + 1
    estimated_last_ns = first_ns + (missed_times - 1) * interval_ns
    candidate_ns = schedule.next_ns(estimated_last_ns - interval_ns)
    last_ns: int | None = None
    while candidate_ns <= now_ns:
        last_ns, candidate_ns = candidate_ns, schedule.next_ns(candidate_ns)
    return last_ns, missed_times


def _job_name(cron_job: Object, due_ns: int) -> str:
    """The name of the Job of a scheduled time: it ends in the time's minutes since the epoch."""
    return f"{cron_job['metadata']['name']}-{due_ns // NANOSECONDS // 60}"


def _job_manifest(cron_job: Object, due_ns: int, zone: ZoneInfo | None) -> Object:
    """The manifest of the Job of a scheduled time; its annotation shows the time in `zone`, by default UTC."""
    template = cron_job["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    scheduled_time = datetime.fromtimestamp(due_ns // NANOSECONDS, UTC).astimezone(zone or UTC).isoformat()
    annotations = {**(metadata.get("annotations") or {}), SCHEDULED_AT: scheduled_time.replace("+00:00", "Z")}
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


def _job_reference(job: Object) -> Object:
    """The ObjectReference of a stored Job for `status.active`."""
    fields = ("name", "namespace", "uid", "resourceVersion")
    return {"apiVersion": "batch/v1", "kind": "Job", **{field: job["metadata"][field] for field in fields}}


def _remove_active(status: Object, uid: str) -> None:
    """Remove the Job with a uid from `status.active`, in place; the field is absent without any Job."""
    remaining = [reference for reference in status.get("active") or [] if reference["uid"] != uid]
    if remaining:
        status["active"] = remaining
    else:
        status.pop("active", None)


def _start_order(job: Object) -> tuple[str, str]:
    """Sort key: Jobs by start time, those that have not started last; equal ones by name."""
    return (job.get("status") or {}).get("startTime") or _AFTER_ALL_TIMES, job["metadata"]["name"]
