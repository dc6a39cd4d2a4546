"""Watches over HTTP, until the client leaves or the time is up: frames of JSON, one a line, or of protobuf.

Called by `app`, which cancels a handler whose client is gone. Frames are made once for each event and form, and shared
by all watchers of that form; what came in one batch goes out in one write.

Source: the API concepts on watches and bookmarks; a watch whose history is gone gets a 200 and an ERROR event.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random

from aiohttp import web

from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import (
    http_errors,
    protobuf_forms,
    queries,
    rendering,
    response_encoder,
    zero_objects,
)
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.streaming_response import GrowingResponse
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.watching import Ended, EntryEvent, EventBatch, Subscription

TIMEOUT_MIN_S = 1800.0
BOOKMARK_PERIOD_S = 60.0
STOP_TIMEOUT_S = 5.0
WRITE_MAX_BYTES = 1 << 20
"""A batch's frames are written in pieces of about this size, so that a write that makes progress is not cut off."""


class Streams:
    """The watches that are open now."""

    def __init__(self, random: Random | None = None) -> None:
        self._open: set[asyncio.Task[object]] = set()
        self._followed: dict[str, set[Subscription]] = {}
        self._random = random or Random()
        self._is_stopping = False

    async def watch(self, plane: Plane, call: ResourceRequest) -> web.StreamResponse:
        """Stream the changes that the call asks for; returns when the stream has ended.

        Raises:
            StatusError: 400, 406, 422, 500, before anything was sent.
        """
        if call.form.encoding == "yaml":
            raise http_errors.none_acceptable(can_stream=True)
        options = queries.stream_options(call.query)
        timeout_s = options.timeout_s or TIMEOUT_MIN_S * (1 + self._random.random())
        response_encoder.include_object(call.query.text("includeObject"))
        selected = _selected(call)
        frames = _Frames(plane, call, selected, bookmarks=options.bookmarks)
        source = _subscribe(plane, call, selected)
        content_type = protobuf_forms.STREAM_TYPE if call.form.encoding == "protobuf" else "application/json"
        async with GrowingResponse(call.request, content_type, call.warnings) as stream:
            with self._following(call.served.resource.storage_key, source):
                await self.until_stopped(_run(stream, frames, source, timeout_s))
        return stream.response

    def end(self, storage_key: str) -> None:
        """End the watches of a kind, whose clients watch again: it is served otherwise now, or not at all."""
        for source in self._followed.get(storage_key, ()):
            source.end()

    @contextmanager
    def _following(self, storage_key: str, source: Subscription | StatusError) -> Iterator[None]:
        if isinstance(source, StatusError):
            yield
            return
        followed = self._followed.setdefault(storage_key, set())
        followed.add(source)
        try:
            yield
        finally:
            followed.discard(source)
            if not followed and self._followed.get(storage_key) is followed:
                del self._followed[storage_key]

    async def until_stopped(self, running: Coroutine[None, None, None]) -> None:
        """Run to the end, or until `stop`, which looks like a cancellation and is none."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await running
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            task.uncancel()
        finally:
            self._open.discard(task)

    async def stop(self) -> None:
        """End every watch as if its time were up."""
        self._is_stopping = True
        waiting = list(self._open)
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=STOP_TIMEOUT_S)


def _selected(call: ResourceRequest) -> ListOptions:
    """What is watched; the old path form for one object selects it by name."""
    options = queries.list_options(call.query)
    if not call.path.name:
        return options
    by_name = f"metadata.name={call.path.name}"
    texts = (by_name, options.field_selector) if options.field_selector else (by_name,)
    return replace(options, field_selector=",".join(texts))


def _subscribe(plane: Plane, call: ResourceRequest, options: ListOptions) -> Subscription | StatusError:
    """The watch, or the refusal that is told as an event."""
    try:
        return plane.objects.watch(call.key, call.path.namespace, options=options)
    except StatusError as error:
        if error.code != 410:
            raise
        return error


async def _run(
    stream: GrowingResponse, frames: "_Frames", source: Subscription | StatusError, timeout_s: float
) -> None:
    """Write what comes from `source` until the time is up, history is gone or the kind is."""
    if isinstance(source, StatusError):
        await stream.write(frames.failure(source))
        return
    try:
        async with asyncio.timeout(timeout_s):
            await _follow(stream, frames, source)
    except TimeoutError:
        await stream.write(frames.bookmark(source.revision))
    except Ended:
        return
    except StatusError as error:
        await stream.write(frames.failure(error))


async def _follow(stream: GrowingResponse, frames: "_Frames", source: Subscription) -> None:
    source.receiver = _Receiver(stream, frames)
    with _Bookmarks(source) as bookmarks:
        while True:
            batch = await source.batch()
            for piece in frames.pieces(batch):
                await stream.write(piece)
            if bookmarks.is_due and not batch.events:
                bookmarks.begin()
                await stream.write(frames.bookmark(source.revision))


class _Receiver:
    """Writes what comes while the stream's task waits, as long as the client keeps up with reading."""

    def __init__(self, stream: GrowingResponse, frames: "_Frames") -> None:
        self._stream = stream
        self._frames = frames

    def has_room(self) -> bool:
        """See `watching.Receiver`."""
        return self._stream.is_idle

    def take(self, batch: EventBatch) -> None:
        """See `watching.Receiver`."""
        self._stream.push(b"".join(self._frames.pieces(batch)))


