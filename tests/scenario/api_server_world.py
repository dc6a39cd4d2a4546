"""The embedded API server in the event loop of the test: HTTPS, a kubeconfig, real time, and controllers on it.

Called by the scenario tests of the controller. Pods and their metrics are played; nothing runs as a process.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from patience import WITHIN_S
from podscaler.api.kinds import catalog
from podscaler.api.kinds.autoscaling import pod_autoscaler
from podscaler.base.clock import SystemClock
from podscaler.controller import assembly
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controlplane.apiserver.app import ApiServer
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.credentials import certificates, kubeconfig
from podscaler.controlplane.registry.users import ADMIN
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport
from podscaler.testing.registry import OpenRegistry, open_registry

Object = dict[str, Any]
CLOCK = SystemClock()
TOKEN = "token-of-the-test"
SPEC: Object = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "minReplicas": 1,
    "maxReplicas": 10,
    "metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ],
}
TEMPLATE: Object = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}


class PlayedMetrics:
    """metrics.k8s.io: every pod uses the same.

    Attributes:
        asked: how often metrics were listed.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.cpu = "500m"
        self.pods: list[str] = []

    def list(self, namespace: str) -> list[Object]:
        self.asked += 1
        return [self._metrics(name) for name in self.pods if namespace in ("", "default")]

    def get(self, namespace: str, name: str) -> Object | None:
        return self._metrics(name) if name in self.pods and namespace == "default" else None

    def _metrics(self, name: str) -> Object:
        return {
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
            "timestamp": "2026-01-01T00:00:00Z",
            "window": "10s",
            "containers": [{"name": "c", "usage": {"cpu": self.cpu, "memory": "1Mi"}}],
        }


class ApiServerWorld:
    """An API server, controllers beside it, and the objects seen from inside.

    Args:
        folder: for the store, the certificates and the kubeconfig.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics = PlayedMetrics()
        self.opened: OpenRegistry
        self.server: ApiServer
        self.port = 0
        self.tasks: list[asyncio.Task[None]] = []
        self._exit = AsyncExitStack()
        self._server_exit = AsyncExitStack()

    async def start_server(self) -> None:
        """Open the store and listen, on the same port as before."""
        resources = [resource for resource in catalog.RESOURCES if resource.stored]
        self.opened = await self._server_exit.enter_async_context(open_registry(self.folder, resources, CLOCK))
        made = await asyncio.to_thread(certificates.ensure, self.folder / "certificates", now_ns=time.time_ns())
        self.server = ApiServer(
            self.opened.objects,
            catalog.RESOURCES,
            authenticator=Authenticator({TOKEN: ADMIN}),
            tls=made.server_context(),
            clock=CLOCK,
            parts=ServerParts(virtual_objects={"pods.metrics.k8s.io": self.metrics}),
        )
        self.port = await self.server.start("127.0.0.1", self.port)
        self._server_exit.push_async_callback(self.server.stop)
        document = kubeconfig.token_document(
            server_url=f"https://127.0.0.1:{self.port}", authority_pem=made.authority_pem, token=TOKEN
        )
        await asyncio.to_thread(kubeconfig.write, self.folder / "kubeconfig", document)

    async def stop_server(self) -> None:
        """Stop listening and close the store."""
        await self._server_exit.aclose()
        self._server_exit = AsyncExitStack()

    async def start_controller(self, user_agent: str = "test") -> None:
        """A controller that syncs five times a second, and stabilizes nothing."""
        config = await asyncio.to_thread(locate.find_config, str(self.folder / "kubeconfig"))
        client = Client(await http_transport.connect(config, user_agent=user_agent), CLOCK)
        self._exit.push_async_callback(client.close)
        settings = ControllerSettings(sync_period_ns=200_000_000, downscale_stabilization_ns=0)
        controller = assembly.new_controller(client, settings, CLOCK, rng=random.Random(1))
        self.tasks.append(asyncio.ensure_future(controller.run()))

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self._exit.aclose()
        await self.stop_server()

    async def create_system_namespace(self) -> None:
        """Where leases and histories are kept."""
        await self.opened.registry.create("namespaces", {"metadata": {"name": "kube-system"}})

    async def define_pod_autoscalers(self) -> None:
        """The server serves them from now on."""
        await self.opened.registry.create("customresourcedefinitions.apiextensions.k8s.io", pod_autoscaler.definition())
        await eventually(lambda: ("podscaler.dev", "v1alpha1") in self.server.group_versions)

    async def create_web(self, *, pods: int = 1) -> None:
        """The deployment with pods that are ready, and its autoscaler."""
        registry = self.opened.registry
        spec = {"replicas": pods, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
        await registry.create("deployments.apps", named("web", spec=spec))
        for number in range(pods):
            await self.add_pod(f"web-{number}")
        hpa = named("web", spec=SPEC) | {"apiVersion": "autoscaling/v2"}
        await registry.create("horizontalpodautoscalers.autoscaling", hpa)

    async def add_pod(self, name: str) -> None:
        """A pod that is ready since long, with metrics."""
        meta = {"name": name, "namespace": "default", "labels": {"app": "web"}}
        pod = await self.opened.registry.create("pods", {"metadata": meta, "spec": TEMPLATE["spec"]})
        long_ago = "2026-01-01T00:00:00Z"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": long_ago}
        pod["status"] = {"phase": "Running", "startTime": long_ago, "conditions": [ready]}
        await self.opened.registry.update("pods", pod, subresource="status")
        self.metrics.pods.append(name)

    def replicas(self) -> int:
        found: int = self.opened.registry.get("deployments.apps", "default", "web")["spec"]["replicas"]
        return found

    def hpa(self) -> Object:
        return self.opened.registry.get("horizontalpodautoscalers.autoscaling", "default", "web")

    def condition(self, kind: str) -> str:
        conditions = self.hpa().get("status", {}).get("conditions", [])
        return next((each["reason"] for each in conditions if each["type"] == kind), "")

    def events(self) -> set[tuple[str, str]]:
        return {(each["reason"], each["message"]) for each in self.opened.registry.list("events", "default")}


def named(name: str, **fields: Any) -> Object:
    """An object of the namespace `default`."""
    return {"metadata": {"name": name, "namespace": "default"}} | fields


async def eventually(check: Callable[[], bool]) -> None:
    """Return when `check` holds; fail when patience ends."""
    deadline_s = time.monotonic() + WITHIN_S
    while not check():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        await asyncio.sleep(0.02)
