"""Serves `/openapi/v3`: the index of OpenAPI v3 documents, and the document of each group and version.

`non_resource_handlers` calls it. All documents are built, in a thread, at the first request for one: the index names
each with the hash of its content, by which clients cache it. They are kept compressed, as most clients accept gzip.
After a change of the routes only the documents of changed groups are built again. A new source of documents: its
builders in `OpenApiV3._builders`.

Source: KEP-2896 (OpenAPI v3): `/openapi/v3` and `/openapi/v3/apis/GROUP/VERSION?hash=...`.
"""

import asyncio
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from podscaler.api.openapi import openapi
from podscaler.api.openapi.openapi import CreateOnly
from podscaler.api.openapi.openapi_definitions import GVK_EXTENSION
from podscaler.api.resource.resources import Resource
from podscaler.api.text import json_text
from podscaler.controlplane.aggregator.remote_versions import METRIC_GROUPS
from podscaler.controlplane.apiserver.http import negotiation
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.apiserver.http.responses import TEXT_TYPE, EncodedResponse
from podscaler.controlplane.apiserver.http.routes import Routes

Builder = Callable[[], Mapping[str, Any]]
"""Builds one document."""


@dataclass(frozen=True, slots=True)
class _Document:
    """One encoded document: compressed, with the hash of its JSON and the function that built it."""

    gzipped: bytes
    digest: str
    build: Builder


class OpenApiV3:
    """The OpenAPI v3 documents of one API server.

    Args:
        resources: the built-in resources.
        create_only: the resources that can only be created.
        routes: the served resources, custom ones included.
        parts: the metrics APIs and the aggregation layer.
    """

    def __init__(
        self, resources: Sequence[Resource], create_only: Sequence[CreateOnly], routes: Routes, parts: ServerParts
    ) -> None:
        self._create_only = create_only
        self._routes = routes
        self._aggregation = parts.aggregation
        self._built_in = openapi.documents(resources, create_only)
        if parts.metrics is not None:
            self._built_in |= openapi.metric_documents(parts.metrics.versions, parts.metrics.list_kinds)
        self._custom: dict[str, tuple[list[Resource], Mapping[str, Builder]]] = {}
        """For each group with custom resources these resources, and the builders of its documents by path."""
        self._documents: dict[str, _Document] = {}
        """By path (`apis/apps/v1`), sorted."""
        self._generation = -1  # of the routes of `_documents`; -1, which no routes have, before they are built
        self._lock = asyncio.Lock()

    async def respond(self, request: web.BaseRequest, path: str) -> EncodedResponse:
        """The index (empty `path`), or the document of a path like `apis/apps/v1`; 404 for an unknown path."""
        documents = await self._current_documents()
        if path:
            document = documents.get(path)
            return await _document_response(request, document) if document else EncodedResponse(b"", 404, TEXT_TYPE)
        own_urls = {
            document_path: f"/openapi/v3/{document_path}?hash={document.digest}"
            for document_path, document in documents.items()
        }
        urls = sorted(self._replace_remote_urls(own_urls).items())
        index = {document_path: {"serverRelativeURL": url} for document_path, url in urls}
        return EncodedResponse(json_text.encode({"paths": index}), 200, TEXT_TYPE)

    async def schemas(self) -> dict[str, Any]:
        """The schemas of all documents by name."""
        return await asyncio.to_thread(_schemas, await self._current_documents())

    def _replace_remote_urls(self, own_urls: dict[str, str]) -> dict[str, str]:
        """The URLs of the documents by path, those of versions that other API servers serve replaced by theirs."""
        if self._aggregation is None:
            return own_urls
        remotes = self._aggregation.remotes
        replaced_prefixes = tuple({f"apis/{group}/" for group in remotes.group_priorities if group in METRIC_GROUPS})
        urls = {path: url for path, url in own_urls.items() if not path.startswith(replaced_prefixes)}
        for remote in remotes.all():
            path, url = remote.path.removeprefix("/"), self._aggregation.documents.of(remote).openapi_url
            urls.pop(path, None)
            if url:
                urls[path] = url
        return urls

    async def _current_documents(self) -> Mapping[str, _Document]:
        """The documents by path, built anew after a change of the routes."""
        async with self._lock:
            generation = self._routes.generation
            if generation != self._generation:
                self._documents = await asyncio.to_thread(_build_documents, self._builders(), self._documents)
                self._generation = generation
            return self._documents

    def _builders(self) -> Mapping[str, Builder]:
        """The builders of all documents by path, sorted; renews `_custom`, in which unchanged groups keep theirs."""
        groups: dict[str, list[Resource]] = {}
        for resource in self._routes.custom_resources():
            groups.setdefault(resource.group, []).append(resource)
        self._custom = {group: self._custom_builders(group, resources) for group, resources in groups.items()}
        builders: dict[str, Builder] = dict(self._built_in)
        for _, group_builders in self._custom.values():
            builders |= group_builders
        return dict(sorted(builders.items()))

    def _custom_builders(self, group: str, custom: list[Resource]) -> tuple[list[Resource], Mapping[str, Builder]]:
        """The custom resources of a group, and the builders of the group's documents; cached while they are the same.

        A group may have built-in resources, too: its documents describe both.
        """
        if group in self._custom:
            cached_resources, cached_builders = self._custom[group]
            is_unchanged = list(map(id, cached_resources)) == list(map(id, custom))  # a changed one has new records
            if is_unchanged:
                return cached_resources, cached_builders
        resources = list({id(resource): resource for resource in self._routes.resources_of(group)}.values())
        builders = openapi.documents(resources, [kind for kind in self._create_only if kind.group == group])
        group_path = f"apis/{group}"
        return custom, {
            path: build for path, build in builders.items() if path == group_path or path.startswith(f"{group_path}/")
        }


