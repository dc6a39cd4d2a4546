"""Reads what the detail of one autoscaler shows of the cluster: the object, events, pods, and objects for lint rules.

`podscaler.observe.live_cluster` calls `read` with the client of the viewer, so that the viewer's own permissions
decide. A part that cannot be read becomes a note; only the missing object and missing permission for it are errors. A
new part: an attribute of ReadObjects, read in `ObjectReader.read`. A further kind for lint rules: `_LINTED_KINDS`.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import yaml

from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.controller.options.autoscaler_kinds import HPA, AutoscalerKind
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, Query
from podscaler.kube.client.discovery import Discovery
from podscaler.lint import linter
from podscaler.lint.model import reading
from podscaler.lint.model.lint_context import LintedCluster
from podscaler.lint.model.linted_item import DocumentOrigin, Item
from podscaler.observe.autoscaler_rows import instant_ms
from podscaler.observe.views import ConditionView, EventView, LintView

JsonObject = dict[str, Any]
READ_TIMEOUT_S = 5.0
LIST_MAX = 500
EVENTS_MAX = 100
_OBJECT = msgspec.json.Decoder(JsonObject)
_T = TypeVar("_T")


@dataclass(slots=True)
class ReadObjects:
    """What was read.

    Attributes:
        autoscaler: the object as the API has it.
        events: of the autoscaler and its target, newest first.
        pods: the pods of the target, as the API has them.
        items: the objects for lint rules.
        listed: group and kind (in lower case) of the kinds whose objects are all among `items`.
        notes: what could not be read, a sentence each.
    """

    autoscaler: JsonObject
    events: list[JsonObject] = field(default_factory=list)
    pods: list[JsonObject] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    listed: set[tuple[str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def yaml(self) -> str:
        """The object in YAML, without managedFields."""
        metadata = {
            name: value for name, value in self.autoscaler.get("metadata", {}).items() if name != "managedFields"
        }
        return str(yaml.safe_dump(self.autoscaler | {"metadata": metadata}, sort_keys=False, allow_unicode=True))

    def conditions(self) -> tuple[ConditionView, ...]:
        """The conditions of the status."""
        return tuple(
            [_condition_view(condition) for condition in self.autoscaler.get("status", {}).get("conditions") or ()]
        )

    def event_views(self) -> tuple[EventView, ...]:
        """The newest events, at most EVENTS_MAX, newest first."""
        views = sorted(map(_event_view, self.events), key=lambda view: view.at or 0, reverse=True)
        return tuple(views[:EVENTS_MAX])

    def lint(self) -> tuple[LintView, ...]:
        """The lint findings about the autoscaler and its target. Blocks: it computes."""
        metadata, namespace = self.autoscaler["metadata"], self.autoscaler["metadata"].get("namespace")
        target = self.autoscaler.get("spec", {}).get("scaleTargetRef") or {}
        subjects = {
            (self.autoscaler.get("kind"), namespace, metadata.get("name")),
            (target.get("kind"), namespace, target.get("name")),
        }
        findings = linter.lint(self.items, LintedCluster(listed=frozenset(self.listed)))
        return tuple(
            [
                LintView(finding.rule.id, finding.rule.severity.value, finding.message, finding.fix, finding.field)
                for finding in findings
                if (finding.kind, finding.namespace, finding.name) in subjects
            ]
        )


class ObjectReader:
    """Reads the objects around autoscalers with one client.

    Args:
        client: the viewer's.
        clock: for discovery.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._discovery = Discovery(client, clock)

    async def read(self, kind: AutoscalerKind, namespace: str, name: str, selector: str) -> ReadObjects:
        """What the detail of an autoscaler shows.

        Args:
            kind, namespace, name: of the autoscaler.
            selector: of the target's pods; empty if it is not known, and no pods are returned.

        Raises:
            StatusError: the autoscaler itself cannot be read (404, 403, no connection).
            TimeoutError: the response about it takes longer than READ_TIMEOUT_S.
        """
        async with asyncio.timeout(READ_TIMEOUT_S):
            obj = await self._get_object(kind.path(namespace, urls.object_name(name)), subject=f"{kind.plural} {name}")
        objects = ReadObjects({"apiVersion": kind.api_version, "kind": kind.kind} | obj)
        reference = obj.get("spec", {}).get("scaleTargetRef") or {}
        target_name = str(reference.get("name", ""))
        # the first three return lists; the others add to `objects`, and return nothing
        events, target_events, pods, *_ = await asyncio.gather(
            self._read_or_note(objects, "events", self._events(namespace, name, kind.kind)),
            self._read_or_note(
                objects, "events of the target", self._events(namespace, target_name, reference.get("kind", ""))
            ),
            self._read_or_note(objects, "pods", self._list("", "v1", namespace, "pods", [("labelSelector", selector)])),
            self._read_or_note(objects, "the target", self._add_target(objects, namespace, reference)),
            self._read_or_note(objects, "autoscalers of the namespace", self._add_autoscalers(objects, namespace)),
            *[
                self._read_or_note(objects, plural, self._add_linted(objects, namespace, plural, linted_kind))
                for plural, linted_kind in _LINTED_KINDS
            ],
        )
        objects.events = [*(events or ()), *(target_events or ())]
        objects.pods = list(pods or ()) if selector else []
        if kind is not HPA:  # `_add_autoscalers` has added an HPA
            objects.items += reading.items(objects.autoscaler, DocumentOrigin())
        return objects

    async def _read_or_note(self, objects: ReadObjects, subject: str, reading_part: Awaitable[_T]) -> _T | None:
        """The result of `reading_part`; None, with a note in `objects`, where it cannot be read."""
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                return await reading_part
        except TimeoutError:
            objects.notes.append(f"{subject} cannot be read: no response within {READ_TIMEOUT_S:g} s")
        except StatusError as error:
            objects.notes.append(f"{subject} cannot be read: {error}")
        return None

    async def _events(self, namespace: str, name: str, kind: str) -> list[JsonObject]:
        """The Events on an object; none if `name` is empty. Raises StatusError."""
        if not name:
            return []
        fields = f"involvedObject.name={name},involvedObject.kind={kind}"
        return await self._list("", "v1", namespace, "events", [("fieldSelector", fields)])

    async def _add_target(self, objects: ReadObjects, namespace: str, reference: JsonObject) -> None:
        """Add the scaled object to the items; a 404 makes its kind a listed one, without it. Raises StatusError."""
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
        mapping, *_ = await self._discovery.mappings(group, kind)
        path = urls.group_version(mapping.group, mapping.version) + urls.path("namespaces", namespace, mapping.plural)
        try:
            obj = await self._get_object(path + urls.path(urls.object_name(name)), subject=f"{mapping.plural} {name}")
        except StatusError as error:
            if error.code != 404:
                raise
            objects.listed.add((mapping.group, mapping.kind.lower()))
            return
        api_version = f"{mapping.group}/{mapping.version}" if mapping.group else mapping.version
        objects.items += reading.items({**obj, "apiVersion": api_version, "kind": mapping.kind}, DocumentOrigin())

    async def _add_autoscalers(self, objects: ReadObjects, namespace: str) -> None:
        """Add the HPAs of the namespace to the items. Raises StatusError."""
        for obj in await self._list(HPA.group, HPA.version, namespace, HPA.plural, []):
            objects.items += reading.items({**obj, "apiVersion": HPA.api_version, "kind": HPA.kind}, DocumentOrigin())

    async def _add_linted(self, objects: ReadObjects, namespace: str, plural: str, kind: str) -> None:
        """Add the objects of a kind to the items; a whole list makes it a listed kind. Raises StatusError."""
        linted_objects = await self._list("", "v1", namespace, plural, [])
        for obj in linted_objects:
            objects.items += reading.items({**obj, "apiVersion": "v1", "kind": kind}, DocumentOrigin())
        if len(linted_objects) < LIST_MAX:
            objects.listed.add(("", kind.lower()))

    async def _list(self, group: str, version: str, namespace: str, plural: str, query: Query) -> list[JsonObject]:
        """The objects of a namespace, at most LIST_MAX: the rest of a longer list is not read. Raises StatusError."""
        path = urls.group_version(group, version) + urls.path("namespaces", namespace, plural)
        body = await self._get_object(path, subject=plural, query=[*query, ("limit", str(LIST_MAX))])
        return list(body.get("items") or ())

    async def _get_object(self, path: str, *, subject: str, query: Query = ()) -> JsonObject:
        """A response. Raises StatusError, also for one that is not a JSON object."""
        try:
            return _OBJECT.decode(await self._client.get(path, subject=subject, query=query))
        except JSON_DECODE_ERRORS as error:
            raise StatusError(f"the response about {subject} cannot be read: {error}", code=0) from None


