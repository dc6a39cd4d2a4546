"""One request to a resource, and what handlers work with.

`app` makes both; every handler is a function of the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from podscaler.api.resource.resources import Object, Strategy
from podscaler.base.clock import Clock
from podscaler.controlplane.aggregator.layer import Aggregation
from podscaler.controlplane.aggregator.versions import Remote
from podscaler.controlplane.apiserver.http.bodies import BodyKind, Kinds
from podscaler.controlplane.apiserver.http.negotiation import Form
from podscaler.controlplane.apiserver.http.open_sessions import OpenSessions
from podscaler.controlplane.apiserver.http.paths import ResourcePath
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.response_encoder import Shaper
from podscaler.controlplane.apiserver.http.routes import Served
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.auth.rules import Authorizer
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.pod_connections import PodConnections
from podscaler.controlplane.registry.providers import MetricApis, PodLogs, VirtualObjects
from podscaler.controlplane.storage.entries import Entry

SILENT = Strategy().warnings
"""The warnings of kinds that have none to give."""


@dataclass(frozen=True, slots=True)
class Plane:
    """What all requests share.

    Attributes:
        kinds: every kind that a body may be, by apiVersion and kind.
        virtual: providers of objects that are not stored, by `Resource.key`.
        logs: where containers' logs are read, None where no pods run.
        shaper: makes bodies of answers.
        sessions: exec, attach and port-forward that are open now.
        connections: where such sessions lead, None where no pods run.
        metrics: who answers for custom and external metrics, None where nobody does.
        accounts: makes tokens of service accounts, None where there are none.
        aggregation: who else serves what, None where nobody can.
        authorizer: says who may do what besides the request itself, None where everybody may do everything.
    """

    objects: Objects
    clock: Clock
    kinds: Kinds
    virtual: Mapping[str, VirtualObjects]
    logs: PodLogs | None
    shaper: Shaper
    sessions: OpenSessions
    connections: PodConnections | None = None
    metrics: MetricApis | None = None
    accounts: AccountTokens | None = None
    authorizer: Authorizer | None = None
    aggregation: Aggregation | None = None

    def remote_of(self, group: str, version: str) -> Remote | None:
        """The other server that has a group and version, None where it is this one."""
        return self.aggregation.remotes.find(group, version) if self.aggregation is not None else None

    def metrics_of(self, group: str) -> MetricApis | None:
        """Who answers for metrics of a group here: nobody, where another server serves that group."""
        is_elsewhere = self.aggregation is not None and self.aggregation.remotes.has_group(group)
        return None if is_elsewhere else self.metrics


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """One request to a resource, authenticated, authorized and routed.

    Attributes:
        warnings: what to tell the client besides the answer, even if that is a refusal; handlers add to it.
    """

    request: web.BaseRequest
    path: ResourcePath
    query: Query
    served: Served
    form: Form
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The `Resource.key` of what is asked for."""
        return self.served.resource.key

    @property
    def content_type(self) -> str:
        """The `Content-Type` header, empty where there is none."""
        return self.request.headers.get("Content-Type", "")

    def warn(self, entry: Entry, before: Object | None) -> None:
        """Tell the client what its kind says of a write: of the object now, and as it was (None: there was none).

        Nothing is said of a write through a subresource.
        """
        if self.may_warn:
            self.warnings.extend(self.served.resource.strategy.warnings(entry.decode(), before))

    @property
    def may_warn(self) -> bool:
        """Whether its kind may have anything to say of a write like this."""
        return self.served.resource.strategy.warnings is not SILENT and not self.path.subresource

    @property
    def kind(self) -> BodyKind:
        """The kind that the path is about."""
        return kind_of(self.served)


def kind_of(served: Served) -> BodyKind:
    """The kind of a resource in the version served."""
    return BodyKind(served.api_version, served.resource.kind, served.version.message, served.version.decode)
