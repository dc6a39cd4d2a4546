"""The controller on the embedded API server, over HTTPS with a kubeconfig, in real time: what virtual time cannot show.

Pods and their metrics are played by the test; nothing runs as a process.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from podscaler.api import catalog
from podscaler.clock import SystemClock
from podscaler.controller.loop import Controller
from podscaler.controller.settings import Settings
from podscaler.controlplane.access import certificates, kubeconfig
from podscaler.controlplane.access.tokens import Authenticator
from podscaler.controlplane.access.users import ADMIN
from podscaler.controlplane.server.app import ApiServer, Neighbours
from podscaler.kube import aiohttp_transport, locate
from podscaler.kube.client import Client
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
    """metrics.k8s.io: every pod uses the same."""

    def __init__(self) -> None:
        self.cpu = "500m"
        self.pods: list[str] = []

    def list(self, namespace: str) -> list[Object]:
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


class World:
    """An API server, a controller beside it, and the objects seen from inside."""

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
            neighbours=Neighbours(virtual={"pods.metrics.k8s.io": self.metrics}),
        )
        self.port = await self.server.start("127.0.0.1", self.port)
        self._server_exit.push_async_callback(self.server.stop)
        document = kubeconfig.document(
            server_url=f"https://127.0.0.1:{self.port}", authority_pem=made.authority_pem, token=TOKEN
        )
        await asyncio.to_thread(kubeconfig.write, self.folder / "kubeconfig", document)

    async def stop_server(self) -> None:
        """Stop listening and close the store."""
        await self._server_exit.aclose()
        self._server_exit = AsyncExitStack()

    async def start_controller(self) -> None:
        """A controller that looks five times a second."""
        config = await asyncio.to_thread(locate.find_config, str(self.folder / "kubeconfig"))
        client = Client(await aiohttp_transport.connect(config, user_agent="test"), CLOCK)
        self._exit.push_async_callback(client.close)
        settings = Settings(sync_period_ns=200_000_000, downscale_stabilization_ns=0)
        controller = Controller(client, settings, CLOCK, rng=random.Random(1))
        self.tasks.append(asyncio.ensure_future(controller.run()))

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self._exit.aclose()
        await self.stop_server()

    async def create_web(self, *, pods: int = 1) -> None:
        """The deployment with pods that are ready, and its autoscaler."""
        registry = self.opened.registry
        spec = {"replicas": pods, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
        await registry.create("deployments.apps", _named("web", spec=spec))
        for number in range(pods):
            await self.add_pod(f"web-{number}")
        hpa = _named("web", spec=SPEC) | {"apiVersion": "autoscaling/v2"}
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


def _named(name: str, **fields: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}} | fields


async def eventually(check: Callable[[], bool], limit_s: float = 15.0) -> None:
    """Return when `check` holds; fail after `limit_s`."""
    deadline_s = time.monotonic() + limit_s
    while not check():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        await asyncio.sleep(0.02)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A server and a controller on it."""
    made = World(tmp_path)
    await made.start_server()
    await made.start_controller()
    yield made
    await made.close()


async def test_created_scaled_and_told(world: World) -> None:
    """From the autoscaler's creation to the written scale, the status and the event, all over the API."""
    world.metrics.cpu = "900m"
    await world.create_web()
    text = "New size: 2; reason: cpu resource utilization (percentage of request) above target"
    await eventually(lambda: world.replicas() == 2 and ("SuccessfulRescale", text) in world.events())
    status = world.hpa()["status"]
    assert (status["desiredReplicas"], status["currentMetrics"][0]["resource"]["current"]) == (
        2,
        {"averageUtilization": 90, "averageValue": "900m"},
    )


async def test_quiet_means_no_writes(world: World) -> None:
    """An autoscaler on target is not written again: its resourceVersion stands still over many syncs."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")
    await asyncio.sleep(0.5)
    version = world.hpa()["metadata"]["resourceVersion"]
    await asyncio.sleep(1.0)
    assert world.hpa()["metadata"]["resourceVersion"] == version


async def test_a_missing_target_heals(world: World) -> None:
    """A target that does not exist is a condition with the server's words; once it exists, work begins."""
    hpa = _named("web", spec=SPEC) | {"apiVersion": "autoscaling/v2"}
    await world.opened.registry.create("horizontalpodautoscalers.autoscaling", hpa)
    await eventually(lambda: ("FailedGetScale", 'deployments.apps "web" not found') in world.events())
    await world.opened.registry.delete("horizontalpodautoscalers.autoscaling", "default", "web")
    world.metrics.cpu = "900m"
    await world.create_web()
    await eventually(lambda: world.replicas() == 2)


async def test_an_edit_acts_at_once(world: World) -> None:
    """A raised minimum is followed within a period."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")

    def raise_minimum(obj: Object) -> None:
        obj["spec"]["minReplicas"] = 4

    await world.opened.registry.mutate("horizontalpodautoscalers.autoscaling", "default", "web", raise_minimum)
    await eventually(lambda: world.replicas() == 4 and world.hpa()["status"].get("observedGeneration") == 2)


async def test_a_server_that_restarts(world: World) -> None:
    """The server goes and comes back on the same address: the watches go on, and edits are followed."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")
    await world.stop_server()
    await asyncio.sleep(0.5)
    await world.start_server()
    world.metrics.cpu = "900m"
    await eventually(lambda: world.replicas() == 2)


async def test_watches_after_the_history_is_gone(world: World) -> None:
    """Changes while the watches were cut, and a history that is compacted: 410, a new list, nothing missed."""
    await world.create_web()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")
    await world.server.stop()
    await world.add_pod("web-1")

    def raise_minimum(obj: Object) -> None:
        obj["spec"]["minReplicas"] = 3

    await world.opened.registry.mutate("horizontalpodautoscalers.autoscaling", "default", "web", raise_minimum)
    await world.opened.objects.compact()
    await world.server.start("127.0.0.1", world.port)
    await eventually(lambda: world.replicas() == 3)


async def test_somebody_else_scales_too(world: World) -> None:
    """Scales that others keep changing are written over; no conflict remains."""
    world.metrics.cpu = "900m"
    await world.create_web()

    async def meddle() -> None:
        for _ in range(40):
            await world.opened.registry.mutate(
                "deployments.apps", "default", "web", lambda obj: obj["spec"].update(replicas=1)
            )
            await asyncio.sleep(0.02)

    await meddle()
    await eventually(lambda: world.replicas() == 2)
    assert "FailedRescale" not in {reason for reason, _ in world.events()}
