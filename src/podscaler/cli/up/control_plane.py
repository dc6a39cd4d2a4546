"""Wires and runs the control plane of one machine: API server, controllers, node, metrics and autoscaler.

`podscaler.cli.up.up` runs it. This module passes all dependencies; `ControlPlane._start` has the order. A background
task runs until the control plane is stopped; one that fails is started again without effect on the others. A new task
is a line in `_start`, or in `Machine.tasks` if it belongs to the node.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from podscaler.api.kinds import catalog
from podscaler.api.kinds.autoscaling import hpa_removed_versions
from podscaler.api.kinds.core import metrics
from podscaler.api.resource.resources import Resource
from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.cli.options import endpoints, recording
from podscaler.cli.options.endpoints import Serving
from podscaler.cli.up.machine import Machine, MachineSettings, NodeAuth
from podscaler.cli.up.own_autoscaler import OwnAutoscaler
from podscaler.cli.up.up_dashboard import UpDashboard
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.record_file import RecordFile
from podscaler.controller.recording.recording import Recording
from podscaler.controller.server.serving import Endpoints
from podscaler.controlplane import controller_manager
from podscaler.controlplane.admission import (
    account_admission,
    certificate_admission,
    limit_ranges,
    pod_classes,
    resource_quotas,
)
from podscaler.controlplane.aggregator.aggregation_layer import Aggregation
from podscaler.controlplane.apiserver.app import ApiServer
from podscaler.controlplane.apiserver.http.resource_request import NO_PARTS, ServerParts
from podscaler.controlplane.apiserver.webhooks.conversion_webhooks import ConversionWebhooks
from podscaler.controlplane.apiserver.webhooks.webhook_admission import WebhookAdmission
from podscaler.controlplane.auth import audit_log, authenticator, policy_index, token_file
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.auth.audit_log import AuditLog
from podscaler.controlplane.auth.authorizer import Authorizer
from podscaler.controlplane.controller_manager import ClusterFacts, Controllers
from podscaler.controlplane.controllers.cluster import bootstrap
from podscaler.controlplane.controllers.cluster.namespace_defaults import make_system_namespaces
from podscaler.controlplane.credentials import certificates, front_proxy, kubeconfig, secret_files, signing_key
from podscaler.controlplane.credentials.certificates import Certificates, ClientPair
from podscaler.controlplane.credentials.front_proxy import FrontProxy
from podscaler.controlplane.credentials.request_signing import RequestSigner
from podscaler.controlplane.credentials.signing_key import SigningKey
from podscaler.controlplane.kubelet.launching.image_map import ImageTable
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings, PodNetworkMode
from podscaler.controlplane.kubelet.server.node_access import NodeAccess
from podscaler.controlplane.metrics.heapster import service as heapster_service
from podscaler.controlplane.network import addresses, kubernetes_service
from podscaler.controlplane.network.cluster_ips import ClusterIPs
from podscaler.controlplane.registry.known_kinds import KnownKinds
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import CONTROLLERS, Registry
from podscaler.controlplane.registry.users import ADMIN, User, account_groups, account_name
from podscaler.controlplane.storage.store import open_store
from podscaler.kube.config import locate

HOST = "127.0.0.1"
"""The address on which the API server listens."""
AUTOSCALER_NAMESPACE = "kube-system"
AUTOSCALER_ACCOUNT = "horizontal-pod-autoscaler"
"""The service account of the autoscaler, with the permissions that it needs."""


@dataclass(frozen=True, slots=True)
class UpSettings:
    """The flags of `up` as values.

    Attributes:
        data_dir: the folder of the database, certificates, tokens, and the node's files.
        port: the API server's port; 0 for the port of the last run, or any free one.
        kubeconfig: where the kubeconfig is written.
        metric_resolution_s: seconds between readings of CPU and memory.
        autoscaler: the autoscaler's settings; None if it does not run.
        record: the file to which the autoscaler's syncs are recorded; None if they are not recorded.
        autoscaler_serving: the address of the autoscaler's /metrics, /healthz and /readyz; None if they are not served.
        serve_removed_apis: whether versions that Kubernetes has removed are served.
        api_only: the API server alone: no node, no controllers, no autoscaler; metrics are objects like others.
        runs_workload_controllers: False: another controller manager does the work of
            `controller_manager.WORKLOAD_CONTROLLERS`.
        serves_metrics_api: whether metrics.k8s.io is served.
        token_file: the file with further users and their tokens; None if there are none.
        anonymous_health: whether /healthz, /livez and /readyz need no credentials.
        audit_log: the file of the audit log, `-` for standard output; None: no audit log.
        serve_heapster: whether the node serves Heapster's API.
        dashboard_port: the port of the dashboard, 0: any free one; None if there is no dashboard.
        images: the table of `--image`.
        pod_network: whether pods get network namespaces.
        is_new_cluster: whether an empty cluster may take the place of one whose database is lost.
    """

    data_dir: Path
    port: int
    kubeconfig: Path
    metric_resolution_s: float
    autoscaler: ControllerSettings | None
    record: RecordFile | None = None
    autoscaler_serving: Serving | None = None
    serve_removed_apis: bool = False
    api_only: bool = False
    runs_workload_controllers: bool = True
    serves_metrics_api: bool = True
    token_file: Path | None = None
    anonymous_health: bool = False
    audit_log: Path | None = None
    serve_heapster: bool = False
    is_new_cluster: bool = False
    dashboard_port: int | None = None
    pod_network: PodNetworkMode = "auto"
    images: ImageTable = field(default_factory=dict)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The kinds that are served."""
        resources = catalog.RESOURCES
        if self.serve_removed_apis:
            resources = hpa_removed_versions.with_removed_versions(catalog.RESOURCES)
        if not self.serves_metrics_api:
            return metrics.without_metrics(resources)
        return metrics.with_stored_metrics(resources) if self.api_only else resources

    @property
    def enabled_controllers(self) -> frozenset[str]:
        """The names of the controllers that run."""
        if self.api_only:
            return controller_manager.API_SERVER_CONTROLLERS
        if self.runs_workload_controllers:
            return controller_manager.ALL_CONTROLLERS
        return controller_manager.ALL_CONTROLLERS - controller_manager.WORKLOAD_CONTROLLERS


