"""The routing table: the served resources by group, version and plural, with the HTTP methods of their paths.

`apiserver.dispatch` and `apiserver.discovery` read it. Routes follow from the `Resource` of each kind; only the
subresources of a single kind (`pods/exec`) are named here: a new one is a line in `_subresources`, and its handlers in
`dispatch.SUBRESOURCE_HANDLERS`. `controllers.cluster.custom_resources` calls `serve` when definitions change.

Source: kube-apiserver's API installer: collections, objects, `status`, `scale`; cluster-wide lists of namespaced kinds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from podscaler.api.crd.version_order import sort_key
from podscaler.api.resource.resources import Resource, Version
from podscaler.api.schema import schema
from podscaler.controlplane.apiserver.http.request_paths import ResourcePath
from podscaler.controlplane.auth.authorizer import Attributes

READ_METHODS = frozenset({"GET"})
COLLECTION_METHODS = frozenset({"GET", "POST", "DELETE"})
OBJECT_METHODS = frozenset({"GET", "PUT", "PATCH", "DELETE"})
STATUS_METHODS = frozenset({"GET", "PUT", "PATCH"})
"""The methods of `status`, `scale` and `approval`."""
CREATE_METHODS = frozenset({"POST"})
CONNECT_METHODS = frozenset({"GET", "POST"})
PROXY_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
REPLACE_METHODS = frozenset({"PUT"})
NO_METHODS: frozenset[str] = frozenset()
PROXY = "proxy"
"""The subresource that is followed by more segments, which are the path of the target."""
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The verbs of custom resources, in the order of kube-apiserver's discovery documents."""

_VERB_BY_METHOD = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create", "DELETE": "delete"}
"""The verbs of objects and subresources; HEAD and OPTIONS, which only `proxy` has, are not in discovery."""
_COLLECTION_VERBS_BY_METHOD = {"GET": ("list", "watch"), "POST": ("create",), "DELETE": ("deletecollection",)}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource, such as `scale`.

    Attributes:
        name: the last segment of the path.
        kind: the kind of its objects (`Scale`).
        methods: its HTTP methods.
        group, version: the API group and version of `kind`, empty if they are the resource's own.
    """

    name: str
    kind: str
    methods: frozenset[str]
    group: str = ""
    version: str = ""

    @property
    def verbs(self) -> tuple[str, ...]:
        """The verbs of its methods, sorted."""
        return tuple(sorted(_VERB_BY_METHOD[method] for method in self.methods if method in _VERB_BY_METHOD))


@dataclass(frozen=True, eq=False)
class ServedResource:
    """One resource in one API version; compared by identity, as a key of caches.

    Attributes:
        resource: the kind.
        version: the API version.
        collection_methods, object_methods: the HTTP methods of the path of the collection, and of that of an object.
        subresources: the subresources by name.
    """

    resource: Resource
    version: Version
    collection_methods: frozenset[str]
    object_methods: frozenset[str]
    subresources: dict[str, Subresource]

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.resource.group}/{self.version.version}" if self.resource.group else self.version.version

    @property
    def is_storage_version(self) -> bool:
        """Whether objects are stored in this version, under this resource."""
        return self.version.version == self.resource.storage_version and not self.resource.stored_as

    @property
    def verbs(self) -> tuple[str, ...]:
        """All verbs of the resource, sorted, as discovery lists them."""
        if self.resource.is_custom:
            return CUSTOM_VERBS
        all_verbs = {_VERB_BY_METHOD[method] for method in self.object_methods}
        all_verbs |= {verb for method in self.collection_methods for verb in _COLLECTION_VERBS_BY_METHOD[method]}
        return tuple(sorted(all_verbs if self.resource.stored else all_verbs - {"watch"}))

    @property
    def has_protobuf(self) -> bool:
        """Whether the objects have a protobuf form, which only built-in kinds have."""
        return schema.find_message(self.version.message) is not None

    def methods(self, path: ResourcePath) -> frozenset[str]:
        """The HTTP methods of a path of this resource; empty if there is no such path."""
        if (path.has_further_segments and path.subresource != PROXY) or not self._is_in_scope(path):
            return NO_METHODS
        if path.is_deprecated_watch:
            return READ_METHODS if self.resource.stored and not path.subresource else NO_METHODS
        if path.subresource:
            subresource = self.subresources.get(path.subresource)
            return subresource.methods if subresource else NO_METHODS
        if path.name:
            return self.object_methods
        return self.collection_methods & READ_METHODS if self.is_over_all_namespaces(path) else self.collection_methods

    def is_over_all_namespaces(self, path: ResourcePath) -> bool:
        """Whether the path is a collection of a namespaced resource over all namespaces, which is read-only."""
        return self.resource.namespaced and not path.namespace

    def _is_in_scope(self, path: ResourcePath) -> bool:
        """Whether the path has a namespace exactly where the resource needs one; only collections may go without."""
        if self.resource.namespaced:
            return bool(path.namespace) or not path.name
        return not path.namespace


class Routes:
    """The served resources by group, version and plural.

    Attributes:
        generation: increases with each change; a cache key.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.generation = 0
        self._groups: dict[str, dict[str, dict[str, ServedResource]]] = {}
        """By group, version and plural."""
        self._custom: dict[str, Sequence[Resource]] = {}
        """The resources of each CustomResourceDefinition, by its name."""
        for resource in resources:
            self.add(resource)
        self._built_in_groups = frozenset(self._groups)

    def add(self, resource: Resource) -> None:
        """Serve one more resource in all its versions; a group's versions keep the order in which they were added."""
        self.generation += 1
        versions = self._groups.setdefault(resource.group, {})
        for version in resource.versions:
            versions.setdefault(version.version, {})[resource.plural] = _served_resource(resource, version)

    def serve(self, definition: str, resources: Sequence[Resource]) -> None:
        """Replace the resources of the CustomResourceDefinition named `definition`; an empty sequence removes them.

        Versions of a group that has only custom resources are sorted by priority; built-in groups keep their order.
        """
        self.generation += 1
        for resource in self._custom.pop(definition, ()):
            self._remove(resource)
        for resource in resources:
            self.add(resource)
            if resource.group not in self._built_in_groups:
                versions = self._groups[resource.group]
                self._groups[resource.group] = {name: versions[name] for name in sorted(versions, key=sort_key)}
        if resources:
            self._custom[definition] = resources

    def _remove(self, resource: Resource) -> None:
        """Remove the routes of a resource, and groups and versions that have no others."""
        versions = self._groups[resource.group]
        for version in resource.versions:
            del versions[version.version][resource.plural]
            if not versions[version.version]:
                del versions[version.version]
        if not versions:
            del self._groups[resource.group]

    def is_custom(self, group: str) -> bool:
        """Whether the group has only custom resources."""
        return group in self._groups and group not in self._built_in_groups

    def find(self, path: ResourcePath) -> ServedResource | None:
        """The resource of the path, None if the group and version do not serve it."""
        return self._groups.get(path.group, {}).get(path.version, {}).get(path.resource)

    def is_served(self, attributes: Attributes, version: str) -> bool:
        """Whether the resource, and subresource, of a request are served."""
        served = self._groups.get(attributes.group, {}).get(version, {}).get(attributes.resource)
        return served is not None and (not attributes.subresource or attributes.subresource in served.subresources)

    def has_group(self, group: str) -> bool:
        """Whether a resource of the group is served."""
        return group in self._groups

    def custom_resources(self) -> Iterator[Resource]:
        """The resources of all CustomResourceDefinitions."""
        for resources in self._custom.values():
            yield from resources

    def resources_of(self, group: str) -> Iterator[Resource]:
        """The records of a group's resources, once for each version in which they are served."""
        for version_resources in self._groups.get(group, {}).values():
            yield from (served.resource for served in version_resources.values())

    @property
    def groups(self) -> list[str]:
        """The groups in the order in which they were added, without the core group."""
        return [group for group in self._groups if group]

    def versions(self, group: str) -> list[str]:
        """The versions of a group, preferred first."""
        return list(self._groups.get(group, {}))

    def resources(self, group: str, version: str) -> list[ServedResource]:
        """The resources of a group and version, sorted by plural."""
        version_resources = self._groups.get(group, {}).get(version, {})
        return [version_resources[plural] for plural in sorted(version_resources)]

    def all_resources(self) -> Iterator[ServedResource]:
        """Every resource, once for each version."""
        for versions in self._groups.values():
            for version_resources in versions.values():
                yield from version_resources.values()