def _build_documents(builders: Mapping[str, Builder], cached: Mapping[str, _Document]) -> dict[str, _Document]:
    """The documents of `builders`; those whose builder is the same as in `cached` are reused."""
    return {
        path: cached[path] if path in cached and cached[path].build is build else _build_document(build)
        for path, build in builders.items()
    }


def _build_document(build: Builder) -> _Document:
    """The document that a builder makes, encoded. Slow: to be called in a thread."""
    body = json_text.encode(build())
    return _Document(gzip.compress(body, mtime=0), hashlib.sha512(body).hexdigest().upper(), build)


def _schemas(documents: Mapping[str, _Document]) -> dict[str, Any]:
    """The schemas of all documents by name; one that several documents have is of the kinds that any of them names."""
    all_schemas: dict[str, Any] = {}
    kinds_by_schema: dict[str, dict[tuple[str, ...], Any]] = {}
    for document in documents.values():
        schemas = json.loads(gzip.decompress(document.gzipped)).get("components", {}).get("schemas", {})
        for name, schema in schemas.items():
            for kind in schema.get(GVK_EXTENSION, ()):
                kinds_by_schema.setdefault(name, {})[kind["group"], kind["version"], kind["kind"]] = kind
        all_schemas |= schemas
    for name, kinds in kinds_by_schema.items():
        all_schemas[name][GVK_EXTENSION] = [kinds[key] for key in sorted(kinds)]
    return all_schemas


async def _document_response(request: web.BaseRequest, document: _Document) -> EncodedResponse:
    """The response with a document, compressed if the client accepts gzip, or 304 if it has the document already."""
    etag = f'"{document.digest}"'
    headers = {"ETag": etag, "Vary": "Accept, Accept-Encoding"}
    if request.query_string:  # a URL with the hash never has another content
        headers["Cache-Control"] = "public, immutable, max-age=31536000"
    if request.headers.get("If-None-Match") == etag:
        return EncodedResponse(b"", 304, headers=headers)
    if negotiation.takes_gzip(request.headers):
        return EncodedResponse(document.gzipped, headers={**headers, "Content-Encoding": "gzip"})
    return EncodedResponse(await asyncio.to_thread(gzip.decompress, document.gzipped), headers=headers)
