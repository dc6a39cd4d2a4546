"""How stored entries become what a client asked for: objects of a version, Tables, bare metadata, lists of them.

Called by the handlers that answer with objects and by the watch streams. A plain object in its storage version is the
stored bytes as they are; everything else is made once for each version and shape and kept for a while.

Source: the API concepts on Table and PartialObjectMetadata.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

import msgspec

from podscaler.api.protobuf import protobuf
from podscaler.api.resource.resources import Column, Object, Printer, Version
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.http import http_errors, protobuf_forms
from podscaler.controlplane.apiserver.http.negotiation import Form
from podscaler.controlplane.apiserver.http.routes import Served
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ListPage

IncludeObject = Literal["None", "Metadata", "Object"]
MEMO_MAX_ENTRIES = 1024
SAME = Version("", "").from_storage
"""The conversion of a version that needs none: stored bytes can be sent as they are."""


class _Head(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_decode_head = msgspec.json.Decoder(_Head).decode


class Shaper:
    """Makes bodies of answers out of entries; remembers the last thousand that had to be converted."""

    def __init__(self) -> None:
        self._memo: OrderedDict[tuple[Served, bytes], bytes] = OrderedDict()
        self._protobuf = protobuf_forms.Memo()

    def body(self, served: Served, entry: Entry) -> bytes:
        """The object as JSON in the version served."""
        if served.is_storage_version and served.version.from_storage is SAME:
            return entry.body
        key = (served, entry.body)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = encoded(served, entry.decode())
            if len(self._memo) > MEMO_MAX_ENTRIES:
                self._memo.popitem(last=False)
        return known

    def raw(self, served: Served, entry: Entry) -> bytes:
        """The object as a bare protobuf message of the version served."""
        return self._protobuf.raw(self.body(served, entry), served.version.message)

    def packed(self, served: Served, entry: Entry) -> bytes:
        """The object as a protobuf body in the version served."""
        return protobuf.envelope(self.raw(served, entry), served.api_version, served.resource.kind)


def list_body(served: Served, bodies: Sequence[bytes], page: ListPage) -> bytes:
    """Objects' JSON as a List in the version served; items carry no kind of their own, as upstream's carry none."""
    head = _list_head(f"{served.resource.kind}List", served.api_version, page)
    if served.resource.is_custom:
        return _custom_list(served, bodies, page)
    prefixes = type_prefixes(served)
    return head + b'"items":[' + b",".join(_without_type(body, prefixes) for body in bodies) + b"]}"


def _custom_list(served: Served, bodies: Sequence[bytes], page: ListPage) -> bytes:
    """Custom objects keep saying what they are, and their list says that nothing follows."""
    kind = f"{served.resource.kind}List"
    metadata = json_text.encode({"continue": "", **list_metadata(page)}).decode()
    head = f'{{"kind":"{kind}","apiVersion":"{served.api_version}","metadata":{metadata},'
    return head.encode() + b'"items":[' + b",".join(bodies) + b"]}"


def converted(served: Served, obj: Object) -> Object:
    """A stored object (changed in place) in the version served."""
    return served.version.from_storage(obj)


def encoded(served: Served, obj: Object) -> bytes:
    """A stored object (changed in place) as JSON in the version served."""
    return json_text.encode(converted(served, obj))


def type_prefixes(served: Served) -> tuple[bytes, ...]:
    """How the JSON of an object of this version begins: with kind and apiVersion, in either order."""
    kind, version = f'"kind":"{served.resource.kind}"', f'"apiVersion":"{served.api_version}"'
    return (f"{{{kind},{version},".encode(), f"{{{version},{kind},".encode())


def _without_type(body: bytes, prefixes: tuple[bytes, ...]) -> bytes:
    for prefix in prefixes:
        if body.startswith(prefix):
            return b"{" + body[len(prefix) :]
    return body


def _list_head(kind: str, api_version: str, page: ListPage) -> bytes:
    metadata = json_text.encode(list_metadata(page)).decode()
    return f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},'.encode()


def list_metadata(page: ListPage) -> Object:
    """The ListMeta of a page; computed objects (revision 0) have no resourceVersion."""
    metadata: Object = {"resourceVersion": str(page.revision)} if page.revision else {}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def partial(body: bytes, meta_version: str, hidden: frozenset[str] = frozenset()) -> bytes:
    """An object's JSON reduced to its metadata, without the annotations that are `hidden`."""
    metadata = bytes(_decode_head(body).metadata)
    if any(name.encode() in metadata for name in hidden):
        metadata = json_text.encode(_without_annotations(msgspec.json.decode(metadata), hidden))
    head = f'{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{meta_version}","metadata":'
    return head.encode() + metadata + b"}"


