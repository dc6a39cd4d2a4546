"""Resolves references like `deployment/web` to the objects that a metric describes, by the names that kubectl accepts.

`parsing`, `lookup` and `scraped.scraper` call it: `deployment/web`, `deploy/web` and `deployments.apps/web` are the
same object.
"""

from collections.abc import Iterable

from podscaler.api.resource.resources import Resource
from podscaler.controlplane.metrics.custom.fields import EntryError, shown
from podscaler.controlplane.metrics.custom.series import NamedObject

NAMESPACES = "namespaces"


class DescribableKinds:
    """The kinds that a metric may describe: all stored namespaced kinds, and Namespace.

    Args:
        resources: all served kinds, iterated again for an unknown name; of two kinds with the same name the first one
            is used if no group is given.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._resources = resources
        self._by_name: dict[str, Resource] = {}
        self._refresh()

    def _refresh(self) -> None:
        """Read the names again, as custom kinds are added and removed."""
        self._by_name.clear()
        for resource in self._resources:
            if resource.stored and (resource.namespaced or resource.key == NAMESPACES):
                self._add_names(resource)

    def _add_names(self, resource: Resource) -> None:
        """Add all names of a kind: deployment, deployments, deploy, and each of them with the suffix `.apps`."""
        for name in (resource.kind.lower(), resource.singular, resource.plural, *resource.short_names):
            self._by_name.setdefault(name, resource)
            self._by_name.setdefault(f"{name}.{resource.group}", resource)

    def _find_kind(self, name: str) -> Resource | None:
        """The kind of that name; the names are read again if it is unknown, or a custom kind that may have gone."""
        resource = self._by_name.get(name)
        if resource is None or resource.is_custom:
            self._refresh()
            resource = self._by_name.get(name)
        return resource

    def described(self, reference: str, namespace: str) -> NamedObject:
        """The object of a reference `KIND/NAME`, `KIND.GROUP/NAME` or `namespace`.

        Args:
            reference: as in kubectl, the kind may be the plural or short name, in upper or lower case.
            namespace: the namespace of the object.

        Raises:
            EntryError: the kind does not exist, or the name is missing.
        """
        kind, _, name = reference.partition("/")
        resource = self._find_kind(kind.lower())
        if resource is None:
            raise EntryError(f"object: {shown(kind)} is no kind that is served here and lives in a namespace")
        if resource.key == NAMESPACES:
            if name not in ("", namespace):
                raise EntryError(f"object: only the ConfigMap's own namespace ({namespace}) can be described")
            return NamedObject(resource, namespace)
        if not name or "/" in name:
            raise EntryError(f"object: {shown(reference)} is not of the form KIND/NAME")
        return NamedObject(resource, name)

    def of_key(self, key: str, name: str) -> NamedObject:
        """The object `name` of the kind with this `Resource.key`. Raises EntryError if it is not served."""
        resource = self._find_kind(key)
        if resource is None:
            raise EntryError(f"{shown(key)} is no kind that is served here and lives in a namespace")
        return NamedObject(resource, name)
