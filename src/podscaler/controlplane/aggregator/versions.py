"""Which groups and versions other API servers serve: those of APIServices that name a Service.

The API server looks up here, for every request, whether it is its own. The index follows the stored APIServices, so
that an APIService counts from the moment in which others can see it.

Source: upstream's kube-aggregator: spec and condition of an APIService decide, nothing else.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass

from podscaler.api.crd.version_order import sort_key
from podscaler.api.kinds.apiextensions import apiservice
from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.change_log import StoreEvent

RESOURCE = apiservice.RESOURCE.key
AVAILABLE = "Available"
OWN_GROUP = apiservice.RESOURCE.group
"""That of APIServices themselves, which nobody else can serve."""
METRIC_GROUPS = frozenset({"custom.metrics.k8s.io", "external.metrics.k8s.io"})
"""Those that give way as a whole: an adapter that serves one version of them is meant to serve all metrics."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A group and version that another API server serves.

    Attributes:
        name: of the APIService.
        namespace, service, port: where the server is.
        authority: PEM of the authorities that vouch for the server, empty for those that the machine trusts.
        verifies: whether the server's certificate is looked at.
        group_priority, version_priority: place in discovery.
        is_available: what was found out last.
    """

    name: str
    group: str
    version: str
    namespace: str
    service: str
    port: int
    authority: bytes
    verifies: bool
    group_priority: int
    version_priority: int
    is_available: bool

    @property
    def server_name(self) -> str:
        """The name that the server's certificate must hold."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def path(self) -> str:
        """Where the group and version are."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


class RemoteVersions:
    """See the module; empty as long as nothing is `put`.

    Attributes:
        generation: rises with each change of what discovery says of them.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._remotes: dict[tuple[str, str], Remote] = {}

    def put(self, service: Object) -> None:
        """Know an APIService as it is now."""
        remote = of_service(service)
        if remote is None:
            self.remove(service["metadata"]["name"])
        elif self._remotes.get((remote.group, remote.version)) != remote:
            self._remotes[remote.group, remote.version] = remote
            self.generation += 1

    def remove(self, name: str) -> None:
        """Forget an APIService by name; does nothing where it names no Service."""
        version, _, group = name.partition(".")
        if self._remotes.pop((group, version), None) is not None:
            self.generation += 1

    def find(self, group: str, version: str) -> Remote | None:
        """Who serves a group and version, None where it is nobody else."""
        return self._remotes.get((group, version))

    def has_group(self, group: str) -> bool:
        """Whether others serve a version of the group."""
        return any(found == group for found, _ in self._remotes)

    @property
    def groups(self) -> dict[str, int]:
        """The groups, each with its priority: the highest that one of its versions asks for."""
        found: dict[str, int] = {}
        for remote in self._remotes.values():
            found[remote.group] = max(remote.group_priority, found.get(remote.group, 0))
        return found

    def of_group(self, group: str) -> list[Remote]:
        """The versions of a group that others serve, preferred first."""
        found = (remote for remote in self._remotes.values() if remote.group == group)
        return sorted(found, key=lambda remote: (-remote.version_priority, sort_key(remote.version)))

    def all(self) -> list[Remote]:
        """Every one."""
        return list(self._remotes.values())


def of_service(service: Object) -> Remote | None:
    """What a stored APIService says; None where this server has its group and version itself."""
    spec = service.get("spec") or {}
    reference = spec.get("service")
    if reference is None or spec.get("group") == OWN_GROUP:
        return None
    return Remote(
        service["metadata"]["name"],
        spec.get("group", ""),
        spec.get("version", ""),
        namespace=reference.get("namespace", ""),
        service=reference.get("name", ""),
        port=reference.get("port", apiservice.SERVICE_PORT),
        authority=base64.b64decode(spec.get("caBundle") or ""),
        verifies=not spec.get("insecureSkipTLSVerify", False),
        group_priority=spec.get("groupPriorityMinimum", 0),
        version_priority=spec.get("versionPriority", 0),
        is_available=condition_of(service).get("status") == "True",
    )


def condition_of(service: Object) -> Object:
    """The condition that says whether an APIService is available; empty where nobody has said."""
    conditions: list[Object] = (service.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == AVAILABLE), {})


def follow(objects: Objects) -> RemoteVersions:
    """An index of the APIServices of `objects` that stays up to date."""
    versions = RemoteVersions()
    for entry in objects.list(RESOURCE).entries:
        versions.put(entry.decode())
    objects.listen(_follower(versions))
    return versions


def _follower(versions: RemoteVersions) -> Callable[[list[StoreEvent]], None]:
    def note(events: list[StoreEvent]) -> None:
        for event in events:
            if event.subject.resource != RESOURCE:
                continue
            if event.entry is not None:
                versions.put(event.entry.decode())
            else:
                versions.remove(event.subject.name)

    return note
