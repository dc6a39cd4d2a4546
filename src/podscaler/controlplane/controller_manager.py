"""All controllers of the control plane, run together: what kube-controller-manager and kube-proxy are to a cluster.

`podscaler up` makes one `Controllers` and runs it until it stops. No controller can take another one down: whatever one
fails at is logged, told in events where a user can do something about it, and tried again.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from podscaler.api.resource.resources import Resource
from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.controlplane.aggregator.extension_authentication import ExtensionAuthentication
from podscaler.controlplane.controllers.apps.daemonset import DaemonSets
from podscaler.controlplane.controllers.apps.disruption import DisruptionBudgets
from podscaler.controlplane.controllers.apps.replicaset import REPLICATION_CONTROLLER, ReplicaSets
from podscaler.controlplane.controllers.apps.statefulset import StatefulSets
from podscaler.controlplane.controllers.cluster import apiservices
from podscaler.controlplane.controllers.cluster.aggregation import ClusterRoleAggregation
from podscaler.controlplane.controllers.cluster.apiservices import ApiServices, GroupVersion
from podscaler.controlplane.controllers.cluster.namespace_defaults import NamespaceDefaults
from podscaler.controlplane.controllers.cluster.token_secrets import IssueForSecret, TokenSecrets
from podscaler.controlplane.controllers.deployment.deployment import Deployments
from podscaler.controlplane.controllers.endpoints.endpoint_controller import EndpointController
from podscaler.controlplane.controllers.endpoints.endpointslices import EndpointSlices
from podscaler.controlplane.controllers.endpoints.mirroring import EndpointMirroring
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop, Reconciler
from podscaler.controlplane.controllers.gc.claim_protection import ClaimProtection
from podscaler.controlplane.controllers.gc.collector import GarbageCollector
from podscaler.controlplane.controllers.gc.event_expiry import EventExpiry
from podscaler.controlplane.controllers.gc.finished_pods import FinishedPods
from podscaler.controlplane.controllers.gc.namespace_deletion import NamespaceDeletion
from podscaler.controlplane.network.balancer import Address
from podscaler.controlplane.network.cluster_ips import ClusterIPs
from podscaler.controlplane.network.kubernetes_service import KubernetesService
from podscaler.controlplane.network.listener import raise_connection_limit
from podscaler.controlplane.network.proxy import ServiceProxy
from podscaler.controlplane.registry.known_kinds import KnownKinds
from podscaler.controlplane.registry.registry import Registry

ALL = frozenset(
    {
        "apiservice-registration",
        "cluster-authentication-trust",
        "clusterrole-aggregation-controller",
        "daemonset-controller",
        "deployment-controller",
        "disruption-controller",
        "endpoint-controller",
        "endpoint-slice-controller",
        "endpoint-slice-mirroring-controller",
        "event-expiry",
        "generic-garbage-collector",
        "kubernetes-service-controller",
        "namespace-controller",
        "namespace-defaults-controller",
        "persistentvolumeclaim-protection-controller",
        "pod-garbage-collector",
        "replicaset-controller",
        "replication-controller",
        "service-address-controller",
        "service-proxy",
        "serviceaccount-token-controller",
        "statefulset-controller",
    }
)
WORKLOADS = frozenset(
    {
        "daemonset-controller",
        "deployment-controller",
        "generic-garbage-collector",
        "namespace-controller",
        "replicaset-controller",
        "replication-controller",
        "statefulset-controller",
    }
)
"""What `--without-workload-controllers` leaves to another controller manager."""
API_SERVER = frozenset(
    {
        "apiservice-registration",
        "cluster-authentication-trust",
        "clusterrole-aggregation-controller",
        "event-expiry",
        "kubernetes-service-controller",
        "service-address-controller",
    }
)
"""What upstream's API server does itself, without any controller manager; and roles made of others are up to date."""
_WORKERS = {
    "clusterrole-aggregation-controller": 1,
    "event-expiry": 1,
    "generic-garbage-collector": 20,
    "persistentvolumeclaim-protection-controller": 1,
    "pod-garbage-collector": 1,
}
_USUAL_WORKERS = 5


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What controllers must know of the `up` that they run in.

    Attributes:
        resources: the served kinds (`catalog.RESOURCES`), or all there are at any time (`KnownKinds`).
        cluster_ips: who gives Services their addresses; it has been primed.
        ca_certificate: PEM text of the API server's CA.
        server: IP address and port of the API server.
        group_versions: what the API server serves, apart from custom resources.
        front_authority: PEM text of the authority that vouches for the API server to others, None where nobody does.
        issue_for_secret: makes the tokens that Secrets keep, None where service accounts have none.
    """

    resources: Iterable[Resource]
    cluster_ips: ClusterIPs
    ca_certificate: str
    server: Address
    group_versions: tuple[GroupVersion, ...] = ()
    issue_for_secret: IssueForSecret | None = None
    front_authority: str | None = None


class Controllers:
    """See the module.

    Args:
        registry: the objects; `namespace_defaults.make_system_namespaces` has been awaited on it.
        clock: time of day and waiting.
        facts: about this `up`.
        enabled: names of those to run, of `ALL`.
    """

    def __init__(self, registry: Registry, clock: Clock, facts: ClusterFacts, *, enabled: Iterable[str] = ALL) -> None:
        self._registry = registry
        self._clock = clock
        self._facts = facts
        self._enabled = frozenset(enabled)
        self._proxy = ServiceProxy(registry, clock, limit=raise_connection_limit())

    async def run(self) -> None:
        """Run all that are enabled until cancelled; connections through Services are reset then."""
        try:
            async with asyncio.TaskGroup() as group:
                for name, make in self._makers().items():
                    if name in self._enabled:
                        group.create_task(self._keep_running(name, make), name=name)
        finally:
            self._proxy.close()

    def _makers(self) -> dict[str, Callable[[], Reconciler[Any]]]:
        registry, clock, facts = self._registry, self._clock, self._facts
        return {
            "apiservice-registration": self._apiservices,
            "service-address-controller": lambda: facts.cluster_ips,
            "kubernetes-service-controller": lambda: KubernetesService(registry, facts.server),
            "namespace-defaults-controller": lambda: NamespaceDefaults(registry, ca_certificate=facts.ca_certificate),
            "service-proxy": lambda: self._proxy,
            "endpoint-controller": lambda: EndpointController(registry, clock),
            "endpoint-slice-controller": lambda: EndpointSlices(registry, clock),
            "endpoint-slice-mirroring-controller": lambda: EndpointMirroring(registry, clock),
            "daemonset-controller": lambda: DaemonSets(registry, clock),
            "disruption-controller": lambda: DisruptionBudgets(registry, clock),
            "deployment-controller": lambda: Deployments(registry, clock),
            "replicaset-controller": lambda: ReplicaSets(registry, clock),
            "replication-controller": lambda: ReplicaSets(registry, clock, REPLICATION_CONTROLLER),
            "statefulset-controller": lambda: StatefulSets(registry, clock),
            "generic-garbage-collector": lambda: GarbageCollector(registry, facts.resources),
            "namespace-controller": lambda: NamespaceDeletion(registry, clock, facts.resources),
            "clusterrole-aggregation-controller": lambda: ClusterRoleAggregation(registry),
            "event-expiry": lambda: EventExpiry(registry, clock),
            "persistentvolumeclaim-protection-controller": lambda: ClaimProtection(registry),
            "pod-garbage-collector": lambda: FinishedPods(registry),
            **self._token_makers(),
            **self._trust_tellers(),
        }

    def _trust_tellers(self) -> dict[str, Callable[[], Reconciler[Any]]]:
        client, front = self._facts.ca_certificate, self._facts.front_authority
        if front is None:
            return {}
        make = partial(ExtensionAuthentication, self._registry, client_authority=client, front_authority=front)
        return {ExtensionAuthentication.name: make}

    def _token_makers(self) -> dict[str, Callable[[], Reconciler[Any]]]:
        issue, authority = self._facts.issue_for_secret, self._facts.ca_certificate
        if issue is None:
            return {}
        return {TokenSecrets.name: lambda: TokenSecrets(self._registry, issue, ca_certificate=authority)}

    def _apiservices(self) -> ApiServices:
        facts = self._facts
        has_definitions = any(resource.key == apiservices.DEFINITIONS for resource in facts.resources)
        return ApiServices(self._registry, facts.group_versions, has_definitions=has_definitions)

    async def _keep_running(self, name: str, make: Callable[[], Reconciler[Any]]) -> None:
        """A controller that fails as a whole (a defect) starts anew; only what is given out or open is remembered."""
        workers = _WORKERS.get(name, _USUAL_WORKERS)

        async def run() -> None:
            await ControlLoop(make(), self._registry, self._clock, workers=workers).run()

        kinds = self._facts.resources
        if isinstance(kinds, KnownKinds) and name == GarbageCollector.name:
            await supervision.keep_running(name, partial(kinds.restart_on_change, run), self._clock)
        else:
            await supervision.keep_running(name, run, self._clock)
