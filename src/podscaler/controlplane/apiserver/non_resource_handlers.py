"""Handles requests to non-resource URLs: discovery, version, health, metrics, OpenAPI, OpenID configuration.

`dispatch` calls it for paths that name no resource, such as /apis, /healthz and /openapi/v3. `POST /podscaler/compact`
exists in podscaler only: it drops the change log as etcd's compaction does, for tests of clients. Discovery documents
are encoded at the first request and cached until the served resources change.

A new path: a case in `NonResourceHandlers.respond`, and the path in `_paths`.

Source: OpenID Connect Discovery 1.0 as kube-apiserver's service account issuer discovery serves it.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from aiohttp import web

from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver import health_checks, request_metrics
from podscaler.controlplane.apiserver.discovery import openapi_v2
from podscaler.controlplane.apiserver.discovery.discovery import DiscoveryDocuments
from podscaler.controlplane.apiserver.discovery.openapi_v3 import OpenApiV3
from podscaler.controlplane.apiserver.http import http_errors, negotiation, responses
from podscaler.controlplane.apiserver.http.query_options import Query
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import Routes
from podscaler.controlplane.apiserver.request_metrics import APIServerMetrics
from podscaler.controlplane.auth.account_tokens import ISSUER, AccountTokens
from podscaler.controlplane.credentials.signing_key import ALGORITHM

_AGGREGATION_GROUP = "apiregistration.k8s.io"
"""The group whose document kube-apiserver's router serves; that of other groups is served by kube-aggregator."""

ISSUER_CONFIGURATION_PATH = "/.well-known/openid-configuration"
ISSUER_KEYS_PATH = "/openid/v1/jwks"

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
"""The version of /version, by which clients choose features."""


@dataclass(frozen=True, slots=True)
class _Document:
    """An encoded document (JSON) with its ETag."""

    body: bytes
    etag: str