class _Bookmarks:
    """When it is time for a bookmark: a while after the last one, as soon as there is nothing else to be sent.

    One timer for each bookmark, not for each wait: most waits end long before.
    """

    def __init__(self, source: Subscription) -> None:
        self._source = source
        self._timer: asyncio.TimerHandle | None = None
        self.is_due = False

    def __enter__(self) -> "_Bookmarks":
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def begin(self) -> None:
        """Wait for the next one."""
        self.is_due = False
        self._timer = asyncio.get_running_loop().call_later(BOOKMARK_PERIOD_S, self._become_due)

    def _become_due(self) -> None:
        self.is_due = True
        self._source.interrupt()


class _Frames:
    """How events of one watch look: version, shape, Table columns in the first frame only."""

    def __init__(self, plane: Plane, call: ResourceRequest, options: ListOptions, *, bookmarks: bool) -> None:
        self._plane = plane
        self._call = call
        self._sends_bookmarks = bookmarks
        self._marks_initial = bookmarks and options.send_initial_events is not False  # also of watches of the old form
        self._form = f"{call.served.api_version} {call.form}"
        self._columns: list[Object] | None = response_encoder.columns(call.served.resource.printer)

    def pieces(self, batch: EventBatch) -> list[bytes]:
        """The frames of a batch, joined into pieces to be written."""
        if self._call.form.shape == "partial_list":
            return []  # no event is a list, and upstream sends none then
        frames = [self._frame(event) for event in batch.events]
        if len(frames) == 1 and not batch.initial_done:
            return frames
        if batch.initial_done and self._marks_initial:
            frames.append(self._bookmark(batch.revision, {"k8s.io/initial-events-end": "true"}))
        pieces: list[bytes] = []
        waiting: list[bytes] = []
        size_bytes = 0
        for frame in frames:
            waiting.append(frame)
            size_bytes += len(frame)
            if size_bytes >= WRITE_MAX_BYTES:
                pieces.append(b"".join(waiting))
                waiting, size_bytes = [], 0
        return [*pieces, b"".join(waiting)]

    def bookmark(self, revision: int) -> bytes:
        """A bookmark, nothing where the client does not want them."""
        return self._bookmark(revision, {}) if self._sends_bookmarks else b""

    def failure(self, error: StatusError) -> bytes:
        """An ERROR event."""
        return self._framed("ERROR", json_text.encode(error.to_status()))

    def _frame(self, event: EntryEvent) -> bytes:
        if self._call.form.shape == "table":
            return _frame(event.type, self._table_of(event))
        return event.encoded(self._form, self._encode)

    def _encode(self, event: EntryEvent) -> bytes:
        form, served, shaper = self._call.form, self._call.served, self._plane.shaper
        if form.shape != "object":
            hidden = served.resource.hidden_annotations
            bare = response_encoder.partial(shaper.body(served, event.entry), form.meta_version, hidden)
            return self._framed(event.type, bare)
        if form.encoding == "protobuf":
            return protobuf_forms.frame(event.type, shaper.packed(served, event.entry))
        return _frame(event.type, shaper.body(served, event.entry))

    def _framed(self, event_type: str, body: bytes) -> bytes:
        """A frame around an object's JSON in the encoding that the client wants."""
        packed = protobuf_forms.of_json(body) if self._call.form.encoding == "protobuf" else None
        return _frame(event_type, body) if packed is None else protobuf_forms.frame(event_type, packed)

    def _table_of(self, event: EntryEvent) -> bytes:
        row = rendering.table_row(self._plane, self._call, event.entry)
        return self._table({"resourceVersion": str(event.entry.revision)}, [row])

    def _table(self, metadata: Object, rows: list[Object]) -> bytes:
        columns, self._columns = self._columns, None
        return response_encoder.table(metadata, columns, rows, self._call.form.meta_version)

    def _bookmark(self, revision: int, annotations: Object) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        served, form = self._call.served, self._call.form
        if form.shape == "object":
            typed = {"kind": served.resource.kind, "apiVersion": served.api_version, "metadata": metadata}
            return self._framed(
                "BOOKMARK", json_text.encode({**typed, **zero_objects.fields_of(served.version.message)})
            )
        bare = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{form.meta_version}",
            "metadata": metadata,
        }
        if form.shape == "table":
            rows = [{"cells": [], "object": bare}] if annotations else []
            return _frame("BOOKMARK", self._table({"resourceVersion": str(revision)}, rows))
        return self._framed("BOOKMARK", json_text.encode(bare))


def _frame(event_type: str, body: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + body + b"}\n"
