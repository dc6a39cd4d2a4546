"""Runs all controllers of the control plane (kube-controller-manager and kube-proxy of a cluster).

`podscaler.cli.up.control_plane` creates one `Controllers` and runs it. Controllers are independent: an error in one is
logged, recorded as an Event if a user can act on it, and retried. A new controller: its name in `ALL_CONTROLLERS` (and
in the sets of names below that it belongs to), its factory in `Controllers._factories`.
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
from podscaler.controlplane.controllers.batch.cronjobs import CronJobs
from podscaler.controlplane.controllers.batch.finished_jobs import FinishedJobs
from podscaler.controlplane.controllers.batch.jobs import Jobs
from podscaler.controlplane.controllers.cluster import apiservices
from podscaler.controlplane.controllers.cluster.apiservices import ApiServices, GroupVersion
from podscaler.controlplane.controllers.cluster.certificate_signing import CertificateSigning
from podscaler.controlplane.controllers.cluster.namespace_defaults import NamespaceDefaults
from podscaler.controlplane.controllers.cluster.resource_quota import ResourceQuotas
from podscaler.controlplane.controllers.cluster.role_aggregation import ClusterRoleAggregation
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
from podscaler.controlplane.credentials.request_signing import RequestSigner
from podscaler.controlplane.network.balancer import Address
from podscaler.controlplane.network.cluster_ips import ClusterIPs
from podscaler.controlplane.network.kubernetes_service import KubernetesService
from podscaler.controlplane.network.port_listener import raise_connection_limit
from podscaler.controlplane.network.service_proxy import ServiceProxy
from podscaler.controlplane.registry.known_kinds import KnownKinds
from podscaler.controlplane.registry.registry import Registry

ALL_CONTROLLERS = frozenset(
    {
        "apiservice-registration",
        "certificatesigningrequest-signing-controller",
        "cluster-authentication-trust",
        "clusterrole-aggregation-controller",
        "cronjob-controller",
        "daemonset-controller",
        "deployment-controller",
        "disruption-controller",
        "endpoint-controller",
        "endpoint-slice-controller",
        "endpoint-slice-mirroring-controller",
        "event-expiry",
        "generic-garbage-collector",
        "job-controller",
        "kubernetes-service-controller",
        "namespace-controller",
        "namespace-defaults-controller",
        "persistentvolumeclaim-protection-controller",
        "pod-garbage-collector",
        "replicaset-controller",
        "replication-controller",
        "resourcequota-controller",
        "service-address-controller",
        "service-proxy",
        "serviceaccount-token-controller",
        "statefulset-controller",
        "ttl-after-finished-controller",
    }
)
"""The names of all controllers, as in `Reconciler.name`."""
WORKLOAD_CONTROLLERS = frozenset(
    {
        "cronjob-controller",
        "daemonset-controller",
        "deployment-controller",
        "generic-garbage-collector",
        "job-controller",
        "namespace-controller",
        "replicaset-controller",
        "replication-controller",
        "statefulset-controller",
        "ttl-after-finished-controller",
    }
)
"""The controllers that `--without-workload-controllers` disables, for another controller manager."""
API_SERVER_CONTROLLERS = frozenset(
    {
        "apiservice-registration",
        "cluster-authentication-trust",
        "clusterrole-aggregation-controller",
        "event-expiry",
        "kubernetes-service-controller",
        "service-address-controller",
    }
)
"""The controllers of `--api-only`: those of kube-apiserver itself, and the aggregation of ClusterRoles."""
_WORKERS_BY_CONTROLLER = {
    "clusterrole-aggregation-controller": 1,
    "event-expiry": 1,
    "generic-garbage-collector": 20,
    "persistentvolumeclaim-protection-controller": 1,
    "pod-garbage-collector": 1,
}
_DEFAULT_WORKERS = 5
"""How many keys a controller syncs at a time, unless `_WORKERS_BY_CONTROLLER` has another number."""
_WATCHERS_OF_ALL_KINDS = frozenset({GarbageCollector.name, ResourceQuotas.name})
"""The controllers that list the served kinds when they start: they restart when a custom kind is added or removed."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The properties of this cluster that controllers need.

    Attributes:
        resources: the served kinds: `catalog.RESOURCES`, or `KnownKinds`, which includes custom kinds.
        cluster_ips: the allocator of Services' addresses, already primed, which is also a controller.
        ca_certificate: PEM text of the API server's CA, which also signs client certificates.
        server: IP address and port of the API server.
        group_versions: the served groups and versions except those of custom resources.
        issue_for_secret: issues tokens for Secrets, None without service account tokens.
        signer: signs client certificates, None without the cluster's authority.
        node_address: the IP address on which the node ports of Services are listened on, empty for none.
        front_authority: PEM text of the front-proxy CA, None without aggregation.
    """

    resources: Iterable[Resource]
    cluster_ips: ClusterIPs
    ca_certificate: str
    server: Address
    group_versions: tuple[GroupVersion, ...] = ()
    issue_for_secret: IssueForSecret | None = None
    front_authority: str | None = None
    signer: RequestSigner | None = None
    node_address: str = ""


class Controllers:
    """All controllers of one control plane.

    Args:
        registry: the objects; the system namespaces exist (`namespace_defaults.make_system_namespaces`).
        clock: time and delays.
        facts: the properties of this cluster.
        enabled: the names of the controllers to run, from `ALL_CONTROLLERS`.
    """

    def __init__(
        self, registry: Registry, clock: Clock, facts: ClusterFacts, *, enabled: Iterable[str] = ALL_CONTROLLERS
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._facts = facts
        self._enabled = frozenset(enabled)
        self._proxy = ServiceProxy(
            registry, clock, max_connections=raise_connection_limit(), node_address=facts.node_address
        )

    async def run(self) -> None:
        """Run the enabled controllers until cancelled; then reset the connections through Services."""
        try:
            async with asyncio.TaskGroup() as group:
                for name, create in self._factories().items():
                    if name in self._enabled:
                        group.create_task(self._keep_running(name, create), name=name)
        finally:
            self._proxy.close()

    def _factories(self) -> dict[str, Callable[[], Reconciler[Any]]]:
        """The functions that create controllers, by name.

        Those of service addresses and of the proxy return the same object again, so that a restart keeps its state.
        """
        registry, clock, facts = self._registry, self._clock, self._facts
        return {
            "apiservice-registration": self._create_apiservices,
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
            "cronjob-controller": lambda: CronJobs(registry, clock),
            "job-controller": lambda: Jobs(registry, clock),
            "ttl-after-finished-controller": lambda: FinishedJobs(registry, clock),
            "generic-garbage-collector": lambda: GarbageCollector(registry, facts.resources),
            "namespace-controller": lambda: NamespaceDeletion(registry, clock, facts.resources),
            "clusterrole-aggregation-controller": lambda: ClusterRoleAggregation(registry),
            "event-expiry": lambda: EventExpiry(registry, clock),
            "persistentvolumeclaim-protection-controller": lambda: ClaimProtection(registry),
            "resourcequota-controller": lambda: ResourceQuotas(registry, clock, facts.resources),
            "pod-garbage-collector": lambda: FinishedPods(registry),
            **self._optional_factories(),
        }

    def _optional_factories(self) -> dict[str, Callable[[], Reconciler[Any]]]:
        """The factories of controllers that need a part of `ClusterFacts` that may be None, as far as it is there."""
        facts = self._facts
        factories: dict[str, Callable[[], Reconciler[Any]]] = {}
        if facts.issue_for_secret is not None:
            factories[TokenSecrets.name] = partial(
                TokenSecrets, self._registry, issue=facts.issue_for_secret, ca_certificate=facts.ca_certificate
            )
        if facts.signer is not None:
            factories[CertificateSigning.name] = partial(CertificateSigning, self._registry, self._clock, facts.signer)
        if facts.front_authority is not None:
            factories[ExtensionAuthentication.name] = partial(
                ExtensionAuthentication,
                self._registry,
                client_authority=facts.ca_certificate,
                front_authority=facts.front_authority,
            )
        return factories

    def _create_apiservices(self) -> ApiServices:
        """The controller of APIServices, which watches CustomResourceDefinitions only where they are served."""
        facts = self._facts
        has_definitions = any(resource.key == apiservices.DEFINITIONS for resource in facts.resources)
        return ApiServices(self._registry, facts.group_versions, has_definitions=has_definitions)

    async def _keep_running(self, name: str, create: Callable[[], Reconciler[Any]]) -> None:
        """Run a controller, and restart it if it fails as a whole (a defect), or kinds change that it watches."""
        workers = _WORKERS_BY_CONTROLLER.get(name, _DEFAULT_WORKERS)

        async def run() -> None:
            await ControlLoop(create(), self._registry, self._clock, workers=workers).run()

        kinds = self._facts.resources
        if isinstance(kinds, KnownKinds) and name in _WATCHERS_OF_ALL_KINDS:
            await supervision.keep_running(name, partial(kinds.restart_on_change, run), self._clock)
        else:
            await supervision.keep_running(name, run, self._clock)
