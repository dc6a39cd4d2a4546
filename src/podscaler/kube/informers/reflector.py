"""Defines the Reflector, which keeps a cache equal to a collection of the API server by list and watch.

A controller runs one Reflector for each kind; events and their errors are decoded by `watch_events`. Rules:

1. Lists are requested as watch events (`sendInitialEvents`, if the client allows it), so that neither side holds the
   whole list in one piece. From a server that does not support that they are requested in pages from then on.
2. The first list in pages may come from the server's watch cache (`resourceVersion=0`); later ones are at least as new
   as the cache, and after a 410 they are the newest.
3. A watch that ends or breaks is resumed from its last resource version, which bookmarks advance.
4. Failures are retried with back-off and logged once; only cancellation ends `run`.
5. An object that cannot be decoded is skipped with an error in the log.

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
"""The objects of a page; also how many are decoded in one iteration of the event loop."""
WATCH_MIN_S = 300
"""The least `timeoutSeconds` of a watch; at random up to twice as long, so that watches do not all end at once."""
OVERTIME_S = 60.0
"""How much longer than `timeoutSeconds` a watch may last before it is ended here."""
FROM_CACHE = "0"
"""The resource version of a request for any version, from the server's watch cache."""
EARLY_ENDS = 2
"""After so many streamed lists in a row that ended early, lists are requested in pages."""
STALL_S = 15.0
"""A streamed list without an event for so long is ended here: a real API server was seen to omit its last event."""
SHORT_WATCH_S = 1.0
"""A watch that ends sooner without an event counts as failed, so that it is retried with back-off."""

T = TypeVar("T", bound=Cached)
_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class WatchSource(Generic[T]):
    """The collection of a reflector.

    Attributes:
        path: the collection (`/api/v1/pods`).
        subject: its group-resource, for messages (`horizontalpodautoscalers.autoscaling`).
        read: decodes an object for the cache; raises ValueError (as msgspec's errors are) if it cannot.
        query: selectors; empty for the whole collection.
        is_optional: whether the kind may be unknown to the server, which is not logged then.
    """

    path: str
    subject: str
    read: Callable[[msgspec.Raw], T]
    query: Query = ()
    is_optional: bool = False


