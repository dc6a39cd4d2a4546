"""Serves watches over HTTP: encodes events as JSON lines or protobuf frames and streams them until the timeout.

`dispatch` calls `OpenStreams.watch`, `handlers.remote_proxy` `until_stopped`, `app` `end` and `stop`; aiohttp cancels
the handler of a client that disconnects. An event is the line {"type": "MODIFIED", "object": {...}}. Each event is
encoded once for each form (API version, encoding, PartialObjectMetadata) and shared by all watchers of that form; the
events of one batch are sent in one write. A new form: in `_EventEncoder._encode_change` and `_bookmark`.

Source: the API concepts on watches and bookmarks; a watch from a compacted revision gets a 200 and an ERROR event.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from random import Random

from aiohttp import web

from podscaler.api.crd import webhook_conversion
from podscaler.api.resource.resources import Object
from podscaler.api.schema import canonical, schema
from podscaler.api.text import json_text
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import (
    http_errors,
    object_responses,
    open_sessions,
    protobuf_encoding,
    query_options,
    response_encoder,
)
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.streaming_response import StreamingResponse
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.watching import EntryEvent, EventBatch, Subscription, WatchEnded

DEFAULT_TIMEOUT_MIN_S = 1800.0
"""A watch without `timeoutSeconds` ends after this to twice this time."""
BOOKMARK_PERIOD_S = 60.0
WRITE_MAX_BYTES = 1 << 20
"""A batch is written in pieces of about this size, so that a slow but reading client does not hit the write timeout."""


class OpenStreams:
    """The open watches, and other streams that must end at shutdown.

    Args:
        random: varies the default timeout of watches, so that clients do not reconnect all at once.
    """

    def __init__(self, random: Random | None = None) -> None:
        self._open_tasks: set[asyncio.Task[object]] = set()
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._random = random or Random()
        self._is_stopping = False

    async def watch(self, server: ServerContext, request: ResourceRequest) -> web.StreamResponse:
        """Stream the events that the request selects; returns when the stream has ended.

        Raises StatusError 400, 406, 422, 500, 504, before the response starts; later errors are ERROR events.
        """
        if request.form.encoding == "yaml":
            raise http_errors.no_such_stream()
        timeout_s = request.query.number("timeoutSeconds") or DEFAULT_TIMEOUT_MIN_S * (1 + self._random.random())
        response_encoder.include_object(request.query.text("includeObject"))  # an invalid one is an error now
        list_options = _list_options(request)
        encoder = _EventEncoder(server, request, list_options)
        subscription = _subscribe(server, request, list_options)
        content_type = protobuf_encoding.STREAM_TYPE if request.form.encoding == "protobuf" else "application/json"
        async with StreamingResponse(request.http, content_type, request.warnings) as stream:
            with self._registered_subscription(request.served.resource.storage_key, subscription):
                await self.until_stopped(_stream_events(stream, encoder, subscription, timeout_s))
        return stream.response

    def end(self, storage_key: str) -> None:
        """End the watches of a kind that is served differently now, or no more; their clients watch again."""
        for subscription in self._subscriptions.get(storage_key, ()):
            subscription.end()

    @contextmanager
    def _registered_subscription(self, storage_key: str, subscription: Subscription | StatusError) -> Iterator[None]:
        """Let `end` find a subscription while its stream is served."""
        if isinstance(subscription, StatusError):  # the stream has no events
            yield
            return
        subscriptions = self._subscriptions.setdefault(storage_key, set())
        subscriptions.add(subscription)
        try:
            yield
        finally:
            subscriptions.discard(subscription)
            if not subscriptions and self._subscriptions.get(storage_key) is subscriptions:
                del self._subscriptions[storage_key]

    async def until_stopped(self, running: Coroutine[None, None, None]) -> None:
        """Run `running`, in the current task, to its end or until `stop`, whose cancellation does not escape."""
        task = asyncio.current_task()
        assert task is not None
        self._open_tasks.add(task)
        try:
            await running
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            task.uncancel()
        finally:
            self._open_tasks.discard(task)

    async def stop(self) -> None:
        """Cancel every stream; returns when they have ended, or after `open_sessions.STOP_TIMEOUT_S`."""
        self._is_stopping = True
        await open_sessions.cancel(self._open_tasks)


def _list_options(request: ResourceRequest) -> ListOptions:
    """The options of the watch; the deprecated path `watch/.../NAME` selects one object by its name."""
    options = query_options.list_options(request.query)
    if not request.path.name:
        return options
    name_selector = f"metadata.name={request.path.name}"
    return replace(options, field_selector=",".join(filter(None, (name_selector, options.field_selector))))


def _subscribe(server: ServerContext, request: ResourceRequest, options: ListOptions) -> Subscription | StatusError:
    """The subscription, or the 410 of a compacted revision, which is sent as an event. Raises other StatusErrors."""
    try:
        return server.objects.watch(request.resource_key, request.path.namespace, options=options)
    except StatusError as error:
        if error.code != 410:
            raise
        return error


async def _stream_events(
    stream: StreamingResponse, encoder: "_EventEncoder", subscription: Subscription | StatusError, timeout_s: float
) -> None:
    """Send events until the timeout (then a bookmark), an error (then an ERROR event), or the end of the kind."""
    if isinstance(subscription, StatusError):
        await stream.write(encoder.error(subscription))
        return
    try:
        async with asyncio.timeout(timeout_s):
            await _send_events(stream, encoder, subscription)
    except TimeoutError:
        await stream.write(encoder.bookmark(subscription.revision))
    except WatchEnded:
        return
    except StatusError as error:
        await stream.write(encoder.error(error))


async def _send_events(stream: StreamingResponse, encoder: "_EventEncoder", subscription: Subscription) -> None:
    """Send events as they come, and a bookmark where there was none for a while."""
    if not encoder.needs_webhook:
        subscription.receiver = _Receiver(stream, encoder)
    with _BookmarkTimer(subscription) as bookmarks:
        while True:
            batch = await subscription.batch()
            with webhook_conversion.scope(is_new=True):
                await encoder.convert_by_webhook(batch)
                pieces = encoder.pieces(batch)
            for piece in pieces:
                await stream.write(piece)
            if bookmarks.is_due and not batch.events:
                bookmarks.restart()
                await stream.write(encoder.bookmark(subscription.revision))


class _Receiver:
    """Writes batches at the commit, without waking the task of the stream, while the client reads fast enough.

    Implements `podscaler.controlplane.storage.watching.Receiver`.
    """

    def __init__(self, stream: StreamingResponse, encoder: "_EventEncoder") -> None:
        self._stream = stream
        self._encoder = encoder

    def has_room(self) -> bool:
        """Whether a batch can be written without waiting."""
        return self._stream.is_idle

    def take(self, batch: EventBatch) -> None:
        """Write a batch; an empty chunk would end the response."""
        if data := b"".join(self._encoder.pieces(batch)):
            self._stream.push(data)


class _BookmarkTimer:
    """The timer of bookmarks, which are due `BOOKMARK_PERIOD_S` after the last one and sent when nothing else is.

    There is one timer for each bookmark, not for each wait for events, as most waits are much shorter.
    """

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._timer: asyncio.TimerHandle | None = None
        self.is_due = False

    def __enter__(self) -> "_BookmarkTimer":
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def restart(self) -> None:
        """Start the timer of the next bookmark."""
        self.is_due = False
        self._timer = asyncio.get_running_loop().call_later(BOOKMARK_PERIOD_S, self._set_due)

    def _set_due(self) -> None:
        """Let the stream send a bookmark."""
        self.is_due = True
        self._subscription.interrupt()


class _EventEncoder:
    """Encodes the events of one watch in its form; only the first Table has column definitions."""

    def __init__(self, server: ServerContext, request: ResourceRequest, options: ListOptions) -> None:
        self._server = server
        self._request = request
        self._sends_bookmarks = bool(request.query.flag("allowWatchBookmarks"))
        # as kube-apiserver, also without the parameter sendInitialEvents
        self._marks_initial_events_end = self._sends_bookmarks and options.send_initial_events is not False
        self._cache_key = f"{request.served.api_version} {request.form}"
        self._columns: list[Object] | None = response_encoder.columns(request.served.resource.printer)

    @property
    def needs_webhook(self) -> bool:
        """Whether a conversion webhook has to be called before events can be encoded."""
        return self._request.served.version.find_missing is not None

    async def convert_by_webhook(self, batch: EventBatch) -> None:
        """Call the webhook that converts the objects of a batch, if there is one. Raises StatusError 500."""
        if self.needs_webhook:
            await object_responses.convert_by_webhook(
                self._server, self._request, [event.entry for event in batch.events]
            )

    def pieces(self, batch: EventBatch) -> list[bytes]:
        """The encoded events of a batch, joined into pieces of about `WRITE_MAX_BYTES`; the last one may be empty."""
        if self._request.form.shape == "partial_list":
            return []  # no event is a list: as kube-apiserver, none is sent
        frames = [self._encode_change(event) for event in batch.events]
        if len(frames) == 1 and not batch.initial_done:  # the usual case, without a copy
            return frames
        if batch.initial_done and self._marks_initial_events_end:
            frames.append(self._bookmark(batch.revision, {"k8s.io/initial-events-end": "true"}))
        full_pieces: list[bytes] = []
        piece_frames: list[bytes] = []
        piece_bytes = 0
        for frame in frames:
            piece_frames.append(frame)
            piece_bytes += len(frame)
            if piece_bytes >= WRITE_MAX_BYTES:
                full_pieces.append(b"".join(piece_frames))
                piece_frames, piece_bytes = [], 0
        return [*full_pieces, b"".join(piece_frames)]

    def bookmark(self, revision: int) -> bytes:
        """A bookmark; empty without `allowWatchBookmarks` in the query."""
        return self._bookmark(revision, {}) if self._sends_bookmarks else b""

    def error(self, error: StatusError) -> bytes:
        """An ERROR event."""
        return self._encode_event("ERROR", json_text.encode(error.to_status()))

    def _encode_change(self, event: EntryEvent) -> bytes:
        """The bytes of one event; only those of Tables are not shared with other watchers."""
        if self._request.form.shape == "table":
            return _json_event(event.type, self._table_event(event))
        return event.encoded(self._cache_key, self._encode)

    def _encode(self, event: EntryEvent) -> bytes:
        """The bytes of one event in the negotiated form."""
        form, served, encoder = self._request.form, self._request.served, self._server.encoder
        if form.shape != "object":
            hidden = served.resource.hidden_annotations
            partial_object = response_encoder.partial(encoder.body(served, event.entry), form.meta_version, hidden)
            return self._encode_event(event.type, partial_object)
        if form.encoding == "protobuf":
            return protobuf_encoding.encode_watch_event(event.type, encoder.protobuf_body(served, event.entry))
        return _json_event(event.type, encoder.body(served, event.entry))

    def _encode_event(self, event_type: str, body: bytes) -> bytes:
        """An event with an object's JSON, in the encoding of the watch."""
        protobuf_body = protobuf_encoding.from_json(body) if self._request.form.encoding == "protobuf" else None
        if protobuf_body is None:
            return _json_event(event_type, body)
        return protobuf_encoding.encode_watch_event(event_type, protobuf_body)

    def _table_event(self, event: EntryEvent) -> bytes:
        """The JSON of the Table with the one row of an event's object."""
        row = object_responses.table_row(self._server, self._request, event.entry)
        return self._table({"resourceVersion": str(event.entry.revision)}, [row])

    def _table(self, metadata: Object, rows: list[Object]) -> bytes:
        """The JSON of a Table; only the first one of the watch has column definitions."""
        columns, self._columns = self._columns, None
        return response_encoder.table(metadata, columns, rows, self._request.form.meta_version)

    def _bookmark(self, revision: int, annotations: Object) -> bytes:
        """The bytes of a bookmark: an object with nothing but its resourceVersion and maybe annotations."""
        metadata: Object = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        served, form = self._request.served, self._request.form
        if form.shape == "object":
            typed = {"kind": served.resource.kind, "apiVersion": served.api_version, "metadata": metadata}
            return self._encode_event("BOOKMARK", json_text.encode({**typed, **zero_fields(served.version.message)}))
        partial_object = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{form.meta_version}",
            "metadata": metadata,
        }
        if form.shape == "table":
            rows = [{"cells": [], "object": partial_object}] if annotations else []
            return _json_event("BOOKMARK", self._table({"resourceVersion": str(revision)}, rows))
        return self._encode_event("BOOKMARK", json_text.encode(partial_object))


def _json_event(event_type: str, body: bytes) -> bytes:
    """An event as a line of JSON."""
    return b'{"type":"' + event_type.encode() + b'","object":' + body + b"}\n"


@cache
def zero_fields(message: str) -> Object:
    """The fields of an empty object that Go's encoder does not omit, without metadata; none for an unknown message.

    Bookmarks have them, as clients decode bookmarks as objects of the kind. The result is shared: do not change it.
    """
    if schema.find_message(message) is None:
        return {}
    return {field: content for field, content in canonical.canonical({}, message).items() if field != "metadata"}
