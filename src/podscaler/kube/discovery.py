"""What an API server serves: the versions of a group, and the resources that a kind maps to.

The controller asks for the resource of a scale target and of an object that a metric describes; the metrics clients
ask for versions. What was learnt is kept for 30 seconds; a lookup that finds nothing in that asks the server again, at
most once a second. Lookups that need the same answer at once share one request.

Source: controller.md 10; decision.md 2 step 2.
Differs: upstream reads the discovery documents of all groups; here only the group in question is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from podscaler.api.quoting import quoted
from podscaler.clock import Clock
from podscaler.errors import StatusError
from podscaler.kube import urls
from podscaler.kube.client import Client, is_not_found
from podscaler.kube.sharing import SingleFlight

FRESH_S = 30.0
FRESH_MISS_S = 1.0
TIMEOUT_S = 32.0
NO_KIND_MATCH = "NoKindMatch"
"""The reason of the failure when a kind is not served; it arises here, so its code is 0."""


@dataclass(frozen=True, slots=True)
class RESTMapping:
    """Where objects of a kind are found."""

    group: str
    version: str
    plural: str
    kind: str


@dataclass(frozen=True, slots=True)
class Group:
    """One API group: its versions, preferred first, and its kinds in the same order; both empty where not served."""

    versions: tuple[str, ...]
    mappings: tuple[RESTMapping, ...]
    read_at_s: float

    def find(self, kind: str) -> list[RESTMapping]:
        """The mappings of a kind, which may be written as it is or in lower case."""
        return [mapping for mapping in self.mappings if kind in (mapping.kind, mapping.kind.lower())]


class _GroupVersion(msgspec.Struct):
    version: str = ""


class _APIGroup(msgspec.Struct, rename="camel"):
    versions: list[_GroupVersion] = []
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)


class _APIVersions(msgspec.Struct):
    versions: list[str] = []


class _APIResource(msgspec.Struct):
    name: str
    kind: str = ""


class _APIResourceList(msgspec.Struct):
    resources: list[_APIResource] = []


D = TypeVar("D")


class Discovery:
    """See the module.

    Args:
        client: where to ask.
        clock: for the age of what is kept.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._groups: dict[str, Group] = {}
        self._flights: SingleFlight[str, Group] = SingleFlight()

    async def mappings(self, group: str, kind: str) -> Sequence[RESTMapping]:
        """Where objects of that kind are found, preferred version first; at least one.

        Raises StatusError: reason `NoKindMatch` where the kind is not served, else what kept the server from saying.
        """
        found = (await self._group(group, FRESH_S)).find(kind)
        if not found:
            found = (await self._group(group, FRESH_MISS_S)).find(kind)
        if not found:
            text = f"no matches for kind {quoted(kind)} in group {quoted(group)}"
            raise StatusError(text, code=0, reason=NO_KIND_MATCH)
        return found

    async def versions(self, group: str) -> Sequence[str]:
        """The versions in which a group is served, preferred first; empty where it is not. Raises StatusError."""
        found = (await self._group(group, FRESH_S)).versions
        return found or (await self._group(group, FRESH_MISS_S)).versions

    async def _group(self, group: str, max_age_s: float) -> Group:
        kept = self._groups.get(group)
        if kept is not None and self._clock.monotonic_s() - kept.read_at_s < max_age_s:
            return kept
        return await self._flights.run(group, lambda: self._read(group))

    async def _read(self, group: str) -> Group:
        versions = await self._versions(group)
        mappings: list[RESTMapping] = []
        failures: list[StatusError] = []
        for version in versions:
            try:
                mappings += await self._mappings(group, version)
            except StatusError as error:
                failures.append(error)
        if failures and len(failures) == len(versions):
            raise failures[0]
        self._groups[group] = Group(versions, tuple(mappings), self._clock.monotonic_s())
        return self._groups[group]

    async def _versions(self, group: str) -> tuple[str, ...]:
        if not group:
            return tuple((await self._get("/api", _APIVersions)).versions)
        try:
            document = await self._get(urls.path("apis", group), _APIGroup)
        except StatusError as error:
            if is_not_found(error):
                return ()
            raise
        preferred = document.preferred_version.version
        versions = [entry.version for entry in document.versions]
        return tuple(dict.fromkeys([preferred, *versions] if preferred else versions))

    async def _mappings(self, group: str, version: str) -> list[RESTMapping]:
        resources = (await self._get(urls.group_version(group, version), _APIResourceList)).resources
        return [
            RESTMapping(group, version, resource.name, resource.kind)
            for resource in resources
            if "/" not in resource.name
        ]

    async def _get(self, path: str, document: type[D]) -> D:
        body = await self._client.get(path, subject="discovery", timeout_s=TIMEOUT_S)
        try:
            return msgspec.json.decode(body, type=document)
        except msgspec.DecodeError as error:
            raise StatusError(f"unable to decode the discovery document at {path}: {error}", code=0) from error
