"""The controller's HTTP endpoints."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from own_ports import own_place
from podscaler.base.errors import UsageError
from podscaler.controller.server.serving import Endpoints
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.kube.serving.delegated_access import AccessError
from podscaler.testing import VirtualClock


class World:
    """Endpoints, and why they say that the controller is not ready."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.endpoints = Endpoints(Telemetry(VirtualClock()), lambda: self.reasons)
        self.address = ""

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.address}{path}") as response:
            return response.status, await response.text()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Endpoints that listen on a free port."""
    made = World()
    made.address = await made.endpoints.start("127.0.0.1", 0)
    yield made
    await made.endpoints.stop()


async def test_health_and_readiness(world: World) -> None:
    """/healthz says that the process lives; /readyz whether it works, with the reasons why not."""
    world.reasons = ["pods: not listed yet"]
    answers = [await world.get(path) for path in ("/healthz", "/readyz")]
    world.reasons = []
    answers.append(await world.get("/readyz"))
    assert answers == [(200, "ok"), (503, "pods: not listed yet\n"), (200, "ok")]


async def test_metrics(world: World) -> None:
    """/metrics is Prometheus' text format."""
    status, text = await world.get("/metrics")
    assert status == 200
    assert "\nhorizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 0.0\n" in text


class Nobody:
    """Lets nobody read, and keeps who asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    async def check(self, authorization: str, verb: str, path: str) -> AccessError | None:
        """As Access."""
        self.asked.append((authorization, verb, path))
        return AccessError(403, "Forbidden", 'forbidden: User "bob" cannot get path "/metrics"')


async def test_metrics_for_some() -> None:
    """Who may not read them is refused as by an API server; health and readiness are for everybody."""
    access = Nobody()
    endpoints = Endpoints(Telemetry(VirtualClock()), list, None, access)
    address = await endpoints.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer t"}) as session:
            async with session.get(f"http://{address}/metrics") as response:
                refused = response.status, await response.json()
            probes = []
            for path in ("/healthz", "/readyz"):
                async with session.get(f"http://{address}{path}") as response:
                    probes.append(response.status)
    finally:
        await endpoints.stop()
    assert (access.asked, probes) == ([("Bearer t", "get", "/metrics")], [200, 200])
    assert refused == (
        403,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'forbidden: User "bob" cannot get path "/metrics"',
            "reason": "Forbidden",
            "details": {},
            "code": 403,
        },
    )


async def test_a_port_in_use(world: World) -> None:
    """An address that cannot be had is one sentence that names the flag."""
    host, _, port = world.address.partition(":")
    with pytest.raises(UsageError, match=f"^--metrics-bind-address {world.address}: .*in use"):
        await Endpoints(Telemetry(VirtualClock()), list).start(host, int(port))


async def test_stop_frees_the_port() -> None:
    """After stop the port is free again."""
    host, port = own_place()
    for _ in range(2):
        world = World()
        await world.endpoints.start(host, port)
        await world.endpoints.stop()


async def test_a_fault_of_the_election() -> None:
    """/healthz fails as upstream's does where a lease that is held is not renewed."""
    faults = ["failed election to renew leadership on lease x", ""]
    world = World()
    world.endpoints = Endpoints(Telemetry(VirtualClock()), list, lambda: faults.pop(0))
    world.address = await world.endpoints.start("127.0.0.1", 0)
    answers = [await world.get("/healthz") for _ in range(2)]
    await world.endpoints.stop()
    text = "[-]leaderElection failed: failed election to renew leadership on lease x\nhealthz check failed\n"
    assert answers == [(500, text), (200, "ok")]


async def test_faulty_requests_are_neither_repeated_nor_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """What is no HTTP may hold a token: the answer and the log show nothing of it, and no answer names the software."""
    host, _, port = world.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer hidden\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert (answer.splitlines()[0], answer.rpartition(b"\r\n")[2]) == (b"HTTP/1.1 400 Bad Request", b"400 Bad Request")
    assert b"Server" not in answer
    assert "hidden" not in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/x", 404), ("POST", "/metrics", 405), ("HEAD", "/healthz", 200)]
)
async def test_other_requests(world: World, method: str, path: str, status: int) -> None:
    """There are three pages, which can only be read."""
    url = f"http://{world.address}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url) as answer:
        assert answer.status == status