def _without_annotations(metadata: Object, hidden: frozenset[str]) -> Object:
    shown = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in hidden}
    rest = {name: value for name, value in metadata.items() if name != "annotations" or shown}
    return {**rest, "annotations": shown} if shown else rest


def partial_list(
    bodies: Sequence[bytes], page: ListPage, meta_version: str, hidden: frozenset[str] = frozenset()
) -> bytes:
    """Objects' JSON reduced to a list of metadata."""
    head = _list_head("PartialObjectMetadataList", f"meta.k8s.io/{meta_version}", page)
    if not bodies:
        return head + b'"items":null}'
    return head + b'"items":[' + b",".join(partial(body, meta_version, hidden) for body in bodies) + b"]}"


def check_single(served: Served, form: Form, kind: str = "") -> None:
    """Refuse (406) a form that one object cannot have; `kind` is Go's name of what is no object of the resource."""
    if form.shape == "partial_list":
        go_type = f"*{kind or f'{_go_package(served)}.{served.resource.kind}'}"
        raise http_errors.wrong_shape(
            f"you requested PartialObjectMetadataList, but the requested object is not a list ({go_type})"
        )


def check_list(served: Served, form: Form) -> None:
    """Refuse (406) a form that a list cannot have."""
    if form.shape == "partial":
        go_type = f"*{_go_package(served)}.{served.resource.kind}List"
        raise http_errors.wrong_shape(
            f"you requested PartialObjectMetadata, but the requested object is a list ({go_type})"
        )


def _go_package(served: Served) -> str:
    """The package of the internal type, which two faces of a kind share."""
    resource = served.resource
    group = resource.stored_as.partition(".")[2] if resource.stored_as else resource.group
    return group.partition(".")[0] or "core"


def include_object(text: str) -> IncludeObject:
    """What rows of a Table carry of their objects, from the query's text (Metadata where it says nothing).

    Raises:
        StatusError: 400 for anything else.
    """
    match text:
        case "":
            return "Metadata"
        case "None" | "Metadata" | "Object":
            return text
        case _:
            why = f"includeObject: Invalid value: \"{text}\": must be 'Metadata', 'Object', 'None', or empty"
            raise http_errors.bad_request(f"Unable to convert to Table as requested: {why}")


def columns(printer: Printer) -> list[Object]:
    """The column definitions of a Table."""
    return [_column(column) for column in printer.columns]


def _column(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def row(printer: Printer, obj: Object, *, now_ns: int, shown: bytes | None) -> Object:
    """One row of a Table.

    Args:
        printer: how the kind looks.
        obj: the object in its storage version.
        now_ns: for ages.
        shown: what the row carries of the object, as JSON.
    """
    return {"cells": printer.row(obj, now_ns), "object": None if shown is None else msgspec.Raw(shown)}


def table(metadata: Object, definitions: list[Object] | None, rows: list[Object] | None, meta_version: str) -> bytes:
    """A Table as JSON; `rows` is None where an empty one has null for them."""
    return json_text.encode(
        {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{meta_version}",
            "metadata": metadata,
            "columnDefinitions": definitions,
            "rows": rows,
        }
    )
