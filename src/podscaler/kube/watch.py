"""Keeping a cache equal to what the API server has: list once, then watch from there, without end.

A controller runs one Reflector for each kind that it follows. Rules:

1. The first list may come from the server's own cache (`resourceVersion=0`); later ones are at least as new as what is
   known, and after 410 they are the newest there is.
2. A watch that ends or breaks is resumed where it was; bookmarks move that place on while nothing happens.
3. Whatever fails is tried again after a growing delay, and said once in the log; only cancellation ends `run`.
4. An object that cannot be decoded is left out with an error in the log: it must not hide the others.

Source: controller.md 10; the API concepts page of the Kubernetes documentation (efficient detection of changes).
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from podscaler.clock import Clock
from podscaler.errors import StatusError
from podscaler.kube import failures
from podscaler.kube.backoff import Backoff
from podscaler.kube.cache import Cache, Cached
from podscaler.kube.client import Client, Query
from podscaler.kube.transport import TransportError

log = logging.getLogger(__name__)

PAGE_OBJECTS = 500
WATCH_MIN_S = 300
OVERTIME_S = 60.0
"""How much longer than agreed a watch may last before the server is taken to be stuck."""
SHORT_WATCH_S = 1.0
"""A watch that ends sooner without an event is a failure: the server, or what is in between, refuses to keep it."""

T = TypeVar("T", bound=Cached)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: _ListMeta


_PAGE = msgspec.json.Decoder(_Page)
_EVENT = msgspec.json.Decoder(_Event)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
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

    def __init__(self, client: Client, source: Source[T], *, cache: Cache[T], clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._source = source
        self._cache = cache
        self._clock = clock
        self._rng = rng
        self._backoff = Backoff(rng)
        self._version: str | None = None
        self.last_error = ""

    async def run(self) -> None:
        """Follow until cancelled."""
        list_from = "0"
        while True:
            try:
                if self._version is None:
                    await self._list(list_from)
                await self._watch()
                self._backoff.reset()
                self.last_error = ""
            except StatusError as error:
                if _needs_new_list(error):
                    list_from = "" if _is_expired(error) else self._version or list_from
                    self._version = None
                await self._wait(error)

    async def _wait(self, error: StatusError) -> None:
        delay_s = 0.0 if error.code == 410 and not self.last_error else self._backoff.next_s()
        level = (
            logging.DEBUG if str(error) == self.last_error else logging.INFO if error.code == 410 else logging.WARNING
        )
        log.log(level, "following %s: %s; again in %.1f s", self._source.subject, error, delay_s)
        self.last_error = str(error)
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
            page = _page(await self._client.get(self._source.path, subject=self._source.subject, query=query))
            objects += await self._decoded_page(page)
            token = page.metadata.continue_
            if not token:
                break
        self._cache.replace(objects, page.metadata.resource_version)
        self._version = page.metadata.resource_version

    async def _decoded_page(self, page: _Page) -> list[T]:
        """The page's objects; a server may give everything as one page, so others get their turn in between."""
        objects: list[T] = []
        for index, raw in enumerate(page.items or ()):
            if index % PAGE_OBJECTS == PAGE_OBJECTS - 1:
                await asyncio.sleep(0)
            obj = self._decoded(raw)
            if obj is not None:
                objects.append(obj)
        return objects

    async def _watch(self) -> None:
        started_s = self._clock.monotonic_s()
        assert self._version is not None
        seen = False
        length_s = WATCH_MIN_S + self._rng.randrange(WATCH_MIN_S)
        query = [
            *self._source.query,
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(length_s)),
        ]
        async with self._client.watch(
            self._source.path, subject=self._source.subject, query=query, timeout_s=length_s + OVERTIME_S
        ) as stream:
            async for lines in stream.batches():
                for line in lines:
                    self._apply(line)
                if not seen:
                    seen, self.last_error = True, ""
                    self._backoff.reset()
        if not seen and self._clock.monotonic_s() - started_s < SHORT_WATCH_S:
            raise StatusError("the server ended a watch at once", code=0)

    def _apply(self, line: bytes) -> None:
        try:
            event = _EVENT.decode(line)
        except msgspec.DecodeError as error:
            raise StatusError(f"unable to decode an event of the watch stream: {error}", code=0) from error
        if event.type == "ERROR":
            raise failures.of_status(bytes(event.object)) or StatusError("unknown error in the watch stream", code=500)
        if event.type == "BOOKMARK":
            self._advance(_BOOKMARK.decode(event.object).metadata.resource_version)
            return
        obj = self._decoded(event.object)
        if obj is None:
            self._advance(_version_of(event.object))
            return
        if event.type == "DELETED":
            self._cache.remove(obj)
        else:
            self._cache.put(obj)
        self._advance(obj.metadata.resource_version)

    def _advance(self, version: str) -> None:
        if version:
            self._version = self._cache.version = version

    def _decoded(self, raw: msgspec.Raw) -> T | None:
        try:
            return self._source.read(raw)
        except ValueError as error:
            log.error("an object of %s cannot be read and is left out: %s", self._source.subject, error)
            return None


def _page(body: bytes) -> _Page:
    try:
        return _PAGE.decode(body)
    except msgspec.DecodeError as error:
        raise StatusError(f"unable to decode a list: {error}", code=0) from error


def _version_of(raw: msgspec.Raw) -> str:
    try:
        return _BOOKMARK.decode(raw).metadata.resource_version
    except msgspec.DecodeError:
        return ""


def _is_expired(error: StatusError) -> bool:
    too_large = any("Too large resource version" in cause.message for cause in error.causes)
    return error.code == 410 or error.reason in ("Expired", "Gone") or too_large or error.code == 504


def _needs_new_list(error: StatusError) -> bool:
    """Not where the server was away or busy: then the watch goes on where it was."""
    if isinstance(error, TransportError) or error.code == 0:
        return False
    return error.code not in (429, 500, 502, 503)