class NonResourceHandlers:
    """The handlers of one API server.

    Args:
        routes: the served resources.
        discovery: the discovery documents.
        openapi: the OpenAPI v3 documents.
        parts: health checks, the issuer of service account tokens, and documents below `/podscaler`.
        compact: drops the change log; returns the compacted revision.
        metrics: the metrics of /metrics.
    """

    def __init__(
        self,
        routes: Routes,
        discovery: DiscoveryDocuments,
        *,
        openapi: OpenApiV3,
        parts: ServerParts,
        compact: Callable[[], Awaitable[int]],
        metrics: APIServerMetrics,
    ) -> None:
        self._routes = routes
        self._discovery = discovery
        self._openapi = openapi
        self._parts = parts
        self._compact = compact
        self._metrics = metrics
        self._documents: dict[tuple[str, ...], _Document] = {}
        """Discovery documents of `_generation`, by the key that the caller of `_cached_document` chooses for each."""
        self._openapi_v2_documents: dict[bool, tuple[int, bytes]] = {}
        """The OpenAPI v2 document as protobuf (True) and JSON (False), each with the generation of its routes."""
        self._generation = discovery.generation

    async def respond(self, request: web.BaseRequest, path: str, query: Query) -> EncodedResponse:
        """The response for a decoded path; a plain-text 404 for an unknown one. Raises StatusError 404, 405, 406."""
        segments = path.strip("/").split("/")
        first_segment, *later_segments = segments
        match first_segment:
            case "":
                return await self._json_response(request, ("",), lambda: {"paths": self._paths()})
            case "api" | "apis":
                return await self._discovery_response(request, segments)
            case "version":
                return await self._version_response(request, later_segments)
            case "openapi" if later_segments == ["v2"]:
                return await self._openapi_v2_response(request)
            case "openapi" if later_segments[:1] == ["v3"]:
                return await self._openapi.respond(request, "/".join(later_segments[1:]))
            case ".well-known" | "openid" if self._parts.accounts is not None:
                return _issuer_discovery(request, self._parts.accounts, path)
            case "podscaler" if len(later_segments) == 1:
                return await self._podscaler_document(request, later_segments[0])
            case "metrics" if not later_segments:
                self._metrics.count_objects()
                return EncodedResponse(await asyncio.to_thread(self._metrics.text), 200, request_metrics.CONTENT_TYPE)
            case "healthz" | "livez" | "readyz" if not path.endswith("/"):
                return health_checks.respond(path, query, self._parts.checks)
            case _:
                return responses.NOT_FOUND_PAGE

    async def _podscaler_document(self, request: web.BaseRequest, name: str) -> EncodedResponse:
        """The response for `/podscaler/NAME`. Raises StatusError 405."""
        if name == "compact":
            if request.method != "POST":
                raise http_errors.method_not_allowed()
            return await responses.encode_object({"resourceVersion": str(await self._compact())})
        if name not in self._parts.documents:
            return responses.NOT_FOUND_PAGE
        _check_get(request)
        return await responses.encode_object(self._parts.documents[name]())

    async def _version_response(self, request: web.BaseRequest, later_segments: list[str]) -> EncodedResponse:
        """The response for `/version`. Raises StatusError 404 for further segments, 405, 406."""
        if later_segments:
            raise http_errors.no_such_path()
        _check_get(request)
        negotiation.check_plain(_accept_header(request))
        return await _with_etag(request, self._cached_document(("version",), lambda: VERSION), negotiation.PLAIN_JSON)

    async def _discovery_response(self, request: web.BaseRequest, segments: list[str]) -> EncodedResponse:
        """A discovery document by the segments of its path, or the 404 page. Raises StatusError 404, 405, 406."""
        documents = self._discovery
        match segments:
            case ["api"]:
                _check_get(request)
                return await self._api_root(request, "api", documents.core_versions)
            case ["apis"]:
                return await self._api_root(request, "apis", documents.group_list)
            case ["api", version]:
                return await self._resource_list(request, "", version)
            case ["apis", group]:
                if not group or not documents.versions(group):
                    return responses.NOT_FOUND_PAGE
                return await self._json_response(
                    request, ("apis", group), lambda: documents.group(group), is_routed=group == _AGGREGATION_GROUP
                )
            case ["apis", group, version] if group:
                return await self._resource_list(request, group, version)
            case _:
                return responses.NOT_FOUND_PAGE

    async def _resource_list(self, request: web.BaseRequest, group: str, version: str) -> EncodedResponse:
        """The resources of a group version; the 404 page, or for built-in groups StatusError 404, if it is unknown."""
        versions = self._discovery.versions(group)
        if not versions:
            return responses.NOT_FOUND_PAGE
        if version not in versions and (self._routes.is_custom(group) or not self._discovery.is_own(group)):
            return responses.NOT_FOUND_PAGE
        if version not in versions:
            raise http_errors.no_such_path()
        _check_get(request)
        return await self._json_response(
            request, ("resources", group, version), lambda: self._discovery.resource_list(group, version)
        )

    async def _api_root(
        self, request: web.BaseRequest, name: str, build_plain: Callable[[], Object]
    ) -> EncodedResponse:
        """The response for `/api` or `/apis` (`name`): aggregated discovery, or the one that `build_plain` makes."""
        form = negotiation.discovery_form(_accept_header(request), aggregates=True, is_routed=name == "api")
        if form.shape != "discovery":
            return await self._json_response(request, (name,), build_plain, is_routed=name == "api")
        document = self._cached_document((name, "aggregated"), lambda: self._discovery.aggregated(core=name == "api"))
        return await _with_etag(request, document, form)

    async def _json_response(
        self, request: web.BaseRequest, key: tuple[str, ...], build: Callable[[], Object], *, is_routed: bool = True
    ) -> EncodedResponse:
        """The response with a document that does not depend on the request.

        Args:
            request: decides the form of the response.
            key: of the document in the cache.
            build: makes the document.
            is_routed: whether kube-apiserver's router, which has a 406 of its own, handles the path.
        """
        form = negotiation.discovery_form(_accept_header(request), aggregates=False, is_routed=is_routed)
        return await _with_etag(request, self._cached_document(key, build), form)

    async def _openapi_v2_response(self, request: web.BaseRequest) -> EncodedResponse:
        """The OpenAPI v2 document as JSON or protobuf, made anew after a kind changed."""
        takes_protobuf = openapi_v2.PROTOBUF_TYPE in _accept_header(request)
        build = openapi_v2.protobuf_document if takes_protobuf else openapi_v2.json_document
        generation = self._routes.generation
        cached_generation, document = self._openapi_v2_documents.get(takes_protobuf, (None, b""))
        if cached_generation != generation:
            schemas = await self._openapi.schemas()
            document = await asyncio.to_thread(build, self._routes, schemas)
            self._openapi_v2_documents[takes_protobuf] = generation, document
        content_type = openapi_v2.RESPONSE_TYPE if takes_protobuf else "application/json"
        return EncodedResponse(document, 200, content_type)

    def _cached_document(self, key: tuple[str, ...], build: Callable[[], Object]) -> _Document:
        """The cached document of `key`, made by `build` if there is none of the current generation."""
        generation = self._discovery.generation
        if self._generation != generation:
            self._documents.clear()
            self._generation = generation
        cached = self._documents.get(key)
        if cached is None:
            body = json_text.encode(build())
            digest = hashlib.sha512(body).hexdigest().upper()
            cached = self._documents[key] = _Document(body, f'"{digest}"')
        return cached

    def _paths(self) -> list[str]:
        """The paths that `/` lists: all but those below `/podscaler`, of single checks and of OpenAPI v3 documents."""
        paths = {"/api", "/apis", "/apis/", "/healthz", "/livez", "/metrics", "/readyz", "/version"}
        paths |= {"/openapi/v2", "/openapi/v3", "/openapi/v3/"}
        if self._parts.accounts is not None:
            paths |= {ISSUER_CONFIGURATION_PATH, ISSUER_KEYS_PATH}
        paths |= {f"/api/{version}" for version in self._discovery.versions("")}
        for group in self._discovery.groups:
            paths.add(f"/apis/{group}")
            paths |= {f"/apis/{group}/{version}" for version in self._discovery.versions(group)}
        return sorted(paths)


