"""Provides the autoscalers of a cluster to views: rows, details, explanations and what-if, from a running controller.

`podscaler dashboard` attaches a dry run (`new_dry_run`), `podscaler up` its own controller; `podscaler.cli.top` and
`podscaler.dashboard` read. Rules:

1. What the list shows comes from the caches and the history alone: no request.
2. A detail reads the cluster with the client of the viewer, whose permissions decide.
3. Where another controller decides, a row has that controller's status, and the history has our decisions about the
   same facts.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.controller import assembly
from podscaler.controller.coexistence import standby
from podscaler.controller.controller import Controller
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options import installation
from podscaler.controller.options.autoscaler_kinds import KINDS, object_key
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.recording import SyncRecord
from podscaler.core.model.observation import Scale
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key
from podscaler.observe import autoscaler_rows, pod_views, sync_points, what_if
from podscaler.observe.decision_history import DecisionHistory
from podscaler.observe.kept_syncs import KeptSync
from podscaler.observe.object_reader import ObjectReader, ReadObjects
from podscaler.observe.sync_columns import SyncColumns
from podscaler.observe.view_changes import ChangeLog
from podscaler.observe.views import (
    AutoscalerRow,
    DecisionTimeline,
    DecisionView,
    Detail,
    Mark,
    MarkKind,
    TimelineChange,
    WhatIfView,
)

DEFAULT_RANGE_MS = 3_600_000
MARKS_MAX = 2000
ROW_REFRESH_MS = 300_000
"""After what time a row is sent again although only its sparkline changed."""
COMPUTATIONS_MAX = 2
"""How many explanations and what-ifs are computed at the same time."""


class UnknownAutoscaler(StatusError):
    """The cluster has no autoscaler of that name, or has it no more."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(f"there is no autoscaler {name} in the namespace {namespace}", code=404, reason="NotFound")


class UnknownDecision(StatusError):
    """No sync of that mark is kept: the limits of the history dropped it, or it never was."""

    def __init__(self, mark_id: str) -> None:
        super().__init__(f"no decision {mark_id} is kept (any more)", code=404, reason="NotFound")


def dry_run_settings(settings: ControllerSettings) -> ControllerSettings:
    """The settings for a controller that decides, writes nothing, and notes who writes statuses."""
    return replace(
        settings,
        dry_run=True,
        other_controller=standby.WARN,
        history_namespace=None,
        field_manager=f"{installation.MANAGER}-dashboard",
    )


def new_dry_run(client: Client, settings: ControllerSettings, clock: Clock, history: DecisionHistory) -> Controller:
    """A controller that decides about the autoscalers of a cluster into `history`, and writes nothing."""
    return assembly.new_controller(client, settings, clock, recording=history)


class _CachedRow(NamedTuple):
    """A row, and what it was made of; it is made again for another version or object.

    Attributes:
        version: how many changes of the autoscaler were noted when the row was made.
        made_at_ms: when it was made, by the clock of the history.
    """

    version: int
    autoscaler: Autoscaler
    row: AutoscalerRow
    made_at_ms: int