def _served_resource(resource: Resource, version: Version) -> ServedResource:
    """The routes of a resource in one version; a computed resource can only be read."""
    if not resource.stored:
        return ServedResource(resource, version, READ_METHODS, object_methods=READ_METHODS, subresources={})
    collection_methods = COLLECTION_METHODS - {"DELETE"} if resource.key == "namespaces" else COLLECTION_METHODS
    subresources = {subresource.name: subresource for subresource in _subresources(resource)}
    return ServedResource(resource, version, collection_methods, OBJECT_METHODS, subresources)


def _subresources(resource: Resource) -> Iterator[Subresource]:
    """The subresources of a resource; their order does not matter, as discovery sorts them."""
    if resource.key == "namespaces":
        yield Subresource("finalize", "Namespace", REPLACE_METHODS)
    if resource.key == "pods":
        yield Subresource("attach", "PodAttachOptions", CONNECT_METHODS)
        yield Subresource("binding", "Binding", CREATE_METHODS)
        yield Subresource("eviction", "Eviction", CREATE_METHODS, group="policy", version="v1")
        yield Subresource("exec", "PodExecOptions", CONNECT_METHODS)
        yield Subresource("log", "Pod", READ_METHODS)
        yield Subresource("portforward", "PodPortForwardOptions", CONNECT_METHODS)
    if resource.key in ("nodes", "pods", "services"):
        yield Subresource(PROXY, f"{resource.kind}ProxyOptions", PROXY_METHODS)
    if resource.key == "serviceaccounts":
        yield Subresource("token", "TokenRequest", CREATE_METHODS, group="authentication.k8s.io", version="v1")
    if resource.key == "certificatesigningrequests.certificates.k8s.io":
        yield Subresource("approval", resource.kind, STATUS_METHODS)
    if resource.scale is not None:
        yield Subresource("scale", "Scale", STATUS_METHODS, group="autoscaling", version="v1")
    if resource.has_status:
        yield Subresource("status", resource.kind, STATUS_METHODS)