async def _with_etag(request: web.BaseRequest, document: _Document, form: negotiation.Form) -> EncodedResponse:
    """The response with a document in a form, or 304 if the client has it already."""
    encoded = await responses.from_json(document.body, form)
    response = replace(encoded, headers={"ETag": document.etag, "Vary": "Accept"})
    if request.headers.get("If-None-Match") == document.etag:
        # kubectl's cache replaces the content type of its cached response by that of the 304
        return replace(response, body=b"", status=304)
    return response


def _issuer_discovery(request: web.BaseRequest, accounts: AccountTokens, path: str) -> EncodedResponse:
    """The issuer's configuration, or its keys, by which others verify service account tokens; or the 404 page.

    Raises StatusError 405.
    """
    if path not in (ISSUER_CONFIGURATION_PATH, ISSUER_KEYS_PATH):
        return responses.NOT_FOUND_PAGE
    _check_get(request)
    headers = {"Cache-Control": "public, max-age=3600"}
    if path == ISSUER_KEYS_PATH:
        return EncodedResponse(json_text.encode(accounts.key_set), 200, "application/jwk-set+json", headers)
    configuration = {
        "issuer": ISSUER,
        "jwks_uri": f"https://{request.host}{ISSUER_KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
    return EncodedResponse(json_text.encode(configuration), headers=headers)


def _check_get(request: web.BaseRequest) -> None:
    """Raise StatusError 405 unless the method is GET."""
    if request.method != "GET":
        raise http_errors.method_not_allowed()


def _accept_header(request: web.BaseRequest) -> str:
    return request.headers.get("Accept", "")