@dataclass(frozen=True, slots=True)
class _Access:
    """The credentials of the data directory, and the port of the last run.

    Attributes:
        certificates: those of the API server, with their authority.
        last_port: the API server's port of the last run; 0: any free one.
        users: the further users of the token file, by token.
        account_key: signs the tokens of service accounts.
        autoscaler_pair: the client certificate of the autoscaler, with its key.
        front_proxy: the identity with which the API server calls extension API servers.
    """

    certificates: Certificates
    admin_token: str
    last_port: int
    users: dict[str, User]
    account_key: SigningKey
    autoscaler_pair: ClientPair
    front_proxy: FrontProxy


class ControlPlane:
    """All parts of one `podscaler up`, from `start` to `stop`.

    Attributes:
        url: the API server's URL, after `start`.
        dashboard: the dashboard, which is not served yet, after `start`; None if there is none.
    """

    def __init__(self, settings: UpSettings, clock: Clock) -> None:
        self._settings = settings
        self._resources = settings.resources
        self._clock = clock
        self._exit_stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.url = ""
        self.dashboard: UpDashboard | None = None

    async def start(self) -> None:
        """Start everything; the API server responds to requests when this returns.

        Raises:
            UsageError: the data directory, the port or a file of the flags cannot be used, or a demanded network
                namespace is impossible. After this and any other exception nothing is left running.
        """
        try:
            await self._start()
        except BaseException as error:
            await self._exit_stack.aclose()
            if isinstance(error, OSError | StatusError):  # a full disk, for one
                reason = error.message if isinstance(error, StatusError) else error.strerror or error
                raise UsageError(f"the data directory {self._settings.data_dir} cannot be used: {reason}") from error
            raise

    async def stop(self) -> None:
        """End the tasks, the server and every process that was started, in reverse order, and close the database."""
        await self._exit_stack.aclose()

    async def _start(self) -> None:
        """Make and start all parts, each after those that it depends on; `_exit_stack` stops them in reverse order."""
        data_dir = self._settings.data_dir
        store = await open_store(data_dir, self._clock, is_new_cluster=self._settings.is_new_cluster)
        self._exit_stack.push_async_callback(store.close)
        address_block = await asyncio.to_thread(addresses.claim_block, number_file=data_dir / "address-block")
        self._exit_stack.callback(address_block.close)
        recorder = await self._exit_stack.enter_async_context(
            recording.open_recording(self._settings.record, self._clock)
        )
        objects = Objects(store, [resource for resource in self._resources if resource.stored])
        registry = Registry(objects, "kube-apiserver")
        kinds = KnownKinds(objects)
        await self._make_system_objects(registry)
        cluster_ips = self._allocate_cluster_ips(registry, objects, address_block)
        service_ip = await kubernetes_service.ensure_service_ip(registry)
        access = await asyncio.to_thread(_ensure_access, self._settings, self._clock.now_ns(), service_ip)
        accounts = AccountTokens(access.account_key, objects.find, self._clock)
        request_authenticator, authorizer = self._make_auth(objects, access, accounts)
        _register_admission(objects, authorizer, self._clock, has_accounts=not self._settings.api_only)
        node_auth = NodeAuth(accounts, NodeAccess(request_authenticator, authorizer))
        machine = self._make_machine(registry, address_block, kinds, node_auth)
        audit = await self._open_audit()
        aggregation = Aggregation(objects, self._clock, access.front_proxy.client_path)
        self._exit_stack.push_async_callback(aggregation.close)
        machine_parts = machine.server_parts if machine is not None else NO_PARTS
        server_parts = replace(
            machine_parts, accounts=accounts, authorizer=authorizer, audit_log=audit, aggregation=aggregation
        )
        webhooks = self._enable_webhooks(objects)
        server = self._make_server(objects, access, request_authenticator, server_parts)
        server.custom_kinds.listen(kinds.notify)
        port = await self._listen(server, access.last_port)
        webhooks.client.own_addresses |= {(HOST, port), (service_ip, kubernetes_service.PORT)}  # refused: a circle
        self.url = f"https://{HOST}:{port}"
        await asyncio.to_thread(_write_access, self._settings, access, self.url)

        facts = ClusterFacts(
            resources=kinds,
            cluster_ips=cluster_ips,
            ca_certificate=access.certificates.authority_pem.decode(),
            server=(HOST, port),
            group_versions=server.group_versions,
            issue_for_secret=accounts.issue_for_secret,
            signer=RequestSigner(data_dir / "certificates"),
            front_authority=access.front_proxy.authority_pem.decode(),
            node_address=address_block.node_address,
        )
        enabled = self._settings.enabled_controllers
        controllers = Controllers(registry.acting_as(CONTROLLERS), self._clock, facts, enabled=enabled)
        node_tasks = machine.tasks if machine is not None else {}
        if machine is not None:
            self._exit_stack.push_async_callback(machine.stop)
            await machine.open_demanded_networks()
        self._exit_stack.push_async_callback(self._end_tasks)
        for name, run in {**node_tasks, "controllers": controllers.run, "aggregation": aggregation.run}.items():
            self._begin_task(name, run)
        heapster_url = await self._serve_heapster(machine, registry)
        if self._settings.autoscaler is not None:
            self._begin_task(
                "autoscaler", await self._make_autoscaler(self._settings.autoscaler, recorder, heapster_url)
            )

    def _enable_webhooks(self, objects: Objects) -> WebhookAdmission:
        """Have admission and conversion webhooks called; returns the admission."""
        webhooks = WebhookAdmission(objects)
        self._exit_stack.push_async_callback(webhooks.client.close)
        objects.admission = webhooks
        objects.converter = ConversionWebhooks(webhooks.client)
        return webhooks

    def _allocate_cluster_ips(
        self, registry: Registry, objects: Objects, address_block: addresses.AddressBlock
    ) -> ClusterIPs:
        """Have Services get their cluster IPs from the address block; returns the allocator."""
        cluster_ips = ClusterIPs(registry, self._clock, address_block)
        cluster_ips.prime()
        objects.set_allocator("services", cluster_ips.allocate)
        objects.listen(cluster_ips.on_commit)
        return cluster_ips

    async def _serve_heapster(self, machine: Machine | None, registry: Registry) -> str:
        """Serve Heapster's API, or remove its Service if it is not served; returns the URL, empty if not served."""
        if machine is not None and self._settings.serve_heapster:
            return await machine.start_heapster()
        await heapster_service.remove(registry)
        return ""

    async def _make_system_objects(self, registry: Registry) -> None:
        """Create what a cluster has before its first client."""
        await make_system_namespaces(registry)
        await bootstrap.ensure_policy(registry)
        await pod_classes.make_system_classes(registry)
        if self._settings.autoscaler is not None:
            await bootstrap.ensure_definition(registry)

    async def _open_audit(self) -> AuditLog | None:
        """Open the audit log and start its writer, which ends after the server; None without `--audit-log`."""
        if self._settings.audit_log is None:
            return None
        log = await asyncio.to_thread(audit_log.open_log, self._settings.audit_log)
        writer = asyncio.create_task(supervision.keep_running("audit log", log.run, self._clock), name="audit log")

        async def close() -> None:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            await log.close()

        self._exit_stack.push_async_callback(close)
        return log

    async def _listen(self, server: ApiServer, last_port: int) -> int:
        """Start the server, which `_exit_stack` stops; returns its port. Raises UsageError."""
        port = await self._bind_port(server, last_port)
        self._exit_stack.push_async_callback(server.stop)
        return port

    async def _bind_port(self, server: ApiServer, last_port: int) -> int:
        """Start the server on the port of the flag, else on that of the last run, else on any free one."""
        if self._settings.port:
            return await server.start(HOST, self._settings.port)
        try:
            return await server.start(HOST, last_port)
        except UsageError:  # another process has the port of the last run: any free one
            return await server.start(HOST, 0)

    def _make_auth(
        self, objects: Objects, access: _Access, accounts: AccountTokens
    ) -> tuple[authenticator.Authenticator, Authorizer]:
        """The authentication and authorization of requests."""
        stored = [resource.key for resource in self._resources if resource.stored]
        request_authenticator = authenticator.Authenticator({**access.users, access.admin_token: ADMIN}, accounts)
        return request_authenticator, Authorizer(policy_index.watch_policy(objects, stored))

    def _make_machine(
        self, registry: Registry, address_block: addresses.AddressBlock, kinds: KnownKinds, auth: NodeAuth
    ) -> Machine | None:
        """The node, which is not started yet; None with `--api-only`."""
        if self._settings.api_only:
            return None
        settings = MachineSettings(
            KubeletSettings(self._settings.data_dir / "node", pod_network=self._settings.pod_network),
            certificates_folder=self._settings.data_dir / "certificates",
            metric_resolution_s=self._settings.metric_resolution_s,
            images=self._settings.images,
        )
        kubelet = registry.acting_as("kubelet")
        return Machine(settings, kubelet, kinds, self._clock, block=address_block, auth=auth)

    def _make_server(
        self,
        objects: Objects,
        access: _Access,
        request_authenticator: authenticator.Authenticator,
        server_parts: ServerParts,
    ) -> ApiServer:
        """The API server, which does not listen yet."""
        return ApiServer(
            objects,
            self._resources,
            authenticator=request_authenticator,
            tls=access.certificates.server_context(),
            clock=self._clock,
            parts=replace(server_parts, anonymous_health=self._settings.anonymous_health),
        )

    async def _make_autoscaler(
        self, settings: ControllerSettings, recorder: Recording, heapster_url: str
    ) -> Callable[[], Awaitable[None]]:
        """The function that runs the autoscaler; serves its endpoints from now on, and makes `self.dashboard`."""
        if settings.heapster is not None and not settings.heapster.url:
            settings = replace(settings, heapster=replace(settings.heapster, url=heapster_url))
        dashboard = None
        if self._settings.dashboard_port is not None:
            dashboard = self.dashboard = UpDashboard(settings, self._clock, recorder, self._settings.dashboard_port)
            self._exit_stack.push_async_callback(dashboard.stop)
        autoscaler = OwnAutoscaler(
            settings,
            self._clock,
            recorder if dashboard is None else dashboard.history,
            on_controller=None if dashboard is None else dashboard.attach,
        )
        autoscaler_endpoints = Endpoints(autoscaler, autoscaler.unready)
        serving = endpoints.serve(self._settings.autoscaler_serving, autoscaler_endpoints, self._clock)
        await self._exit_stack.enter_async_context(serving)

        async def run() -> None:
            config = await asyncio.to_thread(locate.find_config, str(_autoscaler_kubeconfig(self._settings.data_dir)))
            await autoscaler.run(config)

        return run

    def _begin_task(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(supervision.keep_running(name, run, self._clock), name=name))

    async def _end_tasks(self) -> None:
        """Cancel all background tasks, and wait for their end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _register_admission(objects: Objects, authorizer: Authorizer, clock: Clock, *, has_accounts: bool) -> None:
    """Add the admission of pods, claims and certificates, and by quotas; `has_accounts`: pods get service accounts."""
    limit_ranges.register(objects)
    pod_classes.register(objects)
    resource_quotas.register(objects)
    if has_accounts:
        account_admission.register(objects, Random())
    certificate_admission.register_requests(objects, authorizer, clock)
    certificate_admission.register_bundles(objects, authorizer)


def _ensure_access(settings: UpSettings, now_ns: int, service_ip: str) -> _Access:
    """The credentials; missing ones are created, expiring certificates renewed. Blocks. Raises UsageError, OSError."""
    data_dir = settings.data_dir
    account = account_name(AUTOSCALER_NAMESPACE, AUTOSCALER_ACCOUNT)
    client_path = data_dir / "certificates" / "autoscaler.pem"
    groups = account_groups(AUTOSCALER_NAMESPACE)
    return _Access(
        certificates=certificates.ensure(data_dir / "certificates", now_ns=now_ns, addresses=(service_ip,)),
        users=token_file.read(settings.token_file) if settings.token_file is not None else {},
        account_key=signing_key.ensure(data_dir / "service-account.key"),
        autoscaler_pair=certificates.ensure_client(client_path, account, groups, now_ns=now_ns),
        last_port=_read_port(data_dir / "port"),
        front_proxy=front_proxy.ensure(data_dir / "certificates" / "front-proxy", now_ns=now_ns),
        admin_token=authenticator.ensure_token(data_dir / "token"),
    )


def _read_port(path: Path) -> int:
    """The port of the last run in a file; 0 if there is none, or it is invalid."""
    try:
        port = int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0
    return port if 0 < port < 65536 else 0


def _write_access(settings: UpSettings, access: _Access, url: str) -> None:
    """Write the port for the next run, and the kubeconfigs of administrator and autoscaler. Blocks. Raises OSError."""
    secret_files.write(settings.data_dir / "port", url.rpartition(":")[2].encode())
    authority = access.certificates.authority_pem
    admin_document = kubeconfig.token_document(server_url=url, authority_pem=authority, token=access.admin_token)
    kubeconfig.write(settings.kubeconfig, admin_document)
    if settings.autoscaler is not None:
        document = kubeconfig.certificate_document(server_url=url, authority_pem=authority, pair=access.autoscaler_pair)
        kubeconfig.write(_autoscaler_kubeconfig(settings.data_dir), document)


def _autoscaler_kubeconfig(data_dir: Path) -> Path:
    return data_dir / "autoscaler.kubeconfig"
