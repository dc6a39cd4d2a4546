"""Builds responses with one object or with a page of a list, in the negotiated form (JSON, Table, ...).

The handlers of reads, writes, scales and deletes call it, and `streaming.watch_streams` for rows and conversions.
`response_encoder` has the JSON of each form. A new form: a branch in `object_response` and `_table_or_partial`, or in
`list_response`.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from podscaler.api.resource.resources import Object, Printer
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.http import protobuf_encoding, response_encoder, responses
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.response_encoder import IncludeObject
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ListPage

_ENTRIES_PER_SLICE = 200
"""How many entries of a list are encoded before the event loop may run other tasks: some milliseconds."""

_MESSAGES_PER_SLICE = 40
"""The same where each may have to be encoded as protobuf."""

Encoded = TypeVar("Encoded")


async def object_response(
    server: ServerContext, request: ResourceRequest, entry: Entry, *, status: int = 200
) -> EncodedResponse:
    """A response with one object.

    Raises StatusError 406 for a form that only lists have, 400 for an unknown `includeObject`, 500 as
    `convert_by_webhook`.
    """
    served, form = request.served, request.form
    response_encoder.check_single(served, form)
    await convert_by_webhook(server, request, [entry])
    if form.encoding == "protobuf" and form.shape == "object":
        return responses.from_protobuf(server.encoder.protobuf_body(served, entry), status)
    body = server.encoder.body(served, entry)
    if form.shape != "object":
        resource_version = str(entry.revision) if entry.revision else ""
        printer = served.resource.printer
        body = _table_or_partial(request, body, resource_version, printer, lambda: table_row(server, request, entry))
    return await responses.from_json(body, form, status=status)


async def convert_by_webhook(server: ServerContext, request: ResourceRequest, entries: Iterable[Entry]) -> None:
    """Call the webhook that converts entries to the version served, if there is one: once for all of them.

    Its results are kept for the later conversions of the request. Raises StatusError 500 if the call fails.
    """
    find_missing = request.served.version.find_missing
    if find_missing is None:
        return

    def check_converted() -> None:
        conversion_needed = find_missing(entry.decode() for entry in entries)
        if conversion_needed is not None:
            raise conversion_needed  # `Objects.converted` calls the webhook, then this again

    await server.objects.converted(check_converted)


def _table_or_partial(
    request: ResourceRequest, body: bytes, resource_version: str, printer: Printer, make_row: Callable[[], Object]
) -> bytes:
    """PartialObjectMetadata of an object's JSON (`body`), or a Table with its one row, as `request.form` says.

    `resource_version` may be empty; `printer` has the columns, `make_row` makes the row.
    """
    if request.form.shape == "partial":
        return _partial(request, body)
    metadata = {"resourceVersion": resource_version} if resource_version else {}
    columns = response_encoder.columns(printer)
    return response_encoder.table(metadata, columns, [make_row()], request.form.meta_version)


async def list_response(server: ServerContext, request: ResourceRequest, list_page: ListPage) -> EncodedResponse:
    """A response with a list. Raises as `object_response`, with 406 for a form that only single objects have."""
    response_encoder.check_list(request.served, request.form)
    await convert_by_webhook(server, request, list_page.entries)
    if request.form.shape == "table":
        printer = request.served.resource.printer
        rows = await _encode_in_slices(lambda entry: table_row(server, request, entry), list_page.entries)
        body = response_encoder.table(
            response_encoder.list_metadata(list_page),
            response_encoder.columns(printer),
            rows or (None if printer.empty_is_null else []),  # as upstream, whose printers differ in this
            request.form.meta_version,
        )
        return await responses.from_json(body, request.form)
    if request.form.encoding == "protobuf" and request.form.shape == "object":
        return responses.from_protobuf(await _protobuf_list(server, request, list_page))
    bodies = await _encode_in_slices(lambda entry: server.encoder.body(request.served, entry), list_page.entries)
    if request.form.shape == "partial_list":
        hidden = request.served.resource.hidden_annotations
        body = response_encoder.partial_list(bodies, list_page, request.form.meta_version, hidden)
    else:
        body = response_encoder.list_body(request.served, bodies, list_page)
    return await responses.from_json(body, request.form)


async def _protobuf_list(server: ServerContext, request: ResourceRequest, list_page: ListPage) -> bytes:
    """The protobuf body of a list, in its envelope."""
    served = request.served
    items = await _encode_in_slices(
        lambda entry: server.encoder.protobuf_message(served, entry), list_page.entries, _MESSAGES_PER_SLICE
    )
    kind = served.resource.list_kind
    return protobuf_encoding.encode_list(served.api_version, kind, response_encoder.list_metadata(list_page), items)


async def _encode_in_slices(
    encode: Callable[[Entry], Encoded], entries: Sequence[Entry], slice_entries: int = _ENTRIES_PER_SLICE
) -> list[Encoded]:
    """The results of `encode` for all entries, made in slices between which the event loop runs other tasks."""
    encoded: list[Encoded] = []
    for start in range(0, len(entries), slice_entries):
        encoded += map(encode, entries[start : start + slice_entries])
        if start + slice_entries < len(entries):
            await asyncio.sleep(0)
    return encoded


def table_row(server: ServerContext, request: ResourceRequest, entry: Entry) -> Object:
    """The row of an entry, with as much of the object as the parameter `includeObject` says."""
    object_json = _object_in_row(server.encoder.body(request.served, entry), request)
    return response_encoder.row(
        request.served.resource.printer, entry.decode(), now_ns=server.clock.now_ns(), object_json=object_json
    )


def _object_in_row(body: bytes, request: ResourceRequest) -> bytes | None:
    """The JSON of the object in a row of a Table, None for null; `body` is the JSON of the whole object."""
    include: IncludeObject = response_encoder.include_object(request.query.text("includeObject"))
    if include == "None":
        return None
    return body if include == "Object" else _partial(request, body)


def _partial(request: ResourceRequest, body: bytes) -> bytes:
    """The PartialObjectMetadata of an object's JSON."""
    return response_encoder.partial(body, request.form.meta_version, request.served.resource.hidden_annotations)


async def unstored_object_response(
    server: ServerContext, request: ResourceRequest, obj: Object, printer: Printer
) -> EncodedResponse:
    """A response with an object that is not stored as such, and needs no conversion (a Scale).

    Raises StatusError 406 for a form that only lists have, 400 for an unknown `includeObject`.
    """
    group, _, _ = obj["apiVersion"].partition("/")
    response_encoder.check_single(request.served, request.form, f"{group}.{obj['kind']}")
    body = json_text.encode(obj)
    if request.form.shape != "object":

        def make_row() -> Object:
            object_json = _object_in_row(body, request)
            return response_encoder.row(printer, obj, now_ns=server.clock.now_ns(), object_json=object_json)

        body = _table_or_partial(request, body, obj["metadata"].get("resourceVersion", ""), printer, make_row)
    return await responses.from_json(body, request.form)
