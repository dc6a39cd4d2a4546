"""Keeping a cache equal to what the API server has: list once, then watch from there, without end.

A controller runs one Reflector for each kind that it follows. Rules:

1. A server that can send a list as events of a watch is asked for that (where the client allows it): neither side then
   holds the whole list in one piece. One that refuses it is asked for pages from then on.
2. The first list in pages may come from the server's own cache (`resourceVersion=0`); later ones are at least as new as
   what is known, and after 410 they are the newest there is.
3. A watch that ends or breaks is resumed where it was; bookmarks move that place on while nothing happens.
4. Whatever fails is tried again after a growing delay, and said once in the log; only cancellation ends `run`.
5. An object that cannot be decoded is left out with an error in the log: it must not hide the others.

Source: docs/spec/controller.md 10 (REST requests); the API concepts page of the Kubernetes documentation (efficient
detection of changes).
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client, Query, is_not_served, retry_delay_s
from podscaler.kube.informers import watch_events
from podscaler.kube.informers.cache import Cache, Cached, Key, key_of
from podscaler.kube.informers.watch_events import EndedEarly, Page, WatchEvent
from podscaler.kube.transport.backoff import Backoff
from podscaler.kube.transport.transport import TransportError

log = logging.getLogger(__name__)

PAGE_OBJECTS = 500
WATCH_MIN_S = 300
OVERTIME_S = 60.0
"""How much longer than agreed a watch may last before the server is taken to be stuck."""
FROM_CACHE = "0"
"""Any version that the server has at hand."""
EARLY_ENDS = 2
"""After so many lists as events in a row that were cut short, pages are asked for."""
STALL_S = 15.0
"""A list as events that brings nothing for so long is given up: a real API server was seen to leave out its end."""
SHORT_WATCH_S = 1.0
"""A watch that ends sooner without an event is a failure: the server, or what is in between, refuses to keep it."""

T = TypeVar("T", bound=Cached)


@dataclass(frozen=True, slots=True)
class WatchSource(Generic[T]):
    """What to follow.

    Attributes:
        path: the collection (`/api/v1/pods`).
        subject: its group-resource, for messages (`horizontalpodautoscalers.autoscaling`).
        read: makes an object to keep from its JSON; ValueError (msgspec's errors are ones) where it cannot.
        query: selectors, if only a part of the collection is wanted.
    """

    path: str
    subject: str
    read: Callable[[msgspec.Raw], T]
    query: Query = ()


class Reflector(Generic[T]):
    """See the module's rules.

    Args:
        client: where to ask.
        source: what to follow.
        cache: what to keep equal to it.
        clock: for waits.
        rng: for spread in time.
    """

    def __init__(
        self, client: Client, source: WatchSource[T], *, cache: Cache[T], clock: Clock, rng: random.Random
    ) -> None:
        self._client = client
        self._source = source
        self._cache = cache
        self._clock = clock
        self._rng = rng
        self._backoff = Backoff(rng)
        self._version: str | None = None
        self._list_from = FROM_CACHE
        self._arriving: dict[Key, T] | None = None
        self._streams_lists = client.streams_lists
        self._early_ends = 0
        self.last_error = ""
        self.is_served = True
        """Whether the last failure, if any, was another one than that the server does not know the resource."""
        self.is_watching = False
        """Whether the server is telling changes right now."""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._follow()
                self._backoff.reset()
                self.last_error, self.is_served = "", True
            except StatusError as error:
                if self._falls_back(error):
                    continue
                if watch_events.needs_new_list(error):
                    known = self._version or self._list_from
                    self._list_from = "" if watch_events.is_expired(error) else known
                    self._version = None
                await self._wait(error)

    async def _follow(self) -> None:
        """List if that is needed, then watch until the server ends it."""
        if self._version is None and self._streams_lists:
            await self._watch_from_list()
            return
        if self._version is None:
            await self._list(self._list_from)
        await self._watch([("resourceVersion", self._version or "")])

    def _falls_back(self, error: StatusError) -> bool:
        """Whether the list is to be asked for in pages now, because the server does not send it as events."""
        if self._version is not None or not self._streams_lists:
            return False
        if not watch_events.refuses_streamed_lists(error) and self._early_ends < EARLY_ENDS:
            return False
        log.info("%s are listed in pages: %s", self._source.subject, error)
        self._streams_lists = False
        return True

    async def _wait(self, error: StatusError) -> None:
        asked_s = retry_delay_s(error, "WATCH") or 0.0
        delay_s = 0.0 if error.code == 410 and not self.last_error else max(self._backoff.next_s(), asked_s)
        level = logging.INFO if error.code == 410 else logging.WARNING
        if str(error) == self.last_error or isinstance(error, TransportError) or error.code == 401:
            level = logging.DEBUG  # the controller reports once for all that the server is away, or refuses us
        log.log(level, "following %s: %s; again in %.1f s", self._source.subject, error, delay_s)
        self.last_error, self.is_served = str(error), not is_not_served(error)
        await self._clock.sleep(delay_s)

    async def _list(self, version: str) -> None:
        objects: list[T] = []
        token = ""
        while True:
            query = [
                *self._source.query,
                ("limit", str(PAGE_OBJECTS)),
                ("resourceVersion", "" if token else version),
                ("continue", token),
            ]
            body = await self._client.get(self._source.path, subject=self._source.subject, query=query)
            page = watch_events.page(body)
            objects += await self._decoded_page(page)
            token = page.metadata.continue_
            if not token:
                break
        self._cache.replace(objects, page.metadata.resource_version)
        self._version = page.metadata.resource_version

    async def _decoded_page(self, page: Page) -> list[T]:
        """The page's objects; a server may give everything as one page, so others get their turn in between."""
        objects: list[T] = []
        for index, raw in enumerate(page.items or ()):
            if index % PAGE_OBJECTS == PAGE_OBJECTS - 1:
                await asyncio.sleep(0)
            obj = self._decoded(raw)
            if obj is not None:
                objects.append(self._cache.same(obj))
        return objects

    async def _watch_from_list(self) -> None:
        version = "" if self._list_from == FROM_CACHE else self._list_from
        self._arriving = {}
        beginning = [
            ("resourceVersion", version),
            ("resourceVersionMatch", "NotOlderThan"),
            ("sendInitialEvents", "true"),
        ]
        watching = asyncio.ensure_future(self._watch(beginning))
        stalled = asyncio.ensure_future(self._stall())
        try:
            await asyncio.wait((watching, stalled), return_when=asyncio.FIRST_COMPLETED)
            if watching.done() or self._arriving is None:
                await watching
            if self._arriving is not None:
                self._early_ends += EARLY_ENDS if stalled.done() else 1
                raise EndedEarly
        finally:
            self._arriving = None
            watching.cancel()
            stalled.cancel()
            await asyncio.gather(watching, stalled, return_exceptions=True)

    async def _stall(self) -> None:
        """Return when the list that comes as events is complete, or stands still."""
        count = -1
        while self._arriving is not None and len(self._arriving) != count:
            count = len(self._arriving)
            await self._clock.sleep(STALL_S)

    async def _watch(self, beginning: Query) -> None:
        started_s = self._clock.monotonic_s()
        seen = False
        length_s = WATCH_MIN_S + self._rng.randrange(WATCH_MIN_S)
        query = [
            *self._source.query,
            ("allowWatchBookmarks", "true"),
            *beginning,
            ("timeoutSeconds", str(length_s)),
        ]
        async with self._client.watch(
            self._source.path, subject=self._source.subject, query=query, timeout_s=length_s + OVERTIME_S
        ) as stream:
            self.is_watching = True
            try:
                async for lines in stream.batches():
                    await self._apply_all(lines)
                    if not seen:
                        seen, self.last_error, self.is_served = True, "", True
                        self._backoff.reset()
            finally:
                self.is_watching = False
        if not seen and self._clock.monotonic_s() - started_s < SHORT_WATCH_S:
            raise StatusError("the server ended a watch at once", code=0)

    async def _apply_all(self, lines: list[bytes]) -> None:
        """Others get their turn in between."""
        for index, line in enumerate(lines, 1):
            self._apply(watch_events.event(line))
            if not index % PAGE_OBJECTS:
                await asyncio.sleep(0)

    def _apply(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            self._bookmark(event.object)
            return
        obj = self._decoded(event.object)
        if obj is None:
            self._advance(watch_events.version_of(event.object))
            return
        if self._arriving is not None:
            _note(self._arriving, event.type, self._cache.same(obj))
            return
        if event.type == "DELETED":
            self._cache.remove(obj)
        else:
            self._cache.put(obj)
        self._advance(obj.metadata.resource_version)

    def _bookmark(self, raw: msgspec.Raw) -> None:
        version = watch_events.version_of(raw)
        if self._arriving is not None and watch_events.ends_initial_events(raw):
            self._cache.replace(self._arriving.values(), version)
            self._arriving = None
            self._early_ends = 0
        self._advance(version)

    def _advance(self, version: str) -> None:
        """What arrives before the list is complete is no place to go on from."""
        if version and self._arriving is None:
            self._version = self._cache.version = version

    def _decoded(self, raw: msgspec.Raw) -> T | None:
        try:
            return self._source.read(raw)
        except ValueError as error:
            log.error("an object of %s cannot be read and is left out: %s", self._source.subject, error)
            return None


def _note(arriving: dict[Key, T], kind: str, obj: T) -> None:
    """What a list that comes as events holds so far."""
    if kind == "DELETED":
        arriving.pop(key_of(obj), None)
    else:
        arriving[key_of(obj)] = obj
