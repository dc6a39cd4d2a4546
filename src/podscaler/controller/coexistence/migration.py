"""Migrates a HorizontalPodAutoscaler to a PodAutoscaler, or back, so that never two controllers scale the target.

`podscaler migrate` calls `migrate` for each autoscaler. Each step first reads what was done before, so that a migration
that was interrupted continues where it stopped:

1. A PodAutoscaler that is to be replaced is annotated; the migration waits for the event by which its controller
   reports that it has stopped.
2. The counterpart is created, with spec, labels, annotations, owners, the stored history, and the status.
3. A PodAutoscaler that was created waits for its HorizontalPodAutoscaler to be deleted
   (`podscaler.controller.informers.handover`). The migration waits for its controller's event: without one nothing is
   deleted.
4. The first object is deleted, if it is unchanged since step 2; else step 2 is repeated.
5. A HorizontalPodAutoscaler that was created loses the annotations of steps 2 and 3, once a controller of ours has had
   the time to read the history.

So at every instant one of the two is managed, or (between 1 and 2, for as long as two requests take) none. A further
step: in `migrate`, with a check of whether an interrupted migration has done it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.controller.coexistence import counterpart
from podscaler.controller.history import history_maps, history_record
from podscaler.controller.history.history_record import HistoryRecord
from podscaler.controller.informers import handover
from podscaler.controller.options.autoscaler_kinds import HPA, POD_AUTOSCALER, AutoscalerKind
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, is_conflict, is_not_found, is_not_served

Object = dict[str, Any]

ATTEMPTS = 10
"""How often the counterpart is written again because the source was edited meanwhile."""
POLL_PERIOD_S = 0.25
STOP_TIMEOUT_S = 5.0
"""How long to wait for the event that a PodAutoscaler is no longer managed: it may have no controller."""
READ_WITHIN_S = 5.0
"""A controller reads a new autoscaler's annotations at its first sync, which the watch starts at once."""
WRITER = "migrate"
"""The writer in a carried-over record; no heartbeat has that name."""


@dataclass(frozen=True, slots=True)
class MigrationTerms:
    """The parameters of a migration.

    Attributes:
        source_kind, target_kind: the kinds of the present and of the new object.
        is_dry_run: whether to report only what would be done.
        ready_timeout_s: how long to wait for a controller's event; 0 if it is not needed.
        history_namespace: the namespace of the stored histories.
    """

    source_kind: AutoscalerKind
    target_kind: AutoscalerKind
    is_dry_run: bool = False
    ready_timeout_s: float = 30.0
    history_namespace: str = history_maps.NAMESPACE