class Reflector(Generic[T]):
    """Lists and watches one collection into a cache, by the module's rules; `run` does the work.

    Args:
        client: sends the requests.
        source: the collection.
        cache: is kept equal to the collection.
        clock: for delays.
        rng: for jitter.
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
        self._arriving: dict[Key, T] | None = None  # the objects of a streamed list until it is complete
        self._streams_lists = client.streams_lists
        self._early_ends = 0
        self.last_error = ""
        """The text of the last failure; empty after a success. Health checks and error messages show it."""
        self.is_served = True
        """False after a response that the server does not serve the resource, until a later response.

        Errors without a statement about the resource (no connection, 401, 429, 5xx) do not change it or `is_forbidden`.
        """
        self.is_forbidden = False
        """True after a response that the client may not list or watch the resource, until another response."""
        self.is_watching = False
        """Whether a watch is open now."""

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._list_and_watch()
                self._record_success()
            except StatusError as error:
                if self._try_switch_to_pages(error):
                    continue  # at once: the error is no failure of the server
                if watch_events.needs_new_list(error):
                    start_version = self._version or self._list_from
                    self._list_from = "" if watch_events.is_expired(error) else start_version  # "": the newest
                    self._version = None
                await self._wait_after_failure(error)

    async def _list_and_watch(self) -> None:
        """List if necessary, then watch until the server ends the watch. Raises StatusError."""
        if self._version is None and self._streams_lists:
            await self._watch_from_list()
            return
        if self._version is None:
            await self._list_pages(self._list_from)
        await self._watch([("resourceVersion", self._version or "")])

    def _try_switch_to_pages(self, error: StatusError) -> bool:
        """Request lists in pages from now on if the server does not stream them; returns whether that is new."""
        if self._version is not None or not self._streams_lists:
            return False
        if not watch_events.refuses_streamed_lists(error) and self._early_ends < EARLY_ENDS:
            return False
        log.info("%s are listed in pages: %s", self._source.subject, error)
        self._streams_lists = False
        return True

    def _record_success(self) -> None:
        """Reset the back-off and the last error."""
        self._backoff.reset()
        self.last_error, self.is_served, self.is_forbidden = "", True, False

    async def _wait_after_failure(self, error: StatusError) -> None:
        """Log a failure, keep what it says about the resource, and wait for the back-off."""
        requested_s = retry_delay_s(error, "WATCH") or 0.0
        is_first_expiry = error.code == 410 and not self.last_error  # normal after a long pause: list at once
        delay_s = 0.0 if is_first_expiry else max(self._backoff.next_s(), requested_s)
        level = logging.INFO if error.code == 410 else logging.WARNING
        if str(error) == self.last_error or isinstance(error, TransportError) or error.code == 401:
            level = logging.DEBUG  # reported once for all reflectors by the controller
        if self._source.is_optional and is_not_served(error):
            level = logging.DEBUG
        log.log(level, "following %s: %s; again in %.1f s", self._source.subject, error, delay_s)
        self.last_error = str(error)
        if is_not_served(error) or error.code == _FORBIDDEN:
            self.is_served, self.is_forbidden = not is_not_served(error), error.code == _FORBIDDEN
        await self._clock.sleep(delay_s)

    async def _list_pages(self, version: str) -> None:
        """List in pages, at least as new as `version`, and replace the cache. Raises StatusError."""
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
            objects += await self._decode_page(page)
            token = page.metadata.continue_
            if not token:
                break
        self._cache.replace(objects, page.metadata.resource_version)
        self._version = page.metadata.resource_version
        self.is_served, self.is_forbidden = True, False

    async def _decode_page(self, page: Page) -> list[T]:
        """The page's objects; yields to the event loop in between, as a page may hold the whole list."""
        objects: list[T] = []
        for index, object_json in enumerate(page.items or ()):
            if index % PAGE_OBJECTS == PAGE_OBJECTS - 1:
                await asyncio.sleep(0)
            obj = self._decode(object_json)
            if obj is not None:
                objects.append(self._cache.deduplicated(obj))
        return objects

    async def _watch_from_list(self) -> None:
        """Watch with initial events in place of a list. Raises StatusError; EndedEarly if they are not complete."""
        version = "" if self._list_from == FROM_CACHE else self._list_from
        self._arriving = {}
        beginning = [
            ("resourceVersion", version),
            ("resourceVersionMatch", "NotOlderThan"),
            ("sendInitialEvents", "true"),
        ]
        watching = asyncio.ensure_future(self._watch(beginning))
        stalled = asyncio.ensure_future(self._wait_for_stall())
        try:
            await asyncio.wait((watching, stalled), return_when=asyncio.FIRST_COMPLETED)
            if watching.done() or self._arriving is None:  # it has ended, or goes on after the complete list
                await watching
            if self._arriving is not None:
                self._early_ends += EARLY_ENDS if stalled.done() else 1  # after a stall pages at once
                raise EndedEarly
        finally:
            self._arriving = None
            watching.cancel()
            stalled.cancel()
            await asyncio.gather(watching, stalled, return_exceptions=True)

    async def _wait_for_stall(self) -> None:
        """Return when the streamed list is complete, or no object has arrived for STALL_S."""
        last_count = -1
        while self._arriving is not None and len(self._arriving) != last_count:
            last_count = len(self._arriving)
            await self._clock.sleep(STALL_S)

    async def _watch(self, beginning: Query) -> None:
        """Watch until the server ends it; `beginning` are the parameters for the start. Raises StatusError."""
        started_s = self._clock.monotonic_s()
        has_event = False
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
                    if not has_event:
                        has_event = True
                        self._record_success()
            finally:
                self.is_watching = False
        if not has_event and self._clock.monotonic_s() - started_s < SHORT_WATCH_S:
            raise StatusError("the server ended a watch at once", code=0)

    async def _apply_all(self, lines: list[bytes]) -> None:
        """Apply events; yields to the event loop in between."""
        for index, line in enumerate(lines, 1):
            self._apply_event(watch_events.event(line))
            if not index % PAGE_OBJECTS:
                await asyncio.sleep(0)

    def _apply_event(self, event: WatchEvent) -> None:
        """Apply one event: to the streamed list while it is incomplete, else to the cache."""
        if event.type == "BOOKMARK":
            self._apply_bookmark(event.object)
            return
        obj = self._decode(event.object)
        if obj is None:
            self._advance(watch_events.version_of(event.object))
            return
        if self._arriving is not None:
            _apply_to_list(self._arriving, event.type, self._cache.deduplicated(obj))
            return
        if event.type == "DELETED":
            self._cache.remove(obj)
        else:
            self._cache.put(obj)
        self._advance(obj.metadata.resource_version)

    def _apply_bookmark(self, bookmark_json: msgspec.Raw) -> None:
        """Apply a bookmark, which has a version only; one of them ends a streamed list, which enters the cache then."""
        version = watch_events.version_of(bookmark_json)
        if self._arriving is not None and watch_events.ends_initial_events(bookmark_json):
            self._cache.replace(self._arriving.values(), version)
            self._arriving = None
            self._early_ends = 0
        self._advance(version)

    def _advance(self, version: str) -> None:
        """Record the version to resume from; not while a streamed list is incomplete."""
        if version and self._arriving is None:
            self._version = self._cache.version = version

    def _decode(self, object_json: msgspec.Raw) -> T | None:
        """The object, None (and a log line) if it cannot be decoded."""
        try:
            return self._source.read(object_json)
        except ValueError as error:
            log.error("an object of %s cannot be decoded and is skipped: %s", self._source.subject, error)
            return None


def _apply_to_list(arriving: dict[Key, T], event_type: str, obj: T) -> None:
    """Apply an event to the objects of a streamed list."""
    if event_type == "DELETED":
        arriving.pop(key_of(obj), None)
    else:
        arriving[key_of(obj)] = obj
