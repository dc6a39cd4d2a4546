"""The Job controller: runs pods until enough of them succeeded or the Job failed, and writes the status.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync reads the Job and its pods once
(`job_view`), decides whether the Job ends (`job_verdict`), creates or deletes pods (`pod_templates`), and counts
finished pods (`pod_tracking`). Jobs of another manager (`spec.managedBy`) are left alone. Unlike upstream it needs no
expectations (counts of creations that a cache does not show yet): the registry returns own writes at once.

A stray pod has the finalizer of job tracking, but its Job is gone or finished; the controller removes the finalizer.

Source: documentation of Job; events, conditions and messages are upstream's.
Differs: changes of pods are not collected for a second.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import ranking
from podscaler.controlplane.controllers.batch import job_pods, job_verdict, pod_templates, pod_tracking
from podscaler.controlplane.controllers.batch.job_verdict import JobVerdict
from podscaler.controlplane.controllers.batch.job_view import JobView
from podscaler.controlplane.controllers.framework import (
    claims,
    conditions,
    ownership,
    pod_control,
    pods,
    selection,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.owner_index import OwnerIndex
from podscaler.controlplane.controllers.framework.pod_control import PODS, PodControl
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

JOBS = "jobs.batch"
MANAGER = "kubernetes.io/job-controller"
"""The `spec.managedBy` of this controller."""
_NAME_LABEL = "batch.kubernetes.io/job-name"
"""The label of a pod with the name of its Job."""


@dataclass(frozen=True, slots=True)
class PodFailures:
    """The failures of a Job's pods since the last success.

    Attributes:
        uid: of the Job: another Job of the same name starts with no failures.
        count: how many pods failed.
        last_failure_ns: when the last one did, in nanoseconds since the epoch.
    """

    uid: str
    count: int = 0
    last_failure_ns: int = 0


class Jobs(Reconciler[Key]):
    """Reconciles the Jobs of `registry`. Keys are namespace and name; `clock` is for deadlines and back-off."""

    name = "job-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = PodControl(registry, self._events)
        self._index = OwnerIndex(registry, owner_resource=JOBS, owner_kind="Job", dependent_resource=PODS)
        self._failures: dict[Key, PodFailures] = {}
        self._stray_names: defaultdict[Key, set[str]] = defaultdict(set)
        """The names of stray pods, by the key of their former Job."""

    def watches(self) -> Sequence[Watched[Key]]:
        """Jobs, and the pods that they own or may adopt."""
        return [Watched(JOBS, self._index_job), Watched(PODS, self._index_pod)]

    def prime(self) -> Iterable[Key]:
        """All Jobs, and those that no longer exist but whose pods have the finalizer."""
        keys = set(self._index.prime())
        for pod in self._registry.list(PODS):
            keys.update(self._note_stray(pod))
        return keys

    def _index_job(self, event: ObjectEvent) -> list[Key]:
        """Index a changed Job; returns its key. The tracked pods of a deleted one are noted as strays."""
        if event.type == "DELETED":
            owned = self._registry.owned_by(PODS, event.object["metadata"]["uid"])
            tracked = [pod["metadata"]["name"] for pod in owned if job_pods.is_tracked(pod)]
            if tracked:
                self._stray_names[selection.key_of(event.object)].update(tracked)
        return self._index.index_owner(event)

    def _index_pod(self, event: ObjectEvent) -> list[Key]:
        """Index a changed pod; returns the keys of the Jobs that own it, may adopt it, or have left it behind."""
        keys = self._index.index_dependent(event)
        return keys if event.type == "DELETED" else [*keys, *self._note_stray(event.object)]

    def _note_stray(self, pod: Object) -> list[Key]:
        """Note a tracked pod that its Job no longer controls as a stray; returns the key of the Job, otherwise none."""
        if not job_pods.is_tracked(pod):
            return []
        namespace, pod_name = selection.key_of(pod)
        owner = ownership.controller_of(pod)
        if owner is not None and owner["kind"] != "Job":
            return []
        job_name = owner["name"] if owner else selection.labels_of(pod).get(_NAME_LABEL, "")
        job = self._registry.find(JOBS, namespace, job_name) if job_name else None
        if job is not None and owner is not None and owner["uid"] == job["metadata"]["uid"]:
            return []
        self._stray_names[namespace, job_name].add(pod_name)
        return [(namespace, job_name)]

    async def sync(self, key: Key) -> float | None:
        """Create or delete pods, count the finished ones, and write the status.

        Returns the seconds until a pod may be created or a deadline passes, None if only a change needs a sync. Raises
        StatusError if a write failed.
        """
        job = self._registry.find(JOBS, *key)
        if job is not None and not job_verdict.is_finished(job) and _is_managed_here(job):
            return await self._sync_unfinished(key, job)
        self._failures.pop(key, None)
        if job is not None and _is_managed_here(job):
            tracked = filter(job_pods.is_tracked, ownership.controlled_by(self._registry, PODS, job))
            self._stray_names[key].update(pod["metadata"]["name"] for pod in tracked)
        await self._release_strays(key)
        return None

    async def _release_strays(self, key: Key) -> None:
        """Remove the finalizer from the stray pods of a Job."""
        namespace, _ = key
        for pod_name in list(self._stray_names.get(key, ())):
            await write_errors.remove_finalizer(self._registry, PODS, namespace, pod_name, job_pods.TRACKING_FINALIZER)
            self._stray_names[key].discard(pod_name)
        self._stray_names.pop(key, None)

    async def _sync_unfinished(self, key: Key, job: Object) -> float | None:
        """Decide, create or delete pods, and write the status; returns the seconds until the next sync, or None."""
        view = JobView(job, await self._claim_pods(key, job))
        await self._release_strays(key)
        status = _with_start_time(view, self._clock.now_ns())
        started_ns = instants.parse(status["startTime"]) if status.get("startTime") else None
        failures = self._updated_failures(key, view)
        verdict = job_verdict.find_verdict(view, started_ns, self._clock.now_ns())
        wait_s, error = None, None
        if verdict is not None:
            error = await self._pods.delete_all(job, view.active)
            verdict = None if error else verdict  # pods are left: the retry of the sync decides again
        else:
            if not pods.is_terminating(job):
                wait_s, error = await self._adjust_pods(view, failures)
            if self._is_complete(view):
                verdict = job_verdict.COMPLETED
            elif not pods.is_terminating(job):
                self._set_suspended(view, status)
        await self._write_status(view, verdict, status)
        self._failures[key] = failures  # not before: after a failed write the same pods are new in the next sync
        if error is not None:
            raise error
        if verdict is not None:
            return None  # the ends of its pods are events
        deadline_s = job_verdict.deadline_left_s(view, started_ns, self._clock.now_ns())
        return min((delay_s for delay_s in (wait_s, deadline_s) if delay_s is not None), default=None)

    async def _claim_pods(self, key: Key, job: Object) -> Sequence[Object]:
        """Adopt orphans, which get the finalizer, and release pods; returns the pods that the Job controls then."""
        namespace, _ = key
        selector = selection.object_selector(job)
        orphan_names = self._index.orphan_names(namespace, selector)
        owned = await claims.claim(self._registry, PODS, job, selector=selector, orphan_names=orphan_names)
        if not orphan_names:
            return owned
        for pod in owned:
            if pod["metadata"]["name"] in orphan_names and not job_pods.is_tracked(pod):
                await write_errors.ignoring_gone(
                    self._registry.mutate(PODS, *selection.key_of(pod), _add_finalizer), or_replaced=True
                )
        return ownership.controlled_by(self._registry, PODS, job)

    def _updated_failures(self, key: Key, view: JobView) -> PodFailures:
        """The failures noted in the last sync, with those of the newly finished pods; a success resets them."""
        noted_failures, uid = self._failures.get(key), view.job["metadata"]["uid"]
        if noted_failures is None or noted_failures.uid != uid:
            noted_failures = PodFailures(uid)
        failed_at_ns = list(map(job_pods.finished_at_ns, view.new_failed))
        succeeded_at_ns = list(map(job_pods.finished_at_ns, view.new_succeeded))
        if succeeded_at_ns:
            noted_failures = PodFailures(uid)
            failed_at_ns = [instant_ns for instant_ns in failed_at_ns if instant_ns > max(succeeded_at_ns)]
        if not failed_at_ns:
            return noted_failures
        return PodFailures(uid, noted_failures.count + len(failed_at_ns), max(failed_at_ns))

    def _is_complete(self, view: JobView) -> bool:
        """Whether no pod runs and enough have succeeded: `completions`, or one if that is not set."""
        active, _, _ = self._count_pods(view.job)
        completions = view.spec.get("completions")
        return active == 0 and view.succeeded_count >= (1 if completions is None else completions)

    def _set_suspended(self, view: JobView, status: Object) -> None:
        """Set the condition Suspended in `status`, in place, if `spec.suspend` changed, and record an Event.

        A suspended Job has no start time; a resumed one starts anew.
        """
        old_condition = conditions.find(status.get("conditions") or [], "Suspended")
        was_suspended = old_condition is not None and old_condition["status"] == "True"
        if view.is_suspended == was_suspended:
            return
        now = instants.text(self._clock.now_ns())
        verb = "Suspended" if view.is_suspended else "Resumed"
        message = f"Job {verb.lower()}"
        condition_status = "True" if view.is_suspended else "False"
        new_condition = _job_condition("Suspended", "Job" + verb, message, now, status=condition_status)
        status["conditions"] = _with_replaced(status.get("conditions") or [], new_condition)
        if view.is_suspended:
            status.pop("startTime", None)
        else:
            status["startTime"] = now
        self._events.event(view.job, "Normal", verb, message)

    async def _adjust_pods(self, view: JobView, failures: PodFailures) -> tuple[float | None, StatusError | None]:
        """Create or delete pods; returns the seconds until pods may be created (None if none waits), and an error."""
        surplus = _surplus_pods(view, self._clock.now_ns())
        if surplus:
            return None, await self._delete_uncounted(view.job, surplus[: pod_control.BURST_PODS])
        missing = min(_missing_pods(view), pod_control.BURST_PODS)
        if view.is_suspended or missing <= 0:
            return None, None
        now_ns = self._clock.now_ns()
        if view.backoff_limit_per_index is None:  # with it, each index has a back-off of its own
            backoff_s = job_pods.backoff_left_s(failures.count, failures.last_failure_ns, now_ns)
            if backoff_s > 0:
                return backoff_s, None
        if view.is_indexed:
            return await self._create_indexed(view, missing, now_ns)
        return None, await self._pods.create_all(view.job, [pod_templates.new_pod(view)] * missing)

    async def _create_indexed(
        self, view: JobView, max_count: int, now_ns: int
    ) -> tuple[float | None, StatusError | None]:
        """Create the pods of at most `max_count` indexes that are not in back-off; returns what `_adjust_pods` does."""
        wait_s_by_index = {index: _index_wait_s(view, index, now_ns) for index in view.pending_indexes(max_count)}
        due_indexes = [index for index, wait_s in wait_s_by_index.items() if wait_s <= 0]
        error = await self._pods.create_all(view.job, [pod_templates.new_pod(view, index) for index in due_indexes])
        next_due_s = min((wait_s for wait_s in wait_s_by_index.values() if wait_s > 0), default=None)
        return next_due_s, error

    async def _delete_uncounted(self, job: Object, surplus: Sequence[Object]) -> StatusError | None:
        """Delete pods, not counted as failed: they lose their finalizer first. Returns the first error, or None."""
        for pod in surplus:
            key = selection.key_of(pod)
            await write_errors.remove_finalizer(self._registry, PODS, *key, job_pods.TRACKING_FINALIZER)
        return await self._pods.delete_all(job, surplus)

    def _count_pods(self, job: Object) -> tuple[int, int, int]:
        """How many pods are active, ready and terminating, as stored now."""
        owned = ownership.controlled_by(self._registry, PODS, job)
        active = [pod for pod in owned if pods.is_active(pod)]
        terminating = sum(pods.is_terminating(pod) and not pods.is_finished(pod) for pod in owned)
        return len(active), sum(map(pods.is_ready, active)), terminating

    def _set_counts(self, job: Object, status: Object) -> None:
        """Set the numbers of active, ready and terminating pods in a status, in place."""
        active, status["ready"], status["terminating"] = self._count_pods(job)
        if active:
            status["active"] = active
        else:
            status.pop("active", None)

    async def _write_status(self, view: JobView, verdict: JobVerdict | None, status: Object) -> None:
        """Count the finished pods and write the status, before and after they lose the finalizer (`pod_tracking`).

        `status` is the computed one, and gets its counts here. The Job becomes Complete or Failed once no pod
        terminates or is uncounted.
        """
        job = view.job
        self._set_counts(job, status)
        tracking = pod_tracking.track(view, verdict, status)
        interim_status = tracking.status
        old_conditions = interim_status.get("conditions") or []
        if verdict is not None and conditions.find(old_conditions, verdict.interim_condition) is None:
            interim_condition = self._verdict_condition(verdict.interim_condition, verdict)
            interim_status["conditions"] = [*old_conditions, interim_condition]
        await write_errors.write_status(self._registry, JOBS, job, interim_status)
        await self._remove_finalizers(tracking.released)
        released_uids = {pod["metadata"]["uid"] for pod in tracking.released}
        tracked_uids = {pod["metadata"]["uid"] for pod in view.pods if job_pods.is_tracked(pod)} - released_uids
        final_status = pod_tracking.count_released(interim_status, tracked_uids)
        self._set_counts(job, final_status)
        are_pods_left = tracking.has_more or final_status["terminating"] > 0
        is_uncounted_left = any(final_status["uncountedTerminatedPods"].values())
        final_verdict = None if are_pods_left or is_uncounted_left else verdict
        if final_verdict is not None:
            self._set_final_condition(final_status, final_verdict)
        await write_errors.write_status(self._registry, JOBS, {**job, "status": interim_status}, final_status)
        if final_verdict is not None:
            self._record_end(job, final_status, final_verdict)

    async def _remove_finalizers(self, released: Sequence[Object]) -> None:
        """Remove the finalizer of pods. Raises StatusError if one cannot be written."""
        finalizer = job_pods.TRACKING_FINALIZER
        calls = [
            write_errors.remove_finalizer(self._registry, PODS, *selection.key_of(pod), finalizer) for pod in released
        ]
        error = write_errors.first_error(await asyncio.gather(*calls, return_exceptions=True))
        if error is not None:
            raise error

    def _verdict_condition(self, type_: str, verdict: JobVerdict) -> Object:
        """A condition of a type that is True since now, with the verdict's reason and message."""
        return _job_condition(type_, verdict.reason, verdict.message, instants.text(self._clock.now_ns()))

    def _set_final_condition(self, status: Object, verdict: JobVerdict) -> None:
        """Make a status Complete or Failed, in place; a Complete one gets the completion time."""
        final_condition = self._verdict_condition(verdict.final_condition, verdict)
        status["conditions"] = _with_replaced(status["conditions"], final_condition)
        if verdict.is_success:
            status["completionTime"] = final_condition["lastTransitionTime"]

    def _record_end(self, job: Object, status: Object, verdict: JobVerdict) -> None:
        """Report how a Job has ended, in Events."""
        if not verdict.is_success:
            self._events.event(job, "Warning", verdict.reason, verdict.message)
            return
        completions = job["spec"].get("completions")
        if completions is not None and status.get("succeeded", 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            self._events.event(job, "Warning", "TooManySucceededPods", message)
        self._events.event(job, "Normal", "Completed", "Job completed")


def _is_managed_here(job: Object) -> bool:
    """Whether `spec.managedBy` leaves the Job to this controller."""
    return job["spec"].get("managedBy") in (None, MANAGER)


def _with_start_time(view: JobView, now_ns: int) -> Object:
    """A copy of the status, with the start time of a Job that is not suspended."""
    status = {**view.status}
    if not status.get("startTime") and not view.is_suspended:
        status["startTime"] = instants.text(now_ns)
    return status


def _add_finalizer(pod: Object) -> None:
    """Add the finalizer of job tracking to a pod, in place."""
    pod["metadata"]["finalizers"] = [*(pod["metadata"].get("finalizers") or []), job_pods.TRACKING_FINALIZER]


def _job_condition(type_: str, reason: str, message: str, now: str, *, status: str = "True") -> Object:
    """A JobCondition that changed at `now` (RFC 3339)."""
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def _with_replaced(old_conditions: Sequence[Object], new_condition: Object) -> list[Object]:
    """The conditions with `new_condition` in place of the one of its type, as upstream for Jobs, or else at the end."""
    if conditions.find(old_conditions, new_condition["type"]) is None:
        return [*old_conditions, new_condition]
    return [new_condition if condition["type"] == new_condition["type"] else condition for condition in old_conditions]


def _index_wait_s(view: JobView, index: int, now_ns: int) -> float:
    """The seconds until a pod of an index may be created again; 0 if it may."""
    failed_pod = view.failed_pods_to_replace.get(index)
    if failed_pod is None:
        return 0.0
    failures = job_pods.all_index_failures(failed_pod) + 1
    return job_pods.backoff_left_s(failures, job_pods.finished_at_ns(failed_pod), now_ns)


def _missing_pods(view: JobView) -> int:
    """How many pods have to be created; negative or 0 for none. A terminating pod may have to finish first."""
    missing = view.desired_active_count - len(view.active)
    if job_pods.replaces_only_failed(view.job):
        missing -= sum(not pods.is_finished(pod) for pod in view.terminating)
    return missing


def _surplus_pods(view: JobView, now_ns: int) -> list[Object]:
    """The active pods to delete: all of a suspended Job, those with a wrong or repeated index, and too many."""
    if view.is_suspended:
        return list(view.active)
    misplaced = _misplaced_pods(view, now_ns) if view.is_indexed else []
    misplaced_names = {pod["metadata"]["name"] for pod in misplaced}
    remaining = [pod for pod in view.active if pod["metadata"]["name"] not in misplaced_names]
    surplus_count = len(remaining) - view.desired_active_count
    if surplus_count <= 0:
        return misplaced
    return misplaced + ranking.select_for_deletion(remaining, surplus_count, now_ns=now_ns)


def _misplaced_pods(view: JobView, now_ns: int) -> list[Object]:
    """The active pods that no index needs: those without a valid one, and all but one of an index."""
    pods_by_index: defaultdict[int | None, list[Object]] = defaultdict(list)
    for pod in view.active:
        index = job_pods.completion_index(pod) if view.is_countable(pod) else None
        pods_by_index[index].append(pod)
    misplaced = pods_by_index.pop(None, [])
    for same_index in pods_by_index.values():
        if len(same_index) > 1:
            misplaced += ranking.select_for_deletion(same_index, len(same_index) - 1, now_ns=now_ns)
    return misplaced
