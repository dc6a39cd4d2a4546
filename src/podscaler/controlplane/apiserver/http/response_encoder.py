"""Encodes stored entries for responses: objects in the requested version, Tables, PartialObjectMetadata, lists.

`object_responses` and `streaming.watch_streams` call it. An object that is served in its storage version is sent as the
stored bytes; converted objects are cached by version. A Table has a row of printed columns for each object (`kubectl
get`), a PartialObjectMetadata only the metadata.

A new form: a function here; `negotiation` says where it is chosen and called.

Source: the API concepts on Table and PartialObjectMetadata.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from podscaler.api.protobuf import protobuf
from podscaler.api.resource.resources import Object, Printer, Version
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.http import http_errors, protobuf_encoding
from podscaler.controlplane.apiserver.http.negotiation import Form
from podscaler.controlplane.apiserver.http.routes import ServedResource
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ListPage

IncludeObject = Literal["None", "Metadata", "Object"]
CACHE_MAX_ENTRIES = 1024
_NO_CONVERSION = Version("", "").from_storage
"""The conversion of a version that needs none: the stored bytes are sent."""


class _MetadataOnly(msgspec.Struct, gc=False):
    """The metadata of an object as JSON; the decoder skips all else."""

    metadata: msgspec.Raw


_decode_metadata = msgspec.json.Decoder(_MetadataOnly).decode


class ResponseEncoder:
    """Encodes entries as JSON and protobuf; caches the last `CACHE_MAX_ENTRIES` that had to be converted."""

    def __init__(self) -> None:
        self._converted: OrderedDict[tuple[ServedResource, bytes], bytes] = OrderedDict()
        self._messages = protobuf_encoding.MessageCache()

    def body(self, served: ServedResource, entry: Entry) -> bytes:
        """The object as JSON in the version served."""
        if served.is_storage_version and served.version.from_storage is _NO_CONVERSION:
            return entry.body
        if served.version.find_missing is not None:  # a webhook converts it: its results are kept for one request only
            return json_text.encode(served.version.from_storage(entry.decode()))
        key = (served, entry.body)
        body = self._converted.get(key)
        if body is None:
            body = self._converted[key] = json_text.encode(served.version.from_storage(entry.decode()))
            if len(self._converted) > CACHE_MAX_ENTRIES:
                self._converted.popitem(last=False)
        return body

    def protobuf_message(self, served: ServedResource, entry: Entry) -> bytes:
        """The object as a protobuf message of the version served, without an envelope."""
        return self._messages.encode(self.body(served, entry), served.version.message)

    def protobuf_body(self, served: ServedResource, entry: Entry) -> bytes:
        """The object as a protobuf body of the version served, in its envelope."""
        message = self.protobuf_message(served, entry)
        return protobuf.envelope(message, served.api_version, served.resource.kind)


def list_body(served: ServedResource, bodies: Sequence[bytes], page: ListPage) -> bytes:
    """A List of objects (their JSON) in the version served.

    As kube-apiserver's, items of built-in kinds have neither kind nor apiVersion; items of custom resources keep both,
    and their lists have an empty `continue`.
    """
    kind, metadata = served.resource.list_kind, list_metadata(page)
    if served.resource.is_custom:
        return _list_json(kind, served.api_version, {"continue": "", **metadata}, bodies)
    prefixes = _type_prefixes(served)
    return _list_json(kind, served.api_version, metadata, (_without_type_meta(body, prefixes) for body in bodies))


def _list_json(kind: str, api_version: str, metadata: Object, items: Iterable[bytes]) -> bytes:
    """The JSON of a List with `items`, each the JSON of an object."""
    head = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{json_text.encode(metadata).decode()},'
    return head.encode() + b'"items":[' + b",".join(items) + b"]}"


def _type_prefixes(served: ServedResource) -> tuple[bytes, ...]:
    """The two beginnings that the JSON of an object can have: kind and apiVersion, in either order."""
    kind, version = f'"kind":"{served.resource.kind}"', f'"apiVersion":"{served.api_version}"'
    return (f"{{{kind},{version},".encode(), f"{{{version},{kind},".encode())


def _without_type_meta(body: bytes, prefixes: tuple[bytes, ...]) -> bytes:
    """The JSON of an object without the kind and apiVersion at its beginning."""
    for prefix in prefixes:
        if body.startswith(prefix):
            return b"{" + body[len(prefix) :]
    return body


def list_metadata(page: ListPage) -> Object:
    """The ListMeta of a page; lists of computed objects (revision 0) have no resourceVersion."""
    metadata: Object = {"resourceVersion": str(page.revision)} if page.revision else {}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def partial(body: bytes, meta_version: str, hidden: frozenset[str] = frozenset()) -> bytes:
    """The PartialObjectMetadata of an object's JSON, without the annotations that are `hidden`."""
    metadata = bytes(_decode_metadata(body).metadata)
    if any(name.encode() in metadata for name in hidden):  # decoded only if it may have one
        metadata = json_text.encode(_without_annotations(msgspec.json.decode(metadata), hidden))
    head = f'{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{meta_version}","metadata":'
    return head.encode() + metadata + b"}"


