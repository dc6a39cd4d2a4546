"""Reading and writing scales: URLs, texts, and the retries on conflict."""

import asyncio
import random
from typing import Any

import msgspec
import pytest

from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.base.errors import StatusError
from podscaler.controller.informers.scale_client import ScaleClient, ScaleTarget, ScaleWrite
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.kube.transport.transport import Response
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

PATH = "/apis/apps/v1/namespaces/shop/deployments/web/scale"
WEB = CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1beta9")
MODIFIED = (
    'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your '
    "changes to the latest version and try again"
)


def _scale(version: str, replicas: int = 3) -> Response:
    return json_answer(
        {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": version},
            "spec": {"replicas": replicas},
            "status": {"replicas": replicas, "selector": "app=web"},
        }
    )


def _refusal(code: int, reason: str, message: str) -> Response:
    return json_answer(
        {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}, code
    )


CONFLICT = _refusal(409, "Conflict", MODIFIED)


class Steps(random.Random):
    """0.0, 0.5, 0.0, 0.5, ..."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.5

    def random(self) -> float:
        self._next = 0.5 - self._next
        return self._next


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time."""
    return VirtualClock()


@pytest.fixture
def transport() -> ScriptedTransport:
    """A server with deployments in two versions."""
    made = ScriptedTransport()
    versions = [{"version": "v1"}, {"version": "v2"}]
    made.on("GET", "/apis/apps", json_answer({"versions": versions, "preferredVersion": versions[0]}))
    for version in ("v1", "v2"):
        resources = [{"name": "deployments", "kind": "Deployment"}, {"name": "deployments/scale", "kind": "Scale"}]
        made.on("GET", f"/apis/apps/{version}", json_answer({"resources": resources}))
    made.on("GET", PATH, _scale("7"))
    return made


@pytest.fixture
def targets(transport: ScriptedTransport, clock: VirtualClock) -> ScaleClient:
    """The scale client of that server."""
    client = Client(transport, clock)
    return ScaleClient(client, Discovery(client, clock), clock=clock, rng=Steps())


async def _read(targets: ScaleClient, transport: ScriptedTransport) -> ScaleTarget:
    target = await targets.read("shop", WEB)
    transport.requests.clear()
    return target


async def test_the_preferred_version_is_read(targets: ScaleClient, transport: ScriptedTransport) -> None:
    """The version that the reference names does not matter."""
    target = await targets.read("shop", WEB)
    assert (transport.asked()[-1], target.scale.spec.replicas, target.reference) == (PATH, 3, "Deployment/shop/web")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (_refusal(404, "NotFound", 'deployments.apps "web" not found'), 'deployments.apps "web" not found'),
        (Response(404, {}, b""), "the server could not find the requested resource (get deployments web)"),
        (Response(200, {}, b""), "Object 'Kind' is missing in ''"),
        (Response(200, {}, b'{"spec":{}}'), "Object 'Kind' is missing in '{\"spec\":{}}'"),
        (TransportFailure("EOF"), f'Get "https://10.0.0.1:443{PATH}": EOF'),
    ],
    ids=["Status", "no Status", "empty", "without kind", "no answer"],
)
async def test_a_scale_that_cannot_be_read(
    targets: ScaleClient, transport: ScriptedTransport, answer: Any, text: str
) -> None:
    """The text of each way in which reading can fail; one request, though the kind has two versions."""
    transport.on("GET", PATH, answer)
    with pytest.raises(StatusError) as caught:
        await targets.read("shop", WEB)
    assert (str(caught.value), transport.asked().count(PATH)) == (text, 1)


async def test_a_kind_that_cannot_be_looked_up(targets: ScaleClient, transport: ScriptedTransport) -> None:
    """Where discovery fails the scale was never asked for: the reason says so, the text is what failed."""
    transport.on("GET", "/apis/apps", TransportFailure("EOF"))
    with pytest.raises(StatusError) as caught:
        await targets.read("shop", WEB)
    assert (str(caught.value), caught.value.reason) == ('Get "https://10.0.0.1:443/apis/apps": EOF', "NoKindMatch")


async def test_a_write_carries_what_was_read(targets: ScaleClient, transport: ScriptedTransport) -> None:
    """The body is the scale as read, resourceVersion included, with other replicas."""
    target = await _read(targets, transport)
    transport.on("PUT", PATH, _scale("8", 5))
    assert await targets.write(target, 5) == ScaleWrite(True, [])
    assert [(request.method, msgspec.json.decode(request.body or b"null")) for request in transport.requests] == [
        (
            "PUT",
            {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
                "spec": {"replicas": 5},
                "status": {"replicas": 3, "selector": "app=web"},
            },
        )
    ]


async def test_a_conflict_is_tried_again_with_the_newest_scale(
    targets: ScaleClient, transport: ScriptedTransport, clock: VirtualClock
) -> None:
    """After a conflict the scale is read again, and the same replicas are written over it after 10 ms."""
    target = await _read(targets, transport)
    transport.on("PUT", PATH, CONFLICT, _scale("10", 5))
    transport.on("GET", PATH, _scale("9", 4))
    task = asyncio.ensure_future(targets.write(target, 5))
    await clock.advance(0.01)
    written = await task
    assert (written.is_done, [error.reason for error in written.errors]) == (True, ["Conflict"])
    bodies = [
        (request.method, msgspec.json.decode(request.body)["metadata"]["resourceVersion"] if request.body else "")
        for request in transport.requests
    ]
    assert bodies == [("PUT", "7"), ("GET", ""), ("PUT", "9")]


async def test_five_attempts(targets: ScaleClient, transport: ScriptedTransport, clock: VirtualClock) -> None:
    """Five attempts with waits of 10 ms to 11 ms; all failures are told, after one more reading."""
    target = await _read(targets, transport)
    transport.on("PUT", PATH, CONFLICT)
    task = asyncio.ensure_future(targets.write(target, 5))
    puts_at_ms: list[float] = []
    for half_ms in range(100):
        await clock.advance(0)
        if len(transport.asked("PUT")) > len(puts_at_ms):
            puts_at_ms.append(half_ms / 2)
        await clock.advance(0.0005)
    written = await task
    assert (written.is_done, [error.reason for error in written.errors]) == (False, ["Conflict"] * 5)
    assert (puts_at_ms, len(transport.asked("GET"))) == ([0, 10, 20.5, 30.5, 41], 5)


async def test_other_failures_are_final(
    targets: ScaleClient, transport: ScriptedTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """Only a conflict is tried again; the scale is read after every failure, and failing at that is only logged."""
    target = await _read(targets, transport)
    transport.on("PUT", PATH, _refusal(403, "Forbidden", "no"))
    transport.on("GET", PATH, TransportFailure("EOF"))
    written = await targets.write(target, 5)
    assert (written.is_done, [str(error) for error in written.errors]) == (False, ["no"])
    assert transport.asked() == [PATH, PATH]
    assert "error getting latest scale for Deployment/shop/web during conflict retry: Get" in caplog.text


async def test_already_exists_is_no_conflict(targets: ScaleClient, transport: ScriptedTransport) -> None:
    """409 with another reason than Conflict is final."""
    target = await _read(targets, transport)
    transport.on("PUT", PATH, _refusal(409, "AlreadyExists", "x"))
    written = await targets.write(target, 5)
    assert (written.is_done, [str(error) for error in written.errors]) == (False, ["x"])
    assert len(transport.asked("PUT")) == 1