class Migrator:
    """Executes the steps of `podscaler migrate` for autoscalers, one after the other.

    Args:
        clock: for waits and for the age of histories.
        terms: the parameters.
        report: called with a line for each step.
    """

    def __init__(self, client: Client, clock: Clock, terms: MigrationTerms, report: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._terms = terms
        self._report_line = report
        self._migrated_names: list[tuple[str, str]] = []
        self._migrated_at_s = 0.0

    async def list_names(self, namespace: str) -> list[tuple[str, str]]:
        """Namespace and name of all objects of the source kind (`namespace` empty: of all). Raises StatusError."""
        kind = self._terms.source_kind
        body = await self._client.get(kind.path(namespace), subject=kind.resource)
        items = msgspec.json.decode(body).get("items") or []
        return sorted((meta["namespace"], meta["name"]) for meta in (item["metadata"] for item in items))

    async def migrate(self, namespace: str, name: str) -> None:
        """Migrate one autoscaler. Raises UsageError, StatusError, and ValueError for an invalid failure policy."""
        terms = self._terms
        source = await self._find(terms.source_kind, namespace, name)
        created = await self._find(terms.target_kind, namespace, name)
        self._check_origin(source, created, namespace, name)
        if source is None:  # an earlier migration was interrupted after step 4
            self._report(namespace, name, f"is a {terms.target_kind.kind} already")
            self._note_done(namespace, name)
            return
        if terms.is_dry_run:
            self._report(namespace, name, f"would become a {terms.target_kind.kind}")
            return
        if terms.source_kind is POD_AUTOSCALER and created is None:  # else step 1 is done, or not needed
            source = await self._stop_managing(source)
        for _ in range(ATTEMPTS):  # again while the source is edited before its deletion
            created = await self._carry_over(source, created)
            if terms.target_kind is POD_AUTOSCALER:
                await self._wait_ready(created)
            is_gone = await self._delete(source)
            source = None if is_gone else await self._find(terms.source_kind, namespace, name)
            if source is None:
                self._report(namespace, name, f"is a {terms.target_kind.kind} now")
                self._note_done(namespace, name)
                return
        raise UsageError(f"{terms.source_kind.word} {namespace}/{name} is edited all the time; nothing was deleted")

    async def remove_annotations(self) -> None:
        """Remove the annotations from the HorizontalPodAutoscalers that were created; call it at the end.

        Waits until a controller of ours must have read them. Raises StatusError.
        """
        if self._terms.target_kind is not HPA or not self._migrated_names or self._terms.is_dry_run:
            return
        await self._clock.sleep(self._migrated_at_s + READ_WITHIN_S - self._clock.monotonic_s())
        removal = msgspec.json.encode({"metadata": {"annotations": dict.fromkeys(counterpart.MIGRATION_ANNOTATIONS)}})
        for namespace, name in self._migrated_names:
            try:
                await self._client.patch(HPA.path(namespace, name), removal, subject=f"{HPA.resource} {name}")
            except StatusError as error:
                if not is_not_found(error):
                    raise
        self._migrated_names.clear()

    def _note_done(self, namespace: str, name: str) -> None:
        self._migrated_names.append((namespace, name))
        self._migrated_at_s = self._clock.monotonic_s()

    def _check_origin(self, source: Object | None, created: Object | None, namespace: str, name: str) -> None:
        """Raise UsageError unless there is a source to migrate, or a counterpart that was made from it."""
        terms = self._terms
        if source is None:
            if created is None or not counterpart.is_of(created, terms.source_kind, name):
                raise UsageError(f"there is no {terms.source_kind.word} {namespace}/{name}")
            return
        if created is not None and not counterpart.is_of(created, terms.source_kind, name, source["metadata"]["uid"]):
            raise UsageError(
                f"there is a {terms.target_kind.word} {namespace}/{name} that was not made from the "
                f"{terms.source_kind.word}"
            )

    async def _stop_managing(self, source: Object) -> Object:
        """Annotate a PodAutoscaler, and wait until its controller leaves it alone; returns the latest object."""
        meta = source["metadata"]
        annotation = {
            "metadata": {"uid": meta["uid"], "annotations": {handover.MIGRATING_TO: self._terms.target_kind.flag}}
        }
        path, subject = self._path(self._terms.source_kind, meta), f"{self._terms.source_kind.resource} {meta['name']}"
        annotated = msgspec.json.decode(
            await self._client.patch(path, msgspec.json.encode(annotation), subject=subject)
        )
        if not await self._wait_for_event(annotated, STOP_TIMEOUT_S):
            self._report(meta["namespace"], meta["name"], "seems to be managed by no controller; going on")
        return await self._find(self._terms.source_kind, meta["namespace"], meta["name"]) or annotated

    async def _carry_over(self, source: Object, created: Object | None) -> Object:
        """Create the counterpart, or update it; returns the latest object."""
        terms, meta = self._terms, source["metadata"]
        desired_object = counterpart.of(
            source, terms.source_kind, terms.target_kind, history=await self._load_history_json(source)
        )
        subject = f"{terms.target_kind.resource} {meta['name']}"
        if created is None:
            collection, body = terms.target_kind.path(meta["namespace"]), msgspec.json.encode(desired_object)
            created = msgspec.json.decode(await self._client.post(collection, body, subject=subject))
        elif counterpart.differs(created, desired_object):
            change = {
                "metadata": _metadata_patch(created, desired_object),
                "spec": _replacing_patch(created["spec"], desired_object["spec"]),
            }
            body, path = msgspec.json.encode(change), self._path(terms.target_kind, meta)
            created = msgspec.json.decode(await self._client.patch(path, body, subject=subject))
        return await self._write_status(created, source)

    async def _write_status(self, created: Object, source: Object) -> Object:
        """Write the status of the counterpart, unless its controller has written one; returns the latest object."""
        body = counterpart.with_status(created, source)
        if body is None or (self._terms.target_kind is HPA and (created.get("status") or {}).get("conditions")):
            return created
        meta = created["metadata"]
        path = f"{self._path(self._terms.target_kind, meta)}/status"
        try:
            response = await self._client.put(
                path, msgspec.json.encode(body), subject=f"{self._terms.target_kind.resource} {meta['name']}"
            )
        except StatusError as error:
            if is_conflict(error):
                return created  # its controller has written a status meanwhile
            raise
        return _decoded(response)

    async def _wait_ready(self, created: Object) -> None:
        """Return once a controller reports that the counterpart waits for the source. Raises UsageError."""
        timeout_s = self._terms.ready_timeout_s
        if timeout_s and not await self._wait_for_event(created, timeout_s):
            meta = created["metadata"]
            raise UsageError(
                f"no controller manages {self._terms.target_kind.word} {meta['namespace']}/{meta['name']}, so the "
                f"{self._terms.source_kind.word} stays: start one with --autoscaler-kinds=podautoscaler and repeat "
                f"this, or delete the {self._terms.target_kind.word}"
            )

    async def _wait_for_event(self, waiting: Object, timeout_s: float) -> bool:
        """Whether the event that a PodAutoscaler waits for a handover appears within the timeout."""
        meta = waiting["metadata"]
        ends_at_s = self._clock.monotonic_s() + timeout_s
        while True:
            if await self._has_event(meta):
                return True
            if self._clock.monotonic_s() >= ends_at_s:
                return False
            await self._clock.sleep(POLL_PERIOD_S)

    async def _has_event(self, meta: Object) -> bool:
        """Whether there is an event that the PodAutoscaler with this metadata waits for a handover."""
        selector = f"involvedObject.uid={meta['uid']},reason={handover.WAITING}"
        path = "/api/v1" + urls.path("namespaces", meta["namespace"], "events")
        response = _decoded(await self._client.get(path, subject="events", query=[("fieldSelector", selector)]))
        message = handover.waiting_message(meta.get("annotations") or {})
        return any(message in event.get("message", "") for event in response.get("items") or [])

    async def _delete(self, source: Object) -> bool:
        """Delete the source if it is unchanged, and wait for its end; returns whether it no longer exists."""
        terms, meta = self._terms, source["metadata"]
        preconditions = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions})
        subject = f"{terms.source_kind.resource} {meta['name']}"
        try:
            await self._client.delete(self._path(terms.source_kind, meta), subject=subject, body=body)
        except StatusError as error:
            if is_not_found(error):
                return True
            if error.code == 409:
                return False
            raise
        await self._wait_gone(meta)
        return True

    async def _wait_gone(self, meta: Object) -> None:
        """Return once the deleted object no longer exists. Raises UsageError if a finalizer blocks the deletion."""
        while True:
            latest = await self._find(self._terms.source_kind, meta["namespace"], meta["name"])
            if latest is None or latest["metadata"]["uid"] != meta["uid"]:
                return
            if finalizers := latest["metadata"].get("finalizers"):
                raise UsageError(
                    f"{self._terms.source_kind.word} {meta['namespace']}/{meta['name']} is being deleted, and waits "
                    f"for its finalizers: {', '.join(finalizers)}"
                )
            await self._clock.sleep(POLL_PERIOD_S)

    async def _load_history_json(self, source: Object) -> str:
        """The stored history of the source, as the text of a record; empty if there is none."""
        meta, now_ns = source["metadata"], self._clock.now_ns()
        key = self._terms.source_kind.key(meta["namespace"], meta["name"])
        try:
            stored_history = await history_maps.load_history(
                self._client, key, now_ns=now_ns, uid=meta["uid"], namespace=self._terms.history_namespace
            )
        except StatusError as error:
            self._report(*key, f"its history is not carried over: {error}")
            return ""
        if stored_history is None:
            return str((meta.get("annotations") or {}).get(handover.HISTORY, ""))
        return history_record.encode(HistoryRecord(meta["uid"], WRITER, now_ns, stored_history))

    async def _find(self, kind: AutoscalerKind, namespace: str, name: str) -> Object | None:
        """The object; None if there is none. Raises UsageError if the kind is not served, and StatusError."""
        try:
            return _decoded(await self._client.get(kind.path(namespace, name), subject=f"{kind.resource} {name}"))
        except StatusError as error:
            if is_not_found(error) and not is_not_served(error):
                return None
            if is_not_served(error):
                advice = "podscaler crd | kubectl apply -f -"
                raise UsageError(f"the API server does not serve {kind.resource}: {advice}") from None
            raise

    def _path(self, kind: AutoscalerKind, meta: Object) -> str:
        return kind.path(meta["namespace"], meta["name"])

    def _report(self, namespace: str, name: str, outcome: str) -> None:
        self._report_line(f"{self._terms.source_kind.word} {namespace}/{name} {outcome}")


def _decoded(response: bytes) -> Object:
    decoded: Object = msgspec.json.decode(response)
    return decoded


def _metadata_patch(created: Object, desired_object: Object) -> Object:
    """A JSON merge patch that gives the created object the desired labels, annotations and owners."""
    metadata, desired_metadata = created["metadata"], desired_object["metadata"]
    labels = dict.fromkeys(metadata.get("labels") or {}) | (desired_metadata.get("labels") or {})
    return {
        "resourceVersion": metadata["resourceVersion"],
        "labels": labels,
        "annotations": desired_metadata["annotations"],
        "ownerReferences": desired_metadata.get("ownerReferences"),
    }


def _replacing_patch(existing: Object, desired: Object) -> Object:
    """A JSON merge patch that makes `existing` equal to `desired`; of {a, b} and {b: 2} it is {a: null, b: 2}."""
    removed_fields: Object = {name: None for name in existing if name not in desired}
    written_fields: Object = {}
    for name, desired_field in desired.items():
        existing_field = existing.get(name)
        if isinstance(desired_field, dict) and isinstance(existing_field, dict):
            written_fields[name] = _replacing_patch(existing_field, desired_field)
        else:
            written_fields[name] = desired_field
    return removed_fields | written_fields
