"""Indexes the API groups and versions that other API servers serve: those of APIServices with a Service.

`apiserver.dispatch` reads it for every request, by `ServerContext.remote_of`: is apps/v1 served here, or is the request
to be proxied? The index is updated by the commits of APIServices, so that an APIService takes effect when reads return
it. Another field of an APIService: an attribute of `Remote`, which `parse_api_service` sets.

Source: kube-aggregator: spec and condition of an APIService decide, nothing else.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass

from podscaler.api.crd.version_order import sort_key
from podscaler.api.kinds.apiextensions import apiservice
from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.change_log import StoreEvent

API_SERVICES = apiservice.RESOURCE.key
AVAILABLE = "Available"
API_SERVICE_GROUP = apiservice.RESOURCE.group
"""The API group of APIServices themselves, which other servers cannot serve."""
METRIC_GROUPS = frozenset({"custom.metrics.k8s.io", "external.metrics.k8s.io"})
"""Groups that are proxied as a whole: an adapter that serves one version is meant to serve all metrics."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A group and version that another API server serves.

    Attributes:
        name: the name of the APIService, VERSION.GROUP.
        group, version: the API group (empty for the core group) and version.
        namespace, service, port: the Service of the server.
        authority: PEM of the certificate authorities that sign the server's certificate; empty if it is verified with
            those that the host trusts.
        verifies_certificate: whether the server's certificate is verified.
        group_priority, version_priority: the position in discovery; higher comes first.
        is_available: whether the condition Available is True.
    """

    name: str
    group: str
    version: str
    namespace: str
    service: str
    port: int
    authority: bytes
    verifies_certificate: bool
    group_priority: int
    version_priority: int
    is_available: bool

    @property
    def server_name(self) -> str:
        """The name that the server's certificate must have."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def path(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


class RemoteVersions:
    """The groups and versions of other servers; empty at first.

    Attributes:
        generation: increases with each change.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._remotes: dict[tuple[str, str], Remote] = {}

    def put(self, api_service: Object) -> None:
        """Add or replace an APIService."""
        remote = parse_api_service(api_service)
        if remote is None:
            self.remove(api_service["metadata"]["name"])
        elif self._remotes.get((remote.group, remote.version)) != remote:
            self._remotes[remote.group, remote.version] = remote
            self.generation += 1

    def remove(self, name: str) -> None:
        """Remove an APIService by name, if it is in the index."""
        version, _, group = name.partition(".")
        if self._remotes.pop((group, version), None) is not None:
            self.generation += 1

    def apply(self, events: Iterable[StoreEvent]) -> None:
        """Apply the events of a commit; those of other kinds are ignored."""
        for event in events:
            if event.subject.resource == API_SERVICES:
                if event.entry is not None:
                    self.put(event.entry.decode())
                else:
                    self.remove(event.subject.name)

    def find(self, group: str, version: str) -> Remote | None:
        """The entry of a group and version, None if no other server serves it."""
        return self._remotes.get((group, version))

    def has_group(self, group: str) -> bool:
        """Whether another server serves a version of the group."""
        return any(remote_group == group for remote_group, _ in self._remotes)

    @property
    def group_priorities(self) -> dict[str, int]:
        """The priority of each group: the highest one of its versions."""
        priorities: dict[str, int] = {}
        for remote in self._remotes.values():
            priorities[remote.group] = max(remote.group_priority, priorities.get(remote.group, 0))
        return priorities

    def of_group(self, group: str) -> list[Remote]:
        """The versions of a group that other servers serve, preferred first."""
        remotes = (remote for remote in self._remotes.values() if remote.group == group)
        return sorted(remotes, key=lambda remote: (-remote.version_priority, sort_key(remote.version)))

    def all(self) -> list[Remote]:
        """All groups and versions of other servers, in no particular order."""
        return list(self._remotes.values())


def parse_api_service(api_service: Object) -> Remote | None:
    """The group and version of a stored APIService; None if this server serves it itself."""
    spec = api_service.get("spec") or {}
    reference = spec.get("service")
    if reference is None or spec.get("group") == API_SERVICE_GROUP:
        return None
    return Remote(
        api_service["metadata"]["name"],
        spec.get("group", ""),
        spec.get("version", ""),
        namespace=reference.get("namespace", ""),
        service=reference.get("name", ""),
        port=reference.get("port", apiservice.DEFAULT_SERVICE_PORT),
        authority=base64.b64decode(spec.get("caBundle") or ""),
        verifies_certificate=not spec.get("insecureSkipTLSVerify", False),
        group_priority=spec.get("groupPriorityMinimum", 0),
        version_priority=spec.get("versionPriority", 0),
        is_available=condition_of(api_service).get("status") == "True",
    )


def condition_of(api_service: Object) -> Object:
    """The condition Available of an APIService; empty if it has none."""
    conditions: list[Object] = (api_service.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == AVAILABLE), {})


def watch_remote_versions(objects: Objects) -> RemoteVersions:
    """An index of the APIServices of `objects` that is updated by every commit."""
    versions = RemoteVersions()
    for entry in objects.list(API_SERVICES).entries:
        versions.put(entry.decode())
    objects.listen(versions.apply)
    return versions
