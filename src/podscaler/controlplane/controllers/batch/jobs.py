"""The Job controller: runs pods until enough of them succeeded or the Job failed, and writes the status.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync reads the Job and its pods once
(`job_view`), decides whether the Job ends (`job_verdict`), creates or deletes pods, and counts
finished pods (`pod_tracking`). Jobs of another manager (`spec.managedBy`) are left alone. As with ReplicaSets, no
expectations are needed: own writes are read back at once.

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
_NAME_LABEL = "batch.kubernetes.io/job-name"


@dataclass(frozen=True, slots=True)
class PodFailures:
    """The failures of a Job's pods since the last success.

    Attributes:
        uid: of the Job.
        failures: how many pods failed.
        last_failure_ns: when the last one did, in nanoseconds since the epoch.
    """

    uid: str
    failures: int = 0
    last_failure_ns: int = 0


class Jobs(Reconciler[Key]):
    """Reconciles Jobs. Keys are namespace and name.

    Args:
        registry: the objects.
        clock: for deadlines and back-off.
    """

    name = "job-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = PodControl(registry, self._events)
        self._index = OwnerIndex(registry, owners=JOBS, kind="Job", dependents=PODS)
        self._backoffs: dict[Key, PodFailures] = {}
        self._strays: defaultdict[Key, set[str]] = defaultdict(set)

    def watches(self) -> Sequence[Watched[Key]]:
        """Jobs, and the pods that they own or may adopt."""
        return [Watched(JOBS, self._job_keys), Watched(PODS, self._pod_keys)]

    def prime(self) -> Iterable[Key]:
        """All Jobs, and those that no longer exist but whose pods have the finalizer."""
        keys = set(self._index.prime())
        for pod in self._registry.list(PODS):
            keys.update(self._stray_keys(pod))
        return keys

    def _job_keys(self, event: ObjectEvent) -> list[Key]:
        if event.type == "DELETED":
            owned = self._registry.owned_by(PODS, event.object["metadata"]["uid"])
            tracked = [pod["metadata"]["name"] for pod in owned if job_pods.is_tracked(pod)]
            if tracked:
                self._strays[selection.key_of(event.object)].update(tracked)
        return self._index.owner_keys(event)

    def _pod_keys(self, event: ObjectEvent) -> list[Key]:
        keys = self._index.dependent_keys(event)
        return keys if event.type == "DELETED" else [*keys, *self._stray_keys(event.object)]

    def _stray_keys(self, pod: Object) -> list[Key]:
        """The key of the Job that a tracked pod belonged to, if it no longer does; the pod is remembered."""
        if not job_pods.is_tracked(pod):
            return []
        namespace, name = selection.key_of(pod)
        owner = ownership.controller_of(pod)
        if owner is not None and owner["kind"] != "Job":
            return []
        job_name = owner["name"] if owner else selection.labels_of(pod).get(_NAME_LABEL, "")
        job = self._registry.find(JOBS, namespace, job_name) if job_name else None
        if job is not None and owner is not None and owner["uid"] == job["metadata"]["uid"]:
            return []
        self._strays[namespace, job_name].add(name)
        return [(namespace, job_name)]

    async def sync(self, key: Key) -> float | None:
        """Create or delete pods, count the finished ones, and write the status."""
        job = self._registry.find(JOBS, *key)
        if job is not None and not job_verdict.is_finished(job) and _is_own(job):
            return await self._sync(key, job)
        self._backoffs.pop(key, None)
        if job is not None and _is_own(job):
            tracked = filter(job_pods.is_tracked, ownership.controlled_by(self._registry, PODS, job))
            self._strays[key].update(pod["metadata"]["name"] for pod in tracked)
        await self._release_strays(key)
        return None

    async def _release_strays(self, key: Key) -> None:
        """Remove the finalizer from pods whose Job is gone or finished."""
        for name in list(self._strays.get(key, ())):
            await write_errors.remove_finalizer(self._registry, PODS, key[0], name, job_pods.TRACKING_FINALIZER)
            self._strays[key].discard(name)
        self._strays.pop(key, None)

    async def _sync(self, key: Key, job: Object) -> float | None:
        """Decide, create or delete pods, and write the status; returns the seconds until the next sync."""
        view = JobView(job, await self._owned(key, job))
        await self._release_strays(key)
        status = _started(view, self._clock.now_ns())
        started_ns = instants.parse(status["startTime"]) if status.get("startTime") else None
        backoff = self._noted_backoff(key, view)
        verdict = job_verdict.find_verdict(view, started_ns, self._clock.now_ns())
        wait_s, error = None, None
        if verdict is not None:
            error = await self._pods.delete_all(job, view.active)
            verdict = None if error else verdict
        else:
            if not pods.is_terminating(job):
                wait_s, error = await self._manage(view, backoff)
            if self._is_complete(view):
                verdict = job_verdict.COMPLETED
            elif not pods.is_terminating(job):
                self._set_suspended(view, status)
        await self._write(view, verdict, status)
        self._backoffs[key] = backoff
        if error is not None:
            raise error
        left_s = job_verdict.deadline_left_s(view, started_ns, self._clock.now_ns())
        return min((delay_s for delay_s in (wait_s, left_s) if delay_s is not None), default=None)

    async def _owned(self, key: Key, job: Object) -> Sequence[Object]:
        """The pods of a Job, after adopting (with the finalizer) and releasing."""
        selector = selection.object_selector(job)
        orphans = self._index.orphans(key[0], selector)
        owned = await claims.claim(self._registry, PODS, job, selector=selector, orphans=orphans)
        for pod in owned if orphans else ():
            if pod["metadata"]["name"] in orphans and not job_pods.is_tracked(pod):
                await write_errors.ignoring_gone(
                    self._registry.mutate(PODS, *selection.key_of(pod), _add_finalizer), another=True
                )
        return ownership.controlled_by(self._registry, PODS, job) if orphans else owned

    def _noted_backoff(self, key: Key, view: JobView) -> PodFailures:
        """The back-off with the newly finished pods."""
        old, uid = self._backoffs.get(key), view.job["metadata"]["uid"]
        if old is None or old.uid != uid:
            old = PodFailures(uid)
        ends = sorted(map(job_pods.finished_at_ns, view.new_failed))
        succeeded = list(map(job_pods.finished_at_ns, view.new_succeeded))
        if succeeded:
            old, ends = PodFailures(uid), [end for end in ends if end > max(succeeded)]
        return PodFailures(uid, old.failures + len(ends), ends[-1]) if ends else old

    def _is_complete(self, view: JobView) -> bool:
        active = self._counts(view.job)[0]
        completions = view.spec.get("completions")
        return active == 0 and view.succeeded >= (1 if completions is None else completions)

    def _set_suspended(self, view: JobView, status: Object) -> None:
        """Set the condition Suspended, and the start time anew for a Job that is resumed."""
        old = conditions.find(status.get("conditions") or [], "Suspended")
        is_true = old is not None and old["status"] == "True"
        if view.is_suspended == is_true:
            return
        now = instants.text(self._clock.now_ns())
        verb = "Suspended" if view.is_suspended else "Resumed"
        message = f"Job {verb.lower()}"
        new = _condition("Suspended", "Job" + verb, message, now, status="True" if view.is_suspended else "False")
        status["conditions"] = _replaced(status.get("conditions") or [], new)
        if view.is_suspended:
            status.pop("startTime", None)
        else:
            status["startTime"] = now
        self._events.event(view.job, "Normal", verb, message)

    async def _manage(self, view: JobView, backoff: PodFailures) -> tuple[float | None, StatusError | None]:
        """Create or delete pods; returns the seconds until pods may be created (None if none waits), and an error."""
        surplus = _surplus(view, self._clock.now_ns())
        if surplus:
            return None, await self._delete(view.job, surplus[: pod_control.BURST_PODS])
        if view.is_suspended:
            return None, None
        terminating = list(filter(pods.is_terminating, view.pods))
        missing = view.wanted_active - len(view.active)
        if job_pods.replaces_only_failed(view.job):
            missing -= sum(not pods.is_finished(pod) for pod in terminating)
        if missing <= 0:
            return None, None
        now_ns = self._clock.now_ns()
        if view.limit_per_index is None:
            left_s = job_pods.backoff_left_s(backoff.failures, backoff.last_failure_ns, now_ns)
            if left_s > 0:
                return left_s, None
        missing = min(missing, pod_control.BURST_PODS)
        if not view.is_indexed:
            return None, await self._pods.create_all(view.job, [pod_templates.pod_of(view)] * missing)
        waits = {index: _index_wait_s(view, index, now_ns) for index in view.pending_indexes(missing, terminating)}
        ready = [index for index, wait_s in waits.items() if wait_s <= 0]
        error = await self._pods.create_all(view.job, [pod_templates.pod_of(view, index) for index in ready])
        return min((wait_s for wait_s in waits.values() if wait_s > 0), default=None), error

    async def _delete(self, job: Object, surplus: Sequence[Object]) -> StatusError | None:
        """Delete pods that shall not be counted as failed."""
        for pod in surplus:
            key = selection.key_of(pod)
            await write_errors.remove_finalizer(self._registry, PODS, *key, job_pods.TRACKING_FINALIZER)
        return await self._pods.delete_all(job, surplus)

    def _counts(self, job: Object) -> tuple[int, int, int]:
        """The active, ready and terminating pods of now."""
        owned = ownership.controlled_by(self._registry, PODS, job)
        active = [pod for pod in owned if pods.is_active(pod)]
        terminating = sum(pods.is_terminating(pod) and not pods.is_finished(pod) for pod in owned)
        return len(active), sum(map(pods.is_ready, active)), terminating

    def _set_counts(self, job: Object, status: Object) -> None:
        active, status["ready"], status["terminating"] = self._counts(job)
        if active:
            status["active"] = active
        else:
            status.pop("active", None)

    async def _write(self, view: JobView, verdict: JobVerdict | None, status: Object) -> None:
        """Count the finished pods and write the status, before and after they lose the finalizer."""
        job = view.job
        self._set_counts(job, status)
        tracking = pod_tracking.track(view, verdict, status)
        status = tracking.status
        if verdict is not None and conditions.find(status.get("conditions") or [], verdict.interim) is None:
            status["conditions"] = [*(status.get("conditions") or []), self._new(verdict.interim, verdict)]
        await write_errors.write_status(self._registry, JOBS, job, status)
        await self._untrack(tracking.released)
        released = {pod["metadata"]["uid"] for pod in tracking.released}
        tracked = {pod["metadata"]["uid"] for pod in view.pods if job_pods.is_tracked(pod)} - released
        final = pod_tracking.take_over(status, tracked)
        self._set_counts(job, final)
        is_over = verdict is not None and not tracking.is_cut and not final["terminating"]
        if verdict is not None and is_over and not any(final["uncountedTerminatedPods"].values()):
            self._finish(final, verdict)
        else:
            verdict = None
        await write_errors.write_status(self._registry, JOBS, {**job, "status": status}, final)
        if verdict is not None:
            self._record_end(job, final, verdict)

    async def _untrack(self, released: Sequence[Object]) -> None:
        """Remove the finalizer of pods. Raises StatusError if one keeps it."""
        finalizer = job_pods.TRACKING_FINALIZER
        calls = [
            write_errors.remove_finalizer(self._registry, PODS, *selection.key_of(pod), finalizer) for pod in released
        ]
        error = write_errors.first_error(await asyncio.gather(*calls, return_exceptions=True))
        if error is not None:
            raise error

    def _new(self, type_: str, verdict: JobVerdict) -> Object:
        return _condition(type_, verdict.reason, verdict.message, instants.text(self._clock.now_ns()))

    def _finish(self, status: Object, verdict: JobVerdict) -> None:
        end = self._new(verdict.final, verdict)
        status["conditions"] = _replaced(status["conditions"], end)
        if verdict.is_success:
            status["completionTime"] = end["lastTransitionTime"]

    def _record_end(self, job: Object, status: Object, verdict: JobVerdict) -> None:
        """Report how a Job has ended."""
        if not verdict.is_success:
            self._events.event(job, "Warning", verdict.reason, verdict.message)
            return
        completions = job["spec"].get("completions")
        if completions is not None and status.get("succeeded", 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            self._events.event(job, "Warning", "TooManySucceededPods", message)
        self._events.event(job, "Normal", "Completed", "Job completed")


def _is_own(job: Object) -> bool:
    return job["spec"].get("managedBy") in (None, MANAGER)


def _started(view: JobView, now_ns: int) -> Object:
    """A copy of the status, with the start time of a Job that is not suspended."""
    status = {**view.status}
    if not status.get("startTime") and not view.is_suspended:
        status["startTime"] = instants.text(now_ns)
    return status


def _add_finalizer(pod: Object) -> None:
    pod["metadata"]["finalizers"] = [*(pod["metadata"].get("finalizers") or []), job_pods.TRACKING_FINALIZER]


def _condition(type_: str, reason: str, message: str, now: str, *, status: str = "True") -> Object:
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def _replaced(some: Sequence[Object], new: Object) -> list[Object]:
    """The conditions with `new` in the place of the one of its type, otherwise at the end."""
    if conditions.find(some, new["type"]) is None:
        return [*some, new]
    return [new if condition["type"] == new["type"] else condition for condition in some]


def _index_wait_s(view: JobView, index: int, now_ns: int) -> float:
    """The seconds until a pod of an index may be created again; 0 if it may."""
    last = view.replaced_later.get(index)
    if last is None:
        return 0.0
    return job_pods.backoff_left_s(job_pods.all_index_failures(last) + 1, job_pods.finished_at_ns(last), now_ns)


def _surplus(view: JobView, now_ns: int) -> list[Object]:
    """The active pods to delete: all of a suspended Job, those with a wrong or repeated index, and too many."""
    if view.is_suspended:
        return list(view.active)
    extra = _misplaced(view, now_ns) if view.is_indexed else []
    names = {pod["metadata"]["name"] for pod in extra}
    left = [pod for pod in view.active if pod["metadata"]["name"] not in names]
    count = len(left) - view.wanted_active
    return extra + (ranking.first_to_go(left, count, now_ns=now_ns) if count > 0 else [])


def _misplaced(view: JobView, now_ns: int) -> list[Object]:
    """The active pods that no index needs: those without a valid one, and all but one of an index."""
    by_index: defaultdict[int | None, list[Object]] = defaultdict(list)
    for pod in view.active:
        by_index[job_pods.completion_index(pod) if view.is_valid(pod) else None].append(pod)
    extra = by_index.pop(None, [])
    for same in by_index.values():
        extra += ranking.first_to_go(same, len(same) - 1, now_ns=now_ns) if len(same) > 1 else []
    return extra
