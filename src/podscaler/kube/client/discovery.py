"""Finds the versions of an API group and the resource of a kind (REST mapping): Deployment of apps -> v1, deployments.

`podscaler.controller.informers.scale_client` finds the resource of a scale target with it, and
`podscaler.metrics.metrics_apis` that of a described object, and the versions of metrics APIs. Documents are cached for
30 seconds; a lookup that finds nothing reads them again, at most once a second. Concurrent lookups share one request.

Source: docs/spec/controller.md 10 (REST requests); docs/spec/decision.md 2 (Reconcile in order, step 2).
Differs: upstream reads the discovery documents of all groups; here only the group in question is read.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from podscaler.api.text.quoting import quoted
from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, is_not_found
from podscaler.kube.transport.single_flight import SingleFlight

FRESH_S = 30.0
"""The age up to which a cached document is used."""
FRESH_MISS_S = 1.0
"""For this long, a lookup that found nothing is not repeated."""
TIMEOUT_S = 32.0
"""The time limit of one request for a document, as of client-go's discovery client."""
NO_KIND_MATCH = "NoKindMatch"
"""The reason of the failure when a kind is not served; it arises here, so its code is 0."""


@dataclass(frozen=True, slots=True)
class RESTMapping:
    """The resource that serves a kind.

    Attributes:
        group, version, kind: as discovery lists them; the core group is empty.
        plural: the name of the resource in URLs (`deployments`).
    """

    group: str
    version: str
    plural: str
    kind: str


class _GroupVersion(msgspec.Struct):
    """A version of an API group."""

    version: str = ""


class _APIGroup(msgspec.Struct, rename="camel"):
    """The response to `/apis/GROUP`."""

    versions: list[_GroupVersion] = []
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)


class _APIVersions(msgspec.Struct):
    """The response to `/api`."""

    versions: list[str] = []


class _APIResource(msgspec.Struct):
    """A resource of a version: its plural name (`pods`, `pods/log`) and its kind."""

    name: str
    kind: str = ""


class _APIResourceList(msgspec.Struct):
    """The response to `/apis/GROUP/VERSION`, or to `/api/v1`."""

    resources: list[_APIResource] = []


D = TypeVar("D")


class Discovery:
    """The API groups and resources of one API server, requested when they are needed and cached.

    Args:
        client: sends the requests.
        clock: for the age of cached documents.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._versions: _DocumentCache[Sequence[str]] = _DocumentCache(clock, self._read_versions)
        self._mappings: _DocumentCache[Sequence[RESTMapping]] = _DocumentCache(clock, self._read_mappings)

    async def mappings(self, group: str, kind: str) -> Sequence[RESTMapping]:
        """The resources of that kind, preferred version first; at least one.

        The kind may be written as it is or in lower case. Raises StatusError: with the reason `NoKindMatch` if the
        kind is not served, else that of the failed request.
        """
        for max_age_s in (FRESH_S, FRESH_MISS_S):  # the second time because the kind may be new
            mappings = await self._mappings.get(group, max_age_s)
            if matching := [mapping for mapping in mappings if kind in (mapping.kind, mapping.kind.lower())]:
                return matching
        message = f"no matches for kind {quoted(kind)} in group {quoted(group)}"
        raise StatusError(message, code=0, reason=NO_KIND_MATCH)

    async def versions(self, group: str, *, max_age_s: float = FRESH_S) -> Sequence[str]:
        """The versions in which a group is served, preferred first; empty if it is not. Raises StatusError."""
        # if there are none they are requested again, as the group may be new
        return await self._versions.get(group, max_age_s) or await self._versions.get(group, FRESH_MISS_S)

    async def _read_versions(self, group: str) -> Sequence[str]:
        """The versions of a group, preferred first; empty if it is not served. Raises StatusError."""
        if not group:
            return (await self._get_document("/api", _APIVersions)).versions
        try:
            document = await self._get_document(urls.path("apis", group), _APIGroup)
        except StatusError as error:
            if is_not_found(error):
                return ()
            raise
        versions = [document.preferred_version.version, *(listed.version for listed in document.versions)]
        return tuple(dict.fromkeys(filter(None, versions)))

    async def _read_mappings(self, group: str) -> Sequence[RESTMapping]:
        """The resources in all versions of a group, without those that cannot be read.

        Empty if the group is not served. Raises StatusError if its versions, or the resources of all, cannot be read.
        """
        versions = await self._versions.get(group, FRESH_MISS_S)
        mappings: list[RESTMapping] = []
        failures: list[StatusError] = []
        for version in versions:
            try:
                mappings += await self._mappings_of(group, version)
            except StatusError as error:
                failures.append(error)
        if failures and len(failures) == len(versions):
            raise failures[0]
        return mappings

    async def _mappings_of(self, group: str, version: str) -> list[RESTMapping]:
        """The resources in one version of a group, without subresources. Raises StatusError."""
        resources = (await self._get_document(urls.group_version(group, version), _APIResourceList)).resources
        return [
            RESTMapping(group, version, resource.name, resource.kind)
            for resource in resources
            if "/" not in resource.name
        ]

    async def _get_document(self, path: str, document: type[D]) -> D:
        """The discovery document at `path`, decoded as the type `document`. Raises StatusError."""
        body = await self._client.get(path, subject="discovery", timeout_s=TIMEOUT_S)
        try:
            return msgspec.json.decode(body, type=document)
        except JSON_DECODE_ERRORS as error:
            raise StatusError(f"unable to decode the discovery document at {path}: {error}", code=0) from error


class _DocumentCache(Generic[D]):
    """Cached documents by group, with their ages."""

    def __init__(self, clock: Clock, request: Callable[[str], Coroutine[Any, Any, D]]) -> None:
        self._clock = clock
        self._request = request
        self._documents: dict[str, tuple[float, D]] = {}  # with the time of the request, monotonic clock
        self._flights: SingleFlight[str, D] = SingleFlight()

    async def get(self, group: str, max_age_s: float) -> D:
        """The document, read now if the cached one is older than `max_age_s`. Raises StatusError."""
        cached = self._documents.get(group)
        if cached is not None:
            read_at_s, document = cached
            if self._clock.monotonic_s() - read_at_s < max_age_s:
                return document
        return await self._flights.run(group, lambda: self._renew(group))

    async def _renew(self, group: str) -> D:
        """Request the document of a group and cache it. Raises StatusError."""
        document = await self._request(group)
        self._documents[group] = (self._clock.monotonic_s(), document)
        return document
