"""Which paths exist, and with which methods: everything that follows from the records of resources.

Called by `app` (dispatch) and `discovery`. A new kind is a new record; nothing here names one, except for the few
subresources that only one kind has.

Source: the API server's installer: collections, objects, `status`, `scale`; cluster-wide lists of namespaced kinds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from podscaler.api.crd.version_order import sort_key
from podscaler.api.resource.resources import Resource, Version
from podscaler.api.schema import schema
from podscaler.controlplane.apiserver.http.paths import ResourcePath
from podscaler.controlplane.auth.rules import Attributes

READ = frozenset({"GET"})
COLLECTION = frozenset({"GET", "POST", "DELETE"})
OBJECT = frozenset({"GET", "PUT", "PATCH", "DELETE"})
PART = frozenset({"GET", "PUT", "PATCH"})
CREATE = frozenset({"POST"})
CONNECT = frozenset({"GET", "POST"})
REPLACE = frozenset({"PUT"})
NOTHING: frozenset[str] = frozenset()
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which upstream lists those of custom resources."""

_VERBS = {"GET": ("get",), "PUT": ("update",), "PATCH": ("patch",), "POST": ("create",), "DELETE": ("delete",)}
_COLLECTION_VERBS = {"GET": ("list", "watch"), "POST": ("create",), "DELETE": ("deletecollection",)}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with a path of its own.

    Attributes:
        name: the last part of the path.
        kind: what it answers with; its `group` and `version` where they are not the object's.
        methods: the HTTP methods it has.
    """

    name: str
    kind: str
    methods: frozenset[str]
    group: str = ""
    version: str = ""

    @property
    def verbs(self) -> tuple[str, ...]:
        """Its methods as verbs, sorted."""
        return tuple(sorted(verb for method in self.methods for verb in _VERBS[method]))


@dataclass(frozen=True, eq=False)
class Served:
    """One resource in one version: what a path leads to.

    Attributes:
        collection, item: the methods of the collection's path and of an object's.
        subresources: by name.
    """

    resource: Resource
    version: Version
    collection: frozenset[str]
    item: frozenset[str]
    subresources: dict[str, Subresource]

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.resource.group}/{self.version.version}" if self.resource.group else self.version.version

    @property
    def is_storage_version(self) -> bool:
        """Whether objects are stored in this form, so that nothing has to be converted."""
        return self.version.version == self.resource.storage_version and not self.resource.stored_as

    @property
    def verbs(self) -> tuple[str, ...]:
        """All verbs of the resource, sorted, as discovery lists them."""
        found = {verb for method in self.item for verb in _VERBS[method]}
        found |= {verb for method in self.collection for verb in _COLLECTION_VERBS[method]}
        if self.resource.is_custom:
            return CUSTOM_VERBS
        return tuple(sorted(found if self.resource.stored else found - {"watch"}))

    @property
    def has_protobuf(self) -> bool:
        """Whether the objects have a protobuf form: those of kinds that the schema knows."""
        return schema.find_message(self.version.message) is not None

    def methods(self, path: ResourcePath) -> frozenset[str]:
        """The HTTP methods of a path of this resource; none where there is no such path."""
        if path.has_rest or not self._is_in_scope(path):
            return NOTHING
        if path.watches:
            return READ if self.resource.stored and not path.subresource else NOTHING
        if path.subresource:
            part = self.subresources.get(path.subresource)
            return part.methods if part else NOTHING
        if path.name:
            return self.item
        is_cluster_wide = self.resource.namespaced and not path.namespace
        return self.collection & READ if is_cluster_wide else self.collection

    def is_elsewhere(self, path: ResourcePath) -> bool:
        """Whether the path is the list over all namespaces, where objects can only be read."""
        return self.resource.namespaced and not path.namespace

    def _is_in_scope(self, path: ResourcePath) -> bool:
        if self.resource.namespaced:
            return bool(path.namespace) or not path.name
        return not path.namespace


class Routes:
    """All that is served, by group, version and plural; `generation` rises with each change."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.generation = 0
        self._groups: dict[str, dict[str, dict[str, Served]]] = {}
        self._custom: dict[str, Sequence[Resource]] = {}
        for resource in resources:
            self.add(resource)
        self._own_groups = frozenset(self._groups)

    def add(self, resource: Resource) -> None:
        """Serve one more resource, in all its versions; versions of a group stay in the order in which they came."""
        self.generation += 1
        versions = self._groups.setdefault(resource.group, {})
        for version in resource.versions:
            versions.setdefault(version.version, {})[resource.plural] = _served(resource, version)

    def serve(self, definition: str, resources: Sequence[Resource]) -> None:
        """Serve the resources of a CustomResourceDefinition (by its name) in place of those that it had; maybe none."""
        self.generation += 1
        for resource in self._custom.pop(definition, ()):
            self._drop(resource)
        for resource in resources:
            self.add(resource)
            if resource.group not in self._own_groups:
                versions = self._groups[resource.group]
                self._groups[resource.group] = {name: versions[name] for name in sorted(versions, key=sort_key)}
        if resources:
            self._custom[definition] = resources

    def _drop(self, resource: Resource) -> None:
        versions = self._groups[resource.group]
        for version in resource.versions:
            del versions[version.version][resource.plural]
            if not versions[version.version]:
                del versions[version.version]
        if not versions:
            del self._groups[resource.group]

    def is_custom(self, group: str) -> bool:
        """Whether CustomResourceDefinitions made the group."""
        return group in self._groups and group not in self._own_groups

    def find(self, path: ResourcePath) -> Served | None:
        """What the path leads to, None where nothing of that name is served in that group and version."""
        return self._groups.get(path.group, {}).get(path.version, {}).get(path.resource)

    def serves(self, wanted: Attributes, version: str) -> bool:
        """Whether there is the resource that a request is about, and its subresource."""
        served = self._groups.get(wanted.group, {}).get(version, {}).get(wanted.resource)
        return served is not None and (not wanted.subresource or wanted.subresource in served.subresources)

    def has_group(self, group: str) -> bool:
        """Whether anything is served in that group."""
        return group in self._groups

    def has_version(self, group: str, version: str) -> bool:
        """Whether anything is served in that group and version."""
        return version in self._groups.get(group, {})

    def custom_resources(self) -> Iterator[Resource]:
        """All that CustomResourceDefinitions made."""
        for resources in self._custom.values():
            yield from resources

    def resources_of(self, group: str) -> Iterator[Resource]:
        """The records of a group, once for each version in which they are served."""
        for found in self._groups.get(group, {}).values():
            yield from (served.resource for served in found.values())

    @property
    def groups(self) -> list[str]:
        """The groups in order, without the core group."""
        return [group for group in self._groups if group]

    def versions(self, group: str) -> list[str]:
        """The versions of a group, preferred first."""
        return list(self._groups.get(group, {}))

    def resources(self, group: str, version: str) -> list[Served]:
        """What is served in a group and version, by plural."""
        found = self._groups.get(group, {}).get(version, {})
        return [found[plural] for plural in sorted(found)]

    def all_resources(self) -> Iterator[Served]:
        """Everything in every version."""
        for versions in self._groups.values():
            for found in versions.values():
                yield from found.values()


def _served(resource: Resource, version: Version) -> Served:
    if not resource.stored:
        return Served(resource, version, READ, READ, {})
    collection = COLLECTION - {"DELETE"} if resource.key == "namespaces" else COLLECTION
    return Served(resource, version, collection, OBJECT, {part.name: part for part in _subresources(resource)})


def _subresources(resource: Resource) -> Iterator[Subresource]:
    if resource.key == "namespaces":
        yield Subresource("finalize", "Namespace", REPLACE)
    if resource.key == "pods":
        yield Subresource("attach", "PodAttachOptions", CONNECT)
        yield Subresource("binding", "Binding", CREATE)
        yield Subresource("eviction", "Eviction", CREATE, "policy", "v1")
        yield Subresource("exec", "PodExecOptions", CONNECT)
        yield Subresource("log", "Pod", READ)
        yield Subresource("portforward", "PodPortForwardOptions", CONNECT)
    if resource.key == "serviceaccounts":
        yield Subresource("token", "TokenRequest", CREATE, "authentication.k8s.io", "v1")
    if resource.scale is not None:
        yield Subresource("scale", "Scale", PART, "autoscaling", "v1")
    if resource.has_status:
        yield Subresource("status", resource.kind, PART)