_LINTED_KINDS = (("resourcequotas", "ResourceQuota"), ("limitranges", "LimitRange"))
"""Resource and kind of further objects of the namespace that lint rules read; all are of the group `""`, in v1."""


def _condition_view(obj: JsonObject) -> ConditionView:
    """The view of a condition; absent fields are empty, or None."""
    return ConditionView(
        type=_text(obj, "type"),
        status=_text(obj, "status"),
        reason=_text(obj, "reason"),
        message=_text(obj, "message"),
        last_transition_at=instant_ms(obj.get("lastTransitionTime")),
    )


def _event_view(obj: JsonObject) -> EventView:
    """The view of an Event, in whichever of its forms: with a series, with `lastTimestamp`, or with `eventTime`."""
    series, involved = obj.get("series") or {}, obj.get("involvedObject") or {}
    times = (series.get("lastObservedTime"), obj.get("lastTimestamp"), obj.get("eventTime"), obj.get("firstTimestamp"))
    return EventView(
        at=next((at for text in times if (at := instant_ms(text)) is not None), None),
        type=_text(obj, "type"),
        reason=_text(obj, "reason"),
        message=_text(obj, "message"),
        count=series.get("count") or obj.get("count") or 1,
        object=f"{_text(involved, 'kind')}/{_text(involved, 'name')}",
    )


def _text(obj: JsonObject, name: str) -> str:
    """The text of a field; empty if it is absent or null."""
    return str(obj.get(name) or "")
