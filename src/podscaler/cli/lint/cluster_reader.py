"""Lists the objects of a cluster that lint rules need, and the kinds and metrics that it serves. Writes nothing.

Called by `podscaler.cli.lint.lint` and `podscaler.cli.diagnosis.examination`; a rule that needs a further kind: add it
to _BUILT_IN_KINDS, or to _OPTIONAL_KINDS if not all clusters serve it. Collections are listed page by page, each once:
autoscalers, the kinds of their targets, quotas, limit ranges, and PodAutoscalers, VerticalPodAutoscalers and
ScaledObjects where the cluster serves them.

Invariant: a collection that may not be read is reported in `ClusterSnapshot.notes` and is unknown to the rules; it is
never taken for empty. HorizontalPodAutoscalers are the exception: without them `read_cluster` fails.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError, UsageError
from podscaler.base.version import __version__
from podscaler.cli.commands import all_pages
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import NO_KIND_MATCH, Discovery
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.transport import TransportError
from podscaler.lint.model import reading
from podscaler.lint.model.lint_context import HPA_KIND, POD_AUTOSCALER, LintContext, LintedCluster
from podscaler.lint.model.linted_item import DocumentOrigin, Item
from podscaler.lint.rules import served_metrics

GroupKind = tuple[str, str]
"""A group and a kind; the kind is in lower case in the fields of `ClusterSnapshot`."""

ALL_NAMESPACES: Sequence[str] = ()
"""In place of the names of namespaces: objects are listed in all of them."""
_BUILT_IN_KINDS: Sequence[GroupKind] = (("", "ResourceQuota"), ("", "LimitRange"))
_OPTIONAL_KINDS: Sequence[GroupKind] = (
    POD_AUTOSCALER,
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"),
    ("keda.sh", "ScaledObject"),
)


class _DiscoveredResource(msgspec.Struct):
    """A resource of a version: its plural name, `deployments` or `deployments/scale`."""

    name: str = ""


class _ResourceList(msgspec.Struct):
    """The response to `/apis/GROUP/VERSION`."""

    resources: list[_DiscoveredResource] = []


_D = TypeVar("_D")

_OBJECT_DECODER = msgspec.json.Decoder(dict[str, Any])
_RESOURCE_LIST_DECODER = msgspec.json.Decoder(_ResourceList)


@dataclass(slots=True)
class ClusterSnapshot:
    """The objects and the discovery of a cluster.

    Attributes:
        listed: the kinds whose objects were listed.
        scalable: whether a kind has a scale subresource.
        unserved: the kinds that the cluster does not serve.
        metrics: the metrics of each metrics API, by group; None if the group is not served.
        notes: sentences about what could not be read.
    """

    items: list[Item] = field(default_factory=list)
    listed: set[GroupKind] = field(default_factory=set)
    scalable: dict[GroupKind, bool] = field(default_factory=dict)
    unserved: set[GroupKind] = field(default_factory=set)
    metrics: dict[str, frozenset[str] | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def cluster(self) -> LintedCluster:
        """The part that rules read, besides the objects."""
        return LintedCluster(frozenset(self.listed), self.scalable, frozenset(self.unserved), self.metrics)


async def read_cluster(
    config: Config, namespaces: Sequence[str], file_items: Sequence[Item], clock: Clock
) -> ClusterSnapshot:
    """Read the objects of some namespaces.

    Args:
        namespaces: whose objects are listed; empty (ALL_NAMESPACES) for all.
        file_items: objects of files that are checked with the cluster's; the kinds of their targets are listed, too.

    Raises:
        UsageError: the cluster cannot be reached, or does not let the user list HorizontalPodAutoscalers.
    """
    transport = await http_transport.connect(config, user_agent=f"podscaler/{__version__} lint")
    client = Client(transport, clock)
    try:
        return await read_with_client(client, namespaces, file_items, clock)
    except TransportError as error:
        raise UsageError(f"cannot reach the API server {config.server} ({config.origin}): {error.cause}") from None
    except StatusError as error:
        raise UsageError(f"the API server {config.server} does not show its autoscalers: {error}") from None
    finally:
        await client.close()


async def read_with_client(
    client: Client, namespaces: Sequence[str], file_items: Sequence[Item], clock: Clock
) -> ClusterSnapshot:
    """As `read_cluster`, with an open client, which stays open.

    Raises StatusError if HorizontalPodAutoscalers may not be listed, TransportError where the server is not reached.
    """
    return await _ClusterReader(client, Discovery(client, clock), namespaces).read(file_items)


class _ClusterReader:
    """Reads one cluster into a snapshot; `namespaces` as in `read_cluster`.

    A TransportError, though a StatusError, is raised and never noted: the API server is not reached.
    """

    def __init__(self, client: Client, discovery: Discovery, namespaces: Sequence[str]) -> None:
        self._client = client
        self._discovery = discovery
        self._namespaces = namespaces
        self._snapshot = ClusterSnapshot()

    async def read(self, file_items: Sequence[Item]) -> ClusterSnapshot:
        """Read the objects and metrics that rules need; what may not be read is noted. Raises as `read_with_client`."""
        await self._list("autoscaling", "v2", "horizontalpodautoscalers", HPA_KIND)
        for kind in _BUILT_IN_KINDS:
            await self._try_to_list(kind)
        for kind in _OPTIONAL_KINDS:
            group, _ = kind
            if await self._find_versions(group):
                await self._try_to_list(kind)
        for kind in _target_kinds([*self._snapshot.items, *file_items]):
            await self._try_to_list(kind)
        for group in (served_metrics.RESOURCE, served_metrics.CUSTOM, served_metrics.EXTERNAL):
            await self._read_metrics(group)
        return self._snapshot

    async def _try_to_list(self, kind: GroupKind) -> None:
        """List a kind; an API error becomes a note. Raises TransportError."""
        _, kind_name = kind
        key = _snapshot_key(kind)
        if key in self._snapshot.listed:
            return
        try:
            mapping = (await self._discovery.mappings(*kind))[0]  # of the preferred version
            resource_names = await self._discover_resources(mapping.group, mapping.version)
            self._snapshot.scalable[key] = f"{mapping.plural}/scale" in resource_names
            await self._list(mapping.group, mapping.version, mapping.plural, mapping.kind)
        except TransportError:
            raise
        except StatusError as error:
            if error.reason == NO_KIND_MATCH:
                self._snapshot.unserved.add(key)
            else:
                self._snapshot.notes.append(f"{kind_name} objects are not known: {error}")

    async def _list(self, group: str, version: str, plural: str, kind: str) -> None:
        """List the objects of a kind into the snapshot, all of them or, with a StatusError, none."""
        prefix = urls.group_version(group, version)
        scopes = [urls.path("namespaces", namespace) for namespace in self._namespaces] or [""]
        api_version = f"{group}/{version}" if group else version
        items: list[Item] = []
        for scope in scopes:
            path = prefix + scope + urls.path(plural)
            async for object_json in all_pages.read_raw(self._client, path, subject=plural):
                listed_object = _decoded(object_json, _OBJECT_DECODER, plural)
                items += reading.items({**listed_object, "apiVersion": api_version, "kind": kind}, DocumentOrigin())
        self._snapshot.items += items
        self._snapshot.listed.add(_snapshot_key((group, kind)))

    async def _discover_resources(self, group: str, version: str) -> frozenset[str]:
        """The names of the resources of a version. Raises StatusError."""
        body = await self._client.get(urls.group_version(group, version), subject=f"discovery of {group}")
        return frozenset(resource.name for resource in _decoded(body, _RESOURCE_LIST_DECODER, group).resources)

    async def _find_versions(self, group: str) -> Sequence[str]:
        """The versions of a group; empty if not served, or (with a note) if discovery fails. Raises TransportError."""
        try:
            return await self._discovery.versions(group)
        except TransportError:
            raise
        except StatusError as error:
            self._snapshot.notes.append(f"whether {group} is served is not known: {error}")
            return ()

    async def _read_metrics(self, group: str) -> None:
        """Read into the snapshot which metrics an API lists; an API error becomes a note. Raises TransportError."""
        try:
            versions = await self._discovery.versions(group)
            # versions begin with the preferred one; each metric is listed as a resource of it
            self._snapshot.metrics[group] = await self._discover_resources(group, versions[0]) if versions else None
        except TransportError:
            raise
        except StatusError as error:
            self._snapshot.notes.append(f"the metrics of {group} are not known: {error}")


def _snapshot_key(kind: GroupKind) -> GroupKind:
    """The kind as the fields of ClusterSnapshot have it: in lower case."""
    group, kind_name = kind
    return group, kind_name.lower()


def _decoded(body: bytes | msgspec.Raw, decoder: "msgspec.json.Decoder[_D]", subject: str) -> "_D":
    """The content of a response by the decoder; `subject` is for the message. Raises StatusError."""
    try:
        return decoder.decode(body)
    except JSON_DECODE_ERRORS as error:
        raise StatusError(f"a response about {subject} cannot be read: {error}", code=0) from None


def _target_kinds(items: Iterable[Item]) -> list[GroupKind]:
    """The kinds that autoscalers refer to, each once."""
    kinds: dict[GroupKind, None] = {}
    for autoscaler in LintContext(items).autoscalers:
        kinds[autoscaler.target_key.group, autoscaler.reference.get("kind", "")] = None
    return list(kinds)
