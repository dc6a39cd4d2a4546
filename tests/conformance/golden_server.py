"""An API server without node and controllers, in a thread of its own, for tests that talk to it from outside.

Called by the replays of golden captures. Time stands still in the server: what happened in one second has an order of
its own (managedFields are in the order of their names then), whichever second ends meanwhile.
"""

import asyncio
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from podscaler.api.kinds import catalog
from podscaler.base.clock import SystemClock
from podscaler.controlplane.admission import certificate_admission, limit_ranges, pod_classes, resource_quotas
from podscaler.controlplane.aggregator.aggregation_layer import Aggregation
from podscaler.controlplane.apiserver.app import ApiServer
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.apiserver.webhooks.conversion_webhooks import ConversionWebhooks
from podscaler.controlplane.apiserver.webhooks.webhook_admission import WebhookAdmission
from podscaler.controlplane.auth import policy_index
from podscaler.controlplane.auth.account_tokens import AccountTokens
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.auth.authorizer import Authorizer
from podscaler.controlplane.controllers.cluster import bootstrap
from podscaler.controlplane.controllers.cluster.namespace_defaults import make_system_namespaces
from podscaler.controlplane.credentials import signing_key
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.cluster_ips import ClusterIPs
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.providers import VirtualObjects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.users import ADMIN, User
from podscaler.controlplane.storage.store import open_store, run_inline

ADMIN_TOKEN = "admin-token"
VIEWER_TOKEN = "viewer-token"
START_TIMEOUT_S = 120


class _StandingClock(SystemClock):
    """The machine's clocks, but for a wall clock that stands."""

    def __init__(self) -> None:
        self._now_ns = super().now_ns()

    def now_ns(self) -> int:
        """When the server began."""
        return self._now_ns


@contextmanager
def serving(
    folder: Path,
    *,
    tls: ssl.SSLContext | None = None,
    virtual: Mapping[str, VirtualObjects] | None = None,
) -> Iterator[int]:
    """The port of a server that keeps its objects in `folder`; computed kinds are served where `virtual` has them."""
    virtual = virtual or {}
    clock = _StandingClock()
    ports: list[int] = []
    started, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        store = await open_store(folder, clock, run=run_inline, is_synced=False)
        stored = [resource for resource in catalog.RESOURCES if resource.stored]
        served = [resource for resource in catalog.RESOURCES if resource.stored or resource.key in virtual]
        objects = Objects(store, stored)
        accounts = AccountTokens(signing_key.generate(), objects.find, clock)
        users = Authenticator(
            {ADMIN_TOKEN: replace(ADMIN, uid="1000"), VIEWER_TOKEN: User("viewer", ("viewers",), "1001")}, accounts
        )
        aggregation = Aggregation(objects, clock, folder / "nobody-is-asked.pem")
        parts = ServerParts(virtual_objects=virtual, accounts=accounts, aggregation=aggregation)
        await make_system_namespaces(Registry(objects))
        await bootstrap.ensure_policy(Registry(objects))
        await pod_classes.make_system_classes(Registry(objects))
        limit_ranges.register(objects)
        pod_classes.register(objects)
        resource_quotas.register(objects)
        policy = policy_index.watch_policy(objects, [resource.key for resource in stored])
        certificate_admission.register_requests(objects, Authorizer(policy), clock)
        certificate_admission.register_bundles(objects, Authorizer(policy))
        cluster_ips = ClusterIPs(Registry(objects), clock, AddressBlock(200))
        objects.set_allocator("services", cluster_ips.allocate)
        objects.listen(cluster_ips.on_commit)
        objects.admission = admission = WebhookAdmission(objects)
        objects.converter = ConversionWebhooks(admission.client)
        server = ApiServer(objects, served, authenticator=users, tls=tls, clock=clock, parts=parts)
        ports.append(await server.start("127.0.0.1", 0))
        started.set()
        await asyncio.to_thread(stop.wait)
        await server.stop()
        await admission.client.close()
        await store.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(START_TIMEOUT_S)
    yield ports[0]
    stop.set()
    thread.join(START_TIMEOUT_S)
