"""Defines the two arguments of every handler: the server context, and the request to a resource.

`app` creates the `ServerContext` once; `dispatch` creates a `ResourceRequest` for each request to a resource. A new
optional part of the server: a field of `ServerParts`, which `podscaler.cli.up.machine` fills.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from podscaler.api.managed_fields.manager_names import NAME_MAX_BYTES
from podscaler.api.resource.resources import Object, Strategy
from podscaler.base.clock import Clock
from podscaler.controlplane.aggregator.aggregation_layer import Aggregation
from podscaler.controlplane.aggregator.remote_versions import Remote
from podscaler.controlplane.apiserver.http import request_bodies
from podscaler.controlplane.apiserver.http.negotiation import Form
from podscaler.controlplane.apiserver.http.open_sessions import OpenSessions
from podscaler.controlplane.apiserver.http.query_options import Query, WriteOptions
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind, DecodedBody, Kinds
from podscaler.controlplane.apiserver.http.request_paths import ResourcePath
from podscaler.controlplane.apiserver.http.response_encoder import ResponseEncoder
from podscaler.controlplane.apiserver.http.routes import ServedResource
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.auth.audit_log import AuditLog
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer
from podscaler.controlplane.registry import acting_user
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.pod_connections import NodeEndpoint, PodConnections
from podscaler.controlplane.registry.providers import MetricApis, PodLogs, VirtualObjects
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import Author

NO_WARNINGS = Strategy().warnings
"""The `warnings` function of kinds that never warn."""


@dataclass(frozen=True, slots=True)
class ServerParts:
    """The other parts of the control plane that the API server exposes; each is optional.

    Attributes:
        virtual_objects: providers of objects that are computed, not stored, by `Resource.key`.
        logs: reads the logs of containers.
        connections: opens exec, attach and port-forward sessions.
        find_node_endpoint: returns the HTTPS endpoint of the node, None before it listens; itself None without a node.
        checks: health checks by name; each returns the reason of its failure, or an empty text.
        metrics: serves custom.metrics.k8s.io and external.metrics.k8s.io.
        accounts: issues tokens of service accounts; the authenticator must accept them too.
        anonymous_health: whether /healthz, /livez and /readyz are served without credentials.
        audit_log: receives an audit event for each stage of each request.
        aggregation: the aggregation layer: groups and versions that other API servers serve.
        authorizer: decides about requests; None for a new one that follows the stored policy.
        documents: make the JSON documents of `/podscaler/NAME`, by name.
    """

    virtual_objects: Mapping[str, VirtualObjects] = field(default_factory=dict)
    logs: PodLogs | None = None
    connections: PodConnections | None = None
    find_node_endpoint: Callable[[], NodeEndpoint | None] | None = None
    checks: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    metrics: MetricApis | None = None
    accounts: AccountTokens | None = None
    anonymous_health: bool = False
    audit_log: AuditLog | None = None
    aggregation: Aggregation | None = None
    authorizer: Authorizer | None = None
    documents: Mapping[str, Callable[[], Any]] = field(default_factory=dict)


NO_PARTS = ServerParts()


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The state that all requests share.

    Attributes:
        objects: the stored objects.
        clock: the wall clock, for ages and times.
        parts: the optional parts of the control plane.
        kinds: every kind that a request body may have, by apiVersion and kind.
        encoder: encodes stored objects for responses.
        sessions: the open exec, attach and port-forward sessions.
        authorizer: decides about rights that a handler has to check besides those of the request itself.
    """

    objects: Objects
    clock: Clock
    kinds: Kinds
    parts: ServerParts
    encoder: ResponseEncoder
    sessions: OpenSessions
    authorizer: Authorizer

    def remote_of(self, group: str, version: str) -> Remote | None:
        """The other API server that serves a group and version, None if this one does or none does."""
        aggregation = self.parts.aggregation
        return aggregation.remotes.find(group, version) if aggregation is not None else None

    def metrics_of(self, group: str) -> MetricApis | None:
        """The provider of the metrics APIs; None if there is none, or if another API server serves the group."""
        aggregation = self.parts.aggregation
        return None if aggregation is not None and aggregation.remotes.has_group(group) else self.parts.metrics


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """One request to a resource: authenticated, authorized and routed.

    Attributes:
        http: the HTTP request.
        path: the parts of its path.
        query: its query parameters.
        served: the resource, in the API version of the path.
        form: the negotiated form of the response.
        warnings: texts for `Warning` headers of the response, also of an error; handlers append to it.
    """

    http: web.BaseRequest
    path: ResourcePath
    query: Query
    served: ServedResource
    form: Form
    warnings: list[str] = field(default_factory=list)

    @property
    def resource_key(self) -> str:
        """The `Resource.key` of the resource: `deployments.apps`."""
        return self.served.resource.key

    @property
    def content_type(self) -> str:
        """The `Content-Type` header, empty if there is none."""
        return self.http.headers.get("Content-Type", "")

    @property
    def kind(self) -> BodyKind:
        """The kind of the resource, in the version of the path."""
        return kind_of(self.served)

    @property
    def may_warn(self) -> bool:
        """Whether the kind may warn about this write: writes of subresources never warn."""
        return self.served.resource.strategy.warnings is not NO_WARNINGS and not self.path.subresource

    def warn(self, entry: Entry, before: Object | None) -> None:
        """Append the kind's warnings about a write from `before` (None if the object is created) to `entry`."""
        if self.may_warn:
            self.warnings.extend(self.served.resource.strategy.warnings(entry.decode(), before))

    def author(self, options: WriteOptions) -> Author:
        """The field manager of what the request writes, from `fieldManager` or else the program of its User-Agent.

        Source: kube-apiserver's managerOrUserAgent.
        """
        manager = options.field_manager or prefix_from_user_agent(self.http.headers.get("User-Agent", ""))
        return Author(manager, self.served.api_version)

    async def receive(self, expected: BodyKind, kinds: Kinds, options: WriteOptions) -> DecodedBody:
        """The decoded body, which must be an object of the kind and version `expected`; its warnings are appended.

        `kinds` are all that a body may state (`ServerContext.kinds`), for the error about another one.

        Raises StatusError 400, 408, 413, 415.
        """
        body = await request_bodies.read(self.http)
        received = request_bodies.decode(body, self.content_type, expected, kinds, validation=options.field_validation)
        self.warnings.extend(received.warnings)
        request_bodies.check_version(received, expected)
        return received

    def check_may_create(self, authorizer: Authorizer) -> None:
        """Check that the user may also create the object of the path, for PUT and PATCH that create.

        Raises StatusError 403.
        """
        path = self.path
        create = Attributes(
            "create", group=path.group, resource=path.resource, namespace=path.namespace, name=path.name
        )
        authorizer.authorize(acting_user.current(), create)


def kind_of(served: ServedResource) -> BodyKind:
    """The kind of a resource in the version served."""
    return BodyKind(served.api_version, served.resource.kind, served.version.message, served.version.decode)


def prefix_from_user_agent(user_agent: str) -> str:
    """The printable text before the first slash of a User-Agent, cut at the longest name of a field manager.

    Only whole characters are kept, although the limit is one of bytes.
    """
    program, _, _ = user_agent.partition("/")
    manager_name = ""
    length_bytes = 0
    for character in filter(str.isprintable, program):
        length_bytes += len(character.encode("utf-8", "replace"))
        if length_bytes > NAME_MAX_BYTES:
            break
        manager_name += character
    return manager_name