class LiveCluster:
    """The autoscalers of one cluster; `added`, `updated` and `deleted` are called by the cache of autoscalers.

    Before `attach` there are no autoscalers, and `unready` says why.

    Args:
        history: has the decisions of the controller.
        client: reads details where a viewer has no client of its own.
        clock: for discovery.
        name: of the cluster, for people.
        own_manager: the field manager of the attached controller; empty if it writes no statuses.

    Attributes:
        changes: the log that each viewer reads from its own position.
    """

    def __init__(
        self, history: DecisionHistory, client: Client, clock: Clock, *, name: str, own_manager: str = ""
    ) -> None:
        self.history = history
        self.client = client
        self.name = name
        self.changes = ChangeLog()
        self._clock = clock
        self._own_manager = own_manager
        self._controller: Controller | None = None
        self._rows: dict[Key, _CachedRow] = {}
        self._versions: dict[Key, int] = {}
        self._readers: WeakKeyDictionary[Client, ObjectReader] = WeakKeyDictionary()
        self._computation_slots = asyncio.Semaphore(COMPUTATIONS_MAX)
        history.listen(self._on_decision)

    def attach(self, controller: Controller) -> None:
        """Read the caches of this controller from now on; call it before the controller runs."""
        self._controller = controller
        controller.informers.autoscalers.subscribe(self)
        self.changes.wake()

    def added(self, obj: Autoscaler) -> None:
        """Note a new autoscaler."""
        self._record_change(obj.key)

    def updated(self, old: Autoscaler, new: Autoscaler) -> None:
        """Note a newer version of an autoscaler."""
        del old
        self._record_change(new.key)

    def deleted(self, obj: Autoscaler) -> None:
        """Forget a deleted autoscaler."""
        self._rows.pop(obj.key, None)
        self._versions.pop(obj.key, None)
        self.changes.delete(obj.key)

    def unready(self) -> list[str]:
        """Why rows are not known yet, a sentence each; empty if all autoscalers are listed."""
        if self._controller is None:
            return ["the connection to the cluster is not open yet"]
        return self._controller.informers.unready()

    def faults(self) -> list[str]:
        """Why rows may be old, a sentence each; empty: the API server responds."""
        return [] if self._controller is None else self._controller.health.faults()

    def keys(self) -> Iterator[Key]:
        """The keys of all autoscalers."""
        if self._controller is not None:
            yield from [autoscaler.key for autoscaler in self._controller.informers.autoscalers]

    def find_key(self, namespace: str, name: str, kind: str = "") -> Key | None:
        """The key of an autoscaler; None if there is none of that name.

        Args:
            kind: `HorizontalPodAutoscaler` or `PodAutoscaler`; empty for the first of both that exists.
        """
        for autoscaler_kind in KINDS:
            key = autoscaler_kind.key(namespace, name)
            if kind in ("", autoscaler_kind.kind) and self._find_autoscaler(key) is not None:
                return key
        return None

    def find_row(self, key: Key) -> AutoscalerRow | None:
        """The row of an autoscaler, made again if it changed; None if there is no such autoscaler."""
        autoscaler = self._find_autoscaler(key)
        if autoscaler is None:
            return None
        version, cached = self._versions.get(key, 0), self._rows.get(key)
        if cached is None or cached.version != version or cached.autoscaler is not autoscaler:
            row = self._make_row(autoscaler)
            cached = self._rows[key] = _CachedRow(version, autoscaler, row, self.history.now_ms)
        return cached.row

    def rows(self) -> Sequence[AutoscalerRow]:
        """All autoscalers, the worst first."""
        known_rows = [row for key in self.keys() if (row := self.find_row(key)) is not None]
        return sorted(known_rows, key=autoscaler_rows.sort_key)

    def since(self) -> tuple[int | None, str]:
        """The instant of the oldest known decision (ms; None if no decision is known), and why none is older."""
        oldest = self.history.oldest_at
        return oldest, "no decision was seen yet" if oldest is None else self.history.since_reason(oldest)

    async def detail(
        self,
        namespace: str,
        name: str,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        kind: str = "",
        client: Client | None = None,
    ) -> Detail:
        """One autoscaler with its time line.

        Args:
            namespace, name, kind: as for `find_key`.
            from_ms, to_ms: the range of time; None: the last hour.
            client: the viewer's; None: that of this cluster.

        Raises:
            UnknownAutoscaler: there is none of that name.
            UsageError: the range of time ends before it begins.
            StatusError: 401 or 403, the viewer may not get the autoscaler.
        """
        key, autoscaler = self._get_autoscaler(namespace, name, kind)
        from_ms, to_ms = self._time_range(from_ms, to_ms)
        latest = self._find_latest(key)
        objects = await self._read_objects(client or self.client, autoscaler, latest)
        row = self.find_row(key)
        if row is None:
            raise UnknownAutoscaler(namespace, name)
        since, since_reason = self.history.since(key)
        return Detail(
            now=self.history.now_ms,
            row=row,
            timeline=self.timeline(key, from_ms, to_ms),
            decisions=self.marks(key, from_ms, to_ms),
            events=objects.event_views(),
            pods=pod_views.of(objects.pods, latest),
            lint=await asyncio.to_thread(objects.lint) if objects.items else (),
            conditions=objects.conditions(),
            yaml=objects.yaml(),
            since=since,
            since_reason=since_reason,
            notes=tuple(dict.fromkeys([*self.faults(), *objects.notes])),
        )

    def _time_range(self, from_ms: int | None, to_ms: int | None) -> tuple[int, int]:
        """The range with defaults. Raises UsageError if it ends before it begins."""
        to_ms = self.history.now_ms if to_ms is None else to_ms
        from_ms = to_ms - DEFAULT_RANGE_MS if from_ms is None else from_ms
        if from_ms >= to_ms:
            raise UsageError("the range of time ends before it begins: choose another one")
        return from_ms, to_ms

    def timeline(self, key: Key, from_ms: int, to_ms: int) -> DecisionTimeline:
        """The numbers of an autoscaler in a range of time; empty if none is known."""
        track = self.history.find(key)
        return (SyncColumns() if track is None else track.columns).timeline(from_ms, to_ms)

    def marks(self, key: Key, from_ms: int, to_ms: int) -> tuple[Mark, ...]:
        """The newest marks of a range of time, oldest first; those that change nothing are left out first."""
        marks = [kept_sync.mark for kept_sync in self.history.kept.of_range(key, from_ms, to_ms)]
        if len(marks) > MARKS_MAX:
            marks = [mark for mark in marks if mark.kind is not MarkKind.SAME]
        return tuple(marks[-MARKS_MAX:])

    def timeline_after(self, key: Key, at_ms: int) -> TimelineChange | None:
        """The points and marks after an instant; None if there are none."""
        track = self.history.find(key)
        if track is None or not track.columns.at or track.columns.at[-1] <= at_ms:
            return None
        marks = tuple([kept_sync.mark for kept_sync in self.history.kept.after(key, at_ms)])
        namespace, name = object_key(key)
        return TimelineChange(namespace, name, track.columns.timeline(at_ms + 1, track.columns.at[-1]), marks)

    async def explanation(self, namespace: str, name: str, mark_id: str, *, kind: str = "") -> DecisionView:
        """The explanation of the decision with this `Mark.id`, or of the newest (`latest`).

        Raises UnknownAutoscaler, UnknownDecision.
        """
        key, _ = self._get_autoscaler(namespace, name, kind)
        kept_sync = self.history.kept.find(key, mark_id)
        latest = self._find_latest(key)  # it is explained even if the history does not keep it
        if kept_sync is None and latest is not None and mark_id in ("latest", str(latest.at_ns)):
            kept_sync = self._as_kept_sync(key, latest)
        if kept_sync is None:
            raise UnknownDecision(mark_id)
        async with self._computation_slots:
            return await asyncio.to_thread(what_if.explain, kept_sync)

    async def what_if(
        self,
        namespace: str,
        name: str,
        assignments: Sequence[str],
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        kind: str = "",
    ) -> WhatIfView:
        """The what-if with `assignments` (`maxReplicas=20`) about the newest sync, and over a range of time.

        Raises UnknownAutoscaler, UsageError.
        """
        key, _ = self._get_autoscaler(namespace, name, kind)
        parsed_assignments = what_if.parse(assignments)
        from_ms, to_ms = self._time_range(from_ms, to_ms)
        kept_syncs = self.history.kept.of_range(key, from_ms, to_ms)
        latest = self._find_latest(key)
        if latest is None and not kept_syncs:
            raise UsageError("what-if needs a decision, and none about this autoscaler is known yet")
        newest = kept_syncs[-1] if latest is None else self._as_kept_sync(key, latest)
        async with self._computation_slots:
            return await asyncio.to_thread(what_if.compare, parsed_assignments, newest, kept_syncs)

    async def updates(self) -> AsyncIterator[Sequence[Key]]:
        """The keys of autoscalers that changed or are gone, from now on, until the caller stops."""
        version = self.changes.version
        while True:
            await self.changes.wait(version)
            changed_keys = self.changes.after(version)
            version = changed_keys.version
            yield [*changed_keys.gone, *changed_keys.changed]

    async def _read_objects(self, client: Client, autoscaler: Autoscaler, latest: SyncRecord | None) -> ReadObjects:
        """The objects of a detail; the cached autoscaler and a note where the API server does not respond.

        Raises UnknownAutoscaler; StatusError 401, 403.
        """
        scale = latest.observed.observation.scale if latest is not None else None
        selector = scale.selector if isinstance(scale, Scale) else ""
        reader = self._readers.get(client)
        if reader is None:
            reader = self._readers[client] = ObjectReader(client, self._clock)
        kind, meta = autoscaler.kind, autoscaler.metadata
        try:
            return await reader.read(kind, meta.namespace, meta.name, selector)
        except TimeoutError:
            note = "the API server does not respond: what is shown is what was known before"
        except StatusError as error:
            if error.code == 404:
                raise UnknownAutoscaler(meta.namespace, meta.name) from None
            if error.code in (401, 403):
                raise
            note = f"{error}: what is shown is what was known before"
        return ReadObjects(autoscaler_rows.as_object(autoscaler), notes=[note])

    def _make_row(self, autoscaler: Autoscaler) -> AutoscalerRow:
        """The row of a cached autoscaler now; `_rows` is not changed."""
        track, now_ms = self.history.find(autoscaler.key), self.history.now_ms
        return autoscaler_rows.of(autoscaler, track, now_ms=now_ms, decided_by=self._decided_by(autoscaler))

    def _get_autoscaler(self, namespace: str, name: str, kind: str) -> tuple[Key, Autoscaler]:
        """An autoscaler and its key, as `find_key`. Raises UnknownAutoscaler."""
        key = self.find_key(namespace, name, kind)
        autoscaler = None if key is None else self._find_autoscaler(key)
        if key is None or autoscaler is None:
            raise UnknownAutoscaler(namespace, name)
        return key, autoscaler

    def _find_autoscaler(self, key: Key) -> Autoscaler | None:
        """The cached autoscaler; None if there is none, or its kind is not managed."""
        if self._controller is None:
            return None
        with contextlib.suppress(KeyError):  # of a kind that the controller does not manage
            return self._controller.informers.autoscalers.find(key)
        return None

    def _find_latest(self, key: Key) -> SyncRecord | None:
        """The newest sync; None if this process has not synced the autoscaler."""
        track = self.history.find(key)
        return None if track is None else track.latest

    def _as_kept_sync(self, key: Key, record: SyncRecord) -> KeptSync:
        """A sync as a kept one, for `what_if`; it is not added to the history."""
        mark = sync_points.mark(record.decision, is_carried_out=record.is_carried_out)
        return KeptSync(key, mark, self.history.header, is_sample=True, record=record)

    def _decided_by(self, autoscaler: Autoscaler) -> str:
        """The field manager that wrote the status; empty if it is not known."""
        assert self._controller is not None, "an autoscaler is known"
        writer = self._controller.informers.autoscalers.find_status_writer(autoscaler.key)
        return writer or (self._own_manager if autoscaler.wire.status.conditions else "")

    def _record_change(self, key: Key) -> None:
        """Note that an autoscaler is new, or that its row may have changed."""
        if self._find_autoscaler(key) is not None:
            self._versions[key] = self._versions.get(key, 0) + 1
            self.changes.touch(key)

    def _on_decision(self, key: Key) -> None:
        """Note that the row changed, if more than its sparkline did, or if the row is old.

        Else viewers are woken all the same, since the time line has a new point.
        """
        cached, autoscaler = self._rows.get(key), self._find_autoscaler(key)
        if cached is None or autoscaler is None or self.history.now_ms - cached.made_at_ms >= ROW_REFRESH_MS:
            self._record_change(key)
            return
        row = self._make_row(autoscaler)
        if msgspec.structs.replace(row, sparkline=cached.row.sparkline) == cached.row:
            self.changes.wake()
        else:
            self._record_change(key)
