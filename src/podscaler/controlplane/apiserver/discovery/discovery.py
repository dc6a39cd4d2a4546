"""Builds discovery documents, by which clients learn the served groups, versions and resources.

The forms are meta/v1 APIGroupList and APIResourceList (one for each version), and the aggregated APIGroupDiscoveryList
(all in one). `non_resource_handlers` serves the documents and caches them until `generation` changes. A new field of
resources: in `DiscoveryResource` and in `_entry_of_route`, then in `_plain_entries` and `_aggregated_entry`.

Source: the API concepts on discovery. Aggregated documents leave group and version of a response kind empty if they are
the resource's own, as kube-apiserver's do.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from podscaler.api import group_priorities
from podscaler.api.crd.version_order import sort_key
from podscaler.controlplane.aggregator.aggregation_layer import Aggregation
from podscaler.controlplane.aggregator.remote_versions import RemoteVersions
from podscaler.controlplane.apiserver.discovery import metric_apis
from podscaler.controlplane.apiserver.discovery.resource_entry import DiscoveryResource
from podscaler.controlplane.apiserver.handlers.reviews import Review
from podscaler.controlplane.apiserver.http.routes import Routes, ServedResource
from podscaler.controlplane.registry.providers import MetricApis

Document = dict[str, Any]
"""A document or a part of one, as a JSON object."""
_HASH_BYTES = 8

BINDINGS = DiscoveryResource("bindings", "binding", "Binding", namespaced=True, verbs=("create",))
"""The deprecated collection of bindings, which `dispatch` serves beside the subresource of pods."""


class DiscoveryDocuments:
    """The discovery documents of one API server.

    A metrics API of this server is left out as long as another server serves a version of its group.

    Args:
        routes: the stored and computed resources.
        reviews: the resources that can only be created.
        metrics: the metrics APIs, None if this server has none.
        aggregation: the groups and versions of other API servers, None without the aggregation layer.
    """

    def __init__(
        self,
        routes: Routes,
        reviews: Sequence[Review],
        metrics: MetricApis | None = None,
        aggregation: Aggregation | None = None,
    ) -> None:
        self._routes = routes
        self._reviews = reviews
        self._metrics = metrics
        self._metric_groups = metrics.versions if metrics is not None else {}
        self._aggregation = aggregation
        self._remotes = aggregation.remotes if aggregation is not None else RemoteVersions()

    @property
    def generation(self) -> tuple[int, ...]:
        """A value that changes whenever the documents do."""
        metrics_generation = self._metrics.generation if self._metrics is not None else 0
        aggregation_generation = self._aggregation.generation if self._aggregation is not None else ()
        return (self._routes.generation, metrics_generation, *aggregation_generation)

    @property
    def groups(self) -> list[str]:
        """The groups, without the core group, in order of preference."""
        metric_groups = (group for group in self._metric_groups if not self._remotes.has_group(group))
        remote_priorities = self._remotes.group_priorities
        groups = {*self._own_groups, *metric_groups, *remote_priorities} - {""}

        def preference_order(group: str) -> tuple[int, str]:
            own_priority = group_priorities.of_version(group, "").group
            return -remote_priorities.get(group, own_priority), group

        return sorted(groups, key=preference_order)

    @property
    def _own_groups(self) -> set[str]:
        """The groups of routes and reviews."""
        return {*self._routes.groups, *(review.group for review in self._reviews)}

    @property
    def group_versions(self) -> tuple[tuple[str, str], ...]:
        """Groups and versions of this server, without those of metrics APIs; the core group first."""
        return tuple(
            (group, version) for group in ("", *sorted(self._own_groups)) for version in self._own_versions(group)
        )

    def versions(self, group: str) -> list[str]:
        """The versions of a group, preferred first; empty for an unknown group."""
        remotes = self._remotes.of_group(group)
        if not remotes:
            return self._own_versions(group) + list(self._metric_groups.get(group, ()))
        own_versions = self._own_versions(group)
        priorities = {version: group_priorities.of_version(group, version).version for version in own_versions}
        priorities |= {remote.version: remote.version_priority for remote in remotes}
        return sorted(priorities, key=lambda version: (-priorities[version], sort_key(version)))

    def _own_versions(self, group: str) -> list[str]:
        """The versions of a group in routes and reviews, preferred first; empty for an unknown group."""
        versions = self._routes.versions(group)
        if any(review.group == group for review in self._reviews) and "v1" not in versions:
            versions.append("v1")
        return versions

    def is_own(self, group: str) -> bool:
        """Whether this server itself serves a version of the group."""
        has_metrics = group in self._metric_groups and not self._remotes.has_group(group)
        return has_metrics or bool(self._own_versions(group))

    def core_versions(self) -> Document:
        """The document of `/api`."""
        return {"kind": "APIVersions", "versions": self.versions(""), "serverAddressByClientCIDRs": []}

    def group_list(self) -> Document:
        """The document of `/apis`."""
        groups = [self._group_entry(group) for group in self.groups]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, group: str) -> Document:
        """The document of `/apis/GROUP`, for a group that has versions."""
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group_entry(group)}

    def _group_entry(self, group: str) -> Document:
        """The entry of a group, without kind and apiVersion."""
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.versions(group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def resource_list(self, group: str, version: str) -> Document:
        """The document of `/apis/GROUP/VERSION` and `/api/v1`, of this server only."""
        resources = [entry for resource in self._resource_entries(group, version) for entry in _plain_entries(resource)]
        return {
            "kind": "APIResourceList",
            **({"apiVersion": "v1"} if group else {}),  # as upstream, not for the core group
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": resources,
        }

    def aggregated(self, *, core: bool) -> Document:
        """The aggregated document of `/api` (`core`) or `/apis`."""
        groups = [""] if core else self.groups
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [self._aggregated_group(group) for group in groups],
        }

    def _aggregated_group(self, group: str) -> Document:
        """A group in aggregated discovery, with all its versions."""
        versions = [self._aggregated_version(group, version) for version in self.versions(group)]
        return {"metadata": {"name": group} if group else {}, "versions": versions}

    def _aggregated_version(self, group: str, version: str) -> Document:
        """A version in aggregated discovery; that of another server as it was read last."""
        remote = self._remotes.find(group, version)
        if remote is None or self._aggregation is None:  # without aggregation there are no remotes
            resources = [_aggregated_entry(resource) for resource in self._resource_entries(group, version)]
            return {"version": version, "resources": resources, "freshness": "Current"}
        documents = self._aggregation.documents.of(remote)
        entry: Document = {"version": version}
        if documents.resources:
            entry["resources"] = documents.resources
        return {**entry, "freshness": "Current" if documents.is_fresh else "Stale"}

    def _resource_entries(self, group: str, version: str) -> Iterator[DiscoveryResource]:
        """The resources that this server has of a version, with reviews and metrics, in the order of their names."""
        resources = [_entry_of_route(served) for served in self._routes.resources(group, version)]
        if version == "v1":
            resources += [_entry_of_review(review) for review in self._reviews if review.group == group]
        if any(resource.name == "pods" for resource in resources) and not group:  # of the core group
            resources.append(BINDINGS)
        if self._metrics is not None and metric_apis.serves(self._metrics, group, version):
            resources += metric_apis.discovery_resources(self._metrics, group)
        yield from sorted(resources, key=lambda resource: resource.name)


def _entry_of_route(served: ServedResource) -> DiscoveryResource:
    """The entry of a served resource."""
    resource = served.resource
    subresource_names = sorted(served.subresources, reverse=resource.is_custom)  # upstream: `status`, then `scale`
    return DiscoveryResource(
        name=resource.plural,
        singular=resource.singular,
        kind=resource.kind,
        namespaced=resource.namespaced,
        verbs=served.verbs,
        short_names=resource.short_names,
        categories=resource.categories,
        storage_gvk=f"{resource.group}/{resource.storage_version}/{resource.kind}" if resource.stored else "",
        subresources=tuple(served.subresources[name] for name in subresource_names),
    )


def _entry_of_review(review: Review) -> DiscoveryResource:
    """The entry of a kind of review, which can only be created."""
    return DiscoveryResource(review.plural, review.singular, review.kind, review.namespaced, verbs=("create",))


def storage_version_hash(storage_gvk: str) -> str:
    """The hash of `group/version/kind`, by which clients notice that a resource's storage version has changed."""
    digest = hashlib.sha256(storage_gvk.encode()).digest()
    return base64.b64encode(digest[:_HASH_BYTES]).decode()


