"""Answers that hold objects: one, or a page of them, in the form that the client wants.

Called by the handlers of reads, writes and deletes.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from podscaler.api.resource.resources import Object, Printer
from podscaler.api.text import json_text
from podscaler.base.clock import Clock
from podscaler.controlplane.apiserver.http import protobuf_forms, response_encoder, responses
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.response_encoder import IncludeObject
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ListPage

ENTRIES_A_TURN = 200
"""How many entries of a list are looked at before others get their turn on the event loop: some milliseconds."""

MESSAGES_A_TURN = 40
"""The same where each may have to be made into a message."""

Made = TypeVar("Made")


async def one(
    plane: Plane, call: ResourceRequest, entry: Entry, *, status: int = 200, warnings: tuple[str, ...] = ()
) -> EncodedResponse:
    """An object.

    Raises:
        StatusError: 406 for a form that only lists have, 400 for a Table option that does not exist.
    """
    if call.form.encoding == "protobuf" and call.form.shape == "object":
        response_encoder.check_single(call.served, call.form)
        return responses.of_protobuf(plane.shaper.packed(call.served, entry), status)
    return await responses.of_json(one_body(plane, call, entry), call.form, status=status)


def one_body(plane: Plane, call: ResourceRequest, entry: Entry) -> bytes:
    """The JSON of an object in the form that the client wants. Raises as `one`."""
    response_encoder.check_single(call.served, call.form)
    body = plane.shaper.body(call.served, entry)
    if call.form.shape == "partial":
        return _partial(call, body)
    if call.form.shape == "table":
        metadata = {"resourceVersion": str(entry.revision)} if entry.revision else {}
        return _table(call, metadata, [table_row(plane, call, entry)])
    return body


async def page(plane: Plane, call: ResourceRequest, found: ListPage) -> EncodedResponse:
    """A list. Raises as `one`, with 406 for a form that only single objects have."""
    response_encoder.check_list(call.served, call.form)
    if call.form.shape == "table":
        rows = await _in_turns(lambda entry: table_row(plane, call, entry), found.entries)
        return await responses.of_json(_table(call, response_encoder.list_metadata(found), rows), call.form)
    if call.form.encoding == "protobuf" and call.form.shape == "object":
        return responses.of_protobuf(await _packed_list(plane, call, found))
    bodies = await _in_turns(lambda entry: plane.shaper.body(call.served, entry), found.entries)
    if call.form.shape == "partial_list":
        hidden = call.served.resource.hidden_annotations
        body = response_encoder.partial_list(bodies, found, call.form.meta_version, hidden)
    else:
        body = response_encoder.list_body(call.served, bodies, found)
    return await responses.of_json(body, call.form)


async def _packed_list(plane: Plane, call: ResourceRequest, found: ListPage) -> bytes:
    served = call.served
    items = await _in_turns(lambda entry: plane.shaper.raw(served, entry), found.entries, MESSAGES_A_TURN)
    kind = f"{served.resource.kind}List"
    return protobuf_forms.listed(served.api_version, kind, response_encoder.list_metadata(found), items)


async def _in_turns(
    make: Callable[[Entry], Made], entries: Sequence[Entry], at_once: int = ENTRIES_A_TURN
) -> list[Made]:
    """`make` of every entry, with breaks in which others get their turn on the event loop."""
    made: list[Made] = []
    for start in range(0, len(entries), at_once):
        made += map(make, entries[start : start + at_once])
        if start + at_once < len(entries):
            await asyncio.sleep(0)
    return made


def table_row(plane: Plane, call: ResourceRequest, entry: Entry) -> Object:
    """The row of an entry, with as much of the object as the query says."""
    shown = shown_object(plane.shaper.body(call.served, entry), call)
    return response_encoder.row(call.served.resource.printer, entry.decode(), now_ns=plane.clock.now_ns(), shown=shown)


def shown_object(body: bytes, call: ResourceRequest) -> bytes | None:
    """What a row carries of its object (JSON), as the query says."""
    wanted: IncludeObject = response_encoder.include_object(call.query.text("includeObject"))
    if wanted == "None":
        return None
    return body if wanted == "Object" else _partial(call, body)


def _partial(call: ResourceRequest, body: bytes) -> bytes:
    return response_encoder.partial(body, call.form.meta_version, call.served.resource.hidden_annotations)


def _table(call: ResourceRequest, metadata: Object, rows: list[Object]) -> bytes:
    printer = call.served.resource.printer
    listed = rows or (None if printer.empty_is_null else [])
    return response_encoder.table(metadata, response_encoder.columns(printer), listed, call.form.meta_version)


async def plain_object(
    call: ResourceRequest, obj: Object, printer: Printer, *, clock: Clock, warnings: tuple[str, ...] = ()
) -> EncodedResponse:
    """An object that is no entry (a Scale), which is also its own storage form.

    Raises:
        StatusError: as `one`.
    """
    response_encoder.check_single(call.served, call.form, f"{obj['apiVersion'].partition('/')[0]}.{obj['kind']}")
    body = json_text.encode(obj)
    if call.form.shape == "partial":
        body = response_encoder.partial(body, call.form.meta_version)
    elif call.form.shape == "table":
        version = obj["metadata"].get("resourceVersion")
        row = response_encoder.row(printer, obj, now_ns=clock.now_ns(), shown=shown_object(body, call))
        metadata = {"resourceVersion": version} if version else {}
        body = response_encoder.table(metadata, response_encoder.columns(printer), [row], call.form.meta_version)
    return await responses.of_json(body, call.form)
