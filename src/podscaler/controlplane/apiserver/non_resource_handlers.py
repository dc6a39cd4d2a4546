"""Paths that are no resources: discovery, version, health, OpenAPI, and our own below `/podscaler`.

`GET /podscaler/NAME` is a document of another part of the control plane. `POST /podscaler/compact`, for those who may
do everything, forgets the history as etcd's compaction does: tests of clients need it.

Called by `app`. Documents are made when first asked for and kept, as bytes, until what is served changes.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver import health, issuer_pages, request_metrics
from podscaler.controlplane.apiserver.discovery import openapi_v2
from podscaler.controlplane.apiserver.discovery.discovery import DiscoveryDocuments
from podscaler.controlplane.apiserver.discovery.openapi_pages import OpenApiPages
from podscaler.controlplane.apiserver.health import Check
from podscaler.controlplane.apiserver.http import http_errors, negotiation, responses
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import Routes
from podscaler.controlplane.apiserver.request_metrics import APIServerMetrics
from podscaler.controlplane.auth.account_tokens import AccountTokens

_AGGREGATOR = "apiregistration.k8s.io"
"""The group that upstream serves by a server before all others, which words refusals in its own way."""

VERSION: Object = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0+podscaler",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
"""What the server claims to be: clients choose features by it."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What the server tells and does about itself.

    Attributes:
        compact: forgets the history of all objects; returns the oldest revision to resume from.
        metrics: what is counted.
        documents: what is served below `/podscaler`, by name; made for each request.
    """

    compact: Callable[[], Awaitable[int]]
    metrics: APIServerMetrics
    documents: Mapping[str, Callable[[], Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Document:
    body: bytes
    etag: str


class Pages:
    """See the module.

    Args:
        routes: what is served.
        discovery: the documents about it.
        openapi: the OpenAPI documents.
        checks: health checks by name.
        upkeep: what the server tells and does about itself.
        accounts: whose keys verify tokens of service accounts.
    """

    def __init__(
        self,
        routes: Routes,
        discovery: DiscoveryDocuments,
        *,
        openapi: OpenApiPages,
        checks: Mapping[str, Check],
        upkeep: Upkeep,
        accounts: AccountTokens | None = None,
    ) -> None:
        self._routes = routes
        self._discovery = discovery
        self._openapi = openapi
        self._checks = checks
        self._upkeep = upkeep
        self._accounts = accounts
        self._documents: dict[tuple[str, ...], _Document] = {}
        self._older_documents: dict[bool, tuple[int, bytes]] = {}
        self._generation = discovery.generation

    async def answer(self, request: web.BaseRequest, path: str, query: Query) -> EncodedResponse:
        """The answer for a path that is no resource's; a page that says 404 for one that is nothing.

        Raises:
            StatusError: 404, 405, 406.
        """
        parts = path.strip("/").split("/")
        match parts[0]:
            case "":
                return await self._json(request, ("",), lambda: {"paths": self._paths()})
            case "api" | "apis":
                return await self._discover(request, parts)
            case "version":
                return await self._version(request, parts)
            case "openapi":
                if parts[1:] == ["v2"]:
                    return await self._openapi_v2(request)
                return await self._openapi.answer(request, parts[1:]) or responses.NOT_FOUND_PAGE
            case ".well-known" | "openid" if self._accounts is not None:
                return _read_only(request, issuer_pages.answer(self._accounts, path, request.host))
            case "podscaler" if len(parts) == 2:
                return await self._own(request, parts[1])
            case "metrics" if not parts[1:]:
                return await self._metrics()
            case "healthz" | "livez" | "readyz" if not path.endswith("/"):
                return health.answer(path, query, self._checks) or responses.NOT_FOUND_PAGE
            case _:
                return responses.NOT_FOUND_PAGE

    async def _version(self, request: web.BaseRequest, parts: list[str]) -> EncodedResponse:
        if parts[1:]:
            raise http_errors.no_such_path()
        _check_get(request)
        negotiation.check_plain(_accept(request))
        return await _tagged(request, self._document(("version",), lambda: VERSION), negotiation.PLAIN)

    async def _discover(self, request: web.BaseRequest, parts: list[str]) -> EncodedResponse:
        found = self._discovery
        match parts:
            case ["api"]:
                _check_get(request)
                return await self._aggregable(request, "api", found.core_versions)
            case ["apis"]:
                return await self._aggregable(request, "apis", found.group_list)
            case ["api", version]:
                return await self._resource_list(request, "", version)
            case ["apis", group]:
                if not group or not found.versions(group):
                    return responses.NOT_FOUND_PAGE
                return await self._json(
                    request, ("apis", group), lambda: found.group(group), is_routed=group == _AGGREGATOR
                )
            case ["apis", group, version] if group:
                return await self._resource_list(request, group, version)
            case _:
                return responses.NOT_FOUND_PAGE

    async def _resource_list(self, request: web.BaseRequest, group: str, version: str) -> EncodedResponse:
        versions = self._discovery.versions(group)
        if not versions:
            return responses.NOT_FOUND_PAGE
        if version not in versions and (self._routes.is_custom(group) or not self._discovery.is_own(group)):
            return responses.NOT_FOUND_PAGE
        if version not in versions:
            raise http_errors.no_such_path()
        _check_get(request)
        return await self._json(
            request, ("resources", group, version), lambda: self._discovery.resource_list(group, version)
        )

    async def _aggregable(self, request: web.BaseRequest, name: str, plain: Callable[[], Object]) -> EncodedResponse:
        form = negotiation.discovery_form(_accept(request), aggregates=True, is_routed=name == "api")
        if form.shape != "discovery":
            return await self._json(request, (name,), plain, is_routed=name == "api")
        document = self._document((name, "aggregated"), lambda: self._discovery.aggregated(core=name == "api"))
        return await _tagged(request, document, form)

    async def _json(
        self, request: web.BaseRequest, key: tuple[str, ...], make: Callable[[], Object], *, is_routed: bool = True
    ) -> EncodedResponse:
        form = negotiation.discovery_form(_accept(request), aggregates=False, is_routed=is_routed)
        return await _tagged(request, self._document(key, make), form)

    async def _metrics(self) -> EncodedResponse:
        metrics = self._upkeep.metrics
        metrics.prepare()
        return EncodedResponse(await asyncio.to_thread(metrics.text), 200, request_metrics.CONTENT_TYPE)

    async def _own(self, request: web.BaseRequest, name: str) -> EncodedResponse:
        if name == "compact":
            return await self._compacted(request)
        if name not in self._upkeep.documents:
            return responses.NOT_FOUND_PAGE
        _check_get(request)
        return await responses.of(self._upkeep.documents[name]())

    async def _compacted(self, request: web.BaseRequest) -> EncodedResponse:
        if request.method != "POST":
            raise http_errors.method_not_allowed()
        return await responses.of({"resourceVersion": str(await self._upkeep.compact())})

    async def _openapi_v2(self, request: web.BaseRequest) -> EncodedResponse:
        takes_protobuf = openapi_v2.PROTOBUF_TYPE in _accept(request)
        make = openapi_v2.protobuf_document if takes_protobuf else openapi_v2.json_document
        generation, kept = self._routes.generation, self._older_documents.get(takes_protobuf)
        if kept is None or kept[0] != generation:
            schemas = await self._openapi.schemas()
            kept = generation, await asyncio.to_thread(make, self._routes, schemas)
            self._older_documents[takes_protobuf] = kept
        return EncodedResponse(kept[1], 200, openapi_v2.ANSWER_TYPE) if takes_protobuf else EncodedResponse(kept[1])

    def _document(self, key: tuple[str, ...], make: Callable[[], Object]) -> _Document:
        generation = self._discovery.generation
        if self._generation != generation:
            self._documents.clear()
            self._generation = generation
        found = self._documents.get(key)
        if found is None:
            body = json_text.encode(make())
            digest = hashlib.sha512(body).hexdigest().upper()
            found = self._documents[key] = _Document(body, f'"{digest}"')
        return found

    def _paths(self) -> list[str]:
        """The paths that the root lists."""
        found = {"/api", "/apis", "/apis/", "/healthz", "/livez", "/metrics", "/readyz", "/version"}
        found |= {"/openapi/v2", "/openapi/v3", "/openapi/v3/"}
        if self._accounts is not None:
            found |= {issuer_pages.CONFIGURATION_PATH, issuer_pages.KEYS_PATH}
        found |= {f"/api/{version}" for version in self._discovery.versions("")}
        for group in self._discovery.groups:
            found.add(f"/apis/{group}")
            found |= {f"/apis/{group}/{version}" for version in self._discovery.versions(group)}
        return sorted(found)


async def _tagged(request: web.BaseRequest, document: _Document, form: negotiation.Form) -> EncodedResponse:
    answer = replace(await responses.of_json(document.body, form), headers={"ETag": document.etag, "Vary": "Accept"})
    if request.headers.get("If-None-Match") == document.etag:
        # kubectl's cache takes the content type of a 304 for that of the answer it kept.
        return replace(answer, body=b"", status=304)
    return answer


def _read_only(request: web.BaseRequest, found: EncodedResponse | None) -> EncodedResponse:
    """The page, if there is one. Raises StatusError 405 for writing to it."""
    if found is None:
        return responses.NOT_FOUND_PAGE
    _check_get(request)
    return found


def _check_get(request: web.BaseRequest) -> None:
    if request.method != "GET":
        raise http_errors.method_not_allowed()


def _accept(request: web.BaseRequest) -> str:
    return request.headers.get("Accept", "")