def _plain_entries(resource: DiscoveryResource) -> Iterator[Document]:
    """The entries of a resource (unless its kind is empty) and its subresources in an APIResourceList."""
    resource_entry: Document = {
        "name": resource.name,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    }
    resource_entry |= _aliases(resource)
    if resource.storage_gvk:
        resource_entry["storageVersionHash"] = storage_version_hash(resource.storage_gvk)
    if resource.kind:
        yield resource_entry
    for subresource in resource.subresources:
        yield {
            "name": f"{resource.name}/{subresource.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **({"group": subresource.group, "version": subresource.version} if subresource.group else {}),
            "kind": subresource.kind,
            "verbs": subresource.verbs,
        }


def _aliases(resource: DiscoveryResource) -> Document:
    """The fields of short names and categories; an empty one is left out."""
    aliases = {"shortNames": resource.short_names, "categories": resource.categories}
    return {name: values for name, values in aliases.items() if values}


def _aggregated_entry(resource: DiscoveryResource) -> Document:
    """The entry of a resource, with its subresources, in aggregated discovery."""
    entry: Document = {
        "resource": resource.name,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    }
    entry |= _aliases(resource)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": subresource.name,
                "responseKind": {
                    "group": subresource.group,
                    "version": subresource.version,
                    "kind": subresource.kind,
                },
                "verbs": subresource.verbs,
            }
            for subresource in resource.subresources
        ]
    return entry