def _without_annotations(metadata: Object, hidden: frozenset[str]) -> Object:
    """The metadata without the annotations that are `hidden`; without any other, the field is left out."""
    all_annotations = metadata.get("annotations") or {}
    annotations = {name: content for name, content in all_annotations.items() if name not in hidden}
    if annotations:
        return {**metadata, "annotations": annotations}
    return {name: content for name, content in metadata.items() if name != "annotations"}


def partial_list(
    bodies: Sequence[bytes], page: ListPage, meta_version: str, hidden: frozenset[str] = frozenset()
) -> bytes:
    """The PartialObjectMetadataList of objects' JSON; without objects its `items` are null, as kube-apiserver's."""
    kind, api_version = "PartialObjectMetadataList", f"meta.k8s.io/{meta_version}"
    if not bodies:
        return json_text.encode(
            {"kind": kind, "apiVersion": api_version, "metadata": list_metadata(page), "items": None}
        )
    return _list_json(kind, api_version, list_metadata(page), (partial(body, meta_version, hidden) for body in bodies))


def check_single(served: ServedResource, form: Form, go_type: str = "") -> None:
    """Check that one object can be sent in `form`; `go_type` is its Go type, if not that of the resource.

    Raises StatusError 406 for PartialObjectMetadataList.
    """
    if form.shape == "partial_list":
        raise http_errors.not_acceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            f"(*{go_type or _go_type(served)})"
        )


def check_list(served: ServedResource, form: Form) -> None:
    """Check that a list can be sent in `form`. Raises StatusError 406 for PartialObjectMetadata."""
    if form.shape == "partial":
        raise http_errors.not_acceptable(
            f"you requested PartialObjectMetadata, but the requested object is a list (*{_go_type(served)}List)"
        )


def _go_type(served: ServedResource) -> str:
    """The internal Go type of objects; for a kind that is served in two groups, that of its storage group."""
    resource = served.resource
    if resource.is_custom:
        return "unstructured.Unstructured"
    group = resource.stored_as.partition(".")[2] if resource.stored_as else resource.group
    return f"{group.partition('.')[0] or 'core'}.{resource.kind}"


def include_object(parameter: str) -> IncludeObject:
    """How much of its object a row of a Table has, from the query parameter `includeObject` (default Metadata).

    Raises StatusError 400 for an unknown value.
    """
    match parameter:
        case "":
            return "Metadata"
        case "None" | "Metadata" | "Object":
            return parameter
        case _:
            problem = f"includeObject: Invalid value: \"{parameter}\": must be 'Metadata', 'Object', 'None', or empty"
            raise http_errors.bad_request(f"Unable to convert to Table as requested: {problem}")


def columns(printer: Printer) -> list[Object]:
    """The column definitions of a Table."""
    fields = ("name", "type", "format", "description", "priority")
    return [{field: getattr(column, field) for field in fields} for column in printer.columns]


def row(printer: Printer, obj: Object, *, now_ns: int, object_json: bytes | None) -> Object:
    """One row of a Table.

    Args:
        printer: makes the cells of the kind.
        obj: the object in its storage version.
        now_ns: the wall clock, for ages.
        object_json: the JSON of the object in the row, None for null.
    """
    conditions = printer.conditions(obj)
    return {
        "cells": printer.row(obj, now_ns),
        **({"conditions": conditions} if conditions else {}),
        "object": None if object_json is None else msgspec.Raw(object_json),
    }


def table(metadata: Object, definitions: list[Object] | None, rows: list[Object] | None, meta_version: str) -> bytes:
    """A Table as JSON; `definitions` is None in the later events of a watch, `rows` None for null."""
    return json_text.encode(
        {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{meta_version}",
            "metadata": metadata,
            "columnDefinitions": definitions,
            "rows": rows,
        }
    )
