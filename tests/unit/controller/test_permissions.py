"""What is not allowed: one summary of all of it, with what to apply."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.server import permissions
from podscaler.controller.server.permissions import Permission
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response
from podscaler.metrics.heapster import HeapsterService
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer


def _review(*denied: str) -> Any:
    def answer(request: Request) -> Response:
        attributes = msgspec.json.decode(request.body or b"")["spec"]["resourceAttributes"]
        asked = " ".join(attributes.get(name, "") for name in ("verb", "resource", "subresource", "namespace"))
        return json_answer({"status": {"allowed": asked.strip() not in denied}}, 201)

    return answer


@pytest.fixture
def transport() -> ScriptedTransport:
    """A server that allows everything."""
    made = ScriptedTransport()
    made.on("POST", permissions.REVIEWS, _review())
    return made


async def _missing(transport: ScriptedTransport, *more: Permission) -> list[str]:
    client = Client(transport, VirtualClock())
    found = await permissions.find_missing(client, (*permissions.NEEDED, *more))
    return [f"{permission.verb} {permission.shown}" for permission in found]


async def test_all_is_well(transport: ScriptedTransport) -> None:
    """A server that allows everything is fine; so is one that cannot tell what it allows."""
    allowed = await _missing(transport)
    transport.on("POST", permissions.REVIEWS, Response(404, {}, b""))
    assert (allowed, await _missing(transport)) == ([], [])


async def test_what_is_missing(transport: ScriptedTransport) -> None:
    """Everything that is not allowed is found, in the order of importance."""
    transport.on(
        "POST",
        permissions.REVIEWS,
        _review("watch pods", "update horizontalpodautoscalers status", "create configmaps  shop"),
    )
    assert await _missing(transport, *permissions.of_histories("shop")) == [
        "update horizontalpodautoscalers/status",
        "watch pods",
        "create configmaps",
    ]


async def test_roles_that_are_limited_to_names_are_enough(transport: ScriptedTransport) -> None:
    """Histories and the lease of a leader are asked about by name; what cannot be limited to a name, without."""
    asked = []

    def answer(request: Request) -> Response:
        attributes = msgspec.json.decode(request.body or b"")["spec"]["resourceAttributes"]
        asked.append((attributes["resource"], attributes["verb"], attributes.get("name", "")))
        return json_answer({"status": {"allowed": True}}, 201)

    transport.on("POST", permissions.REVIEWS, answer)
    leases = permissions.of_leases("shop", "ours", is_sharded=False)
    await permissions.find_missing(Client(transport, VirtualClock()), (*permissions.of_histories("shop"), *leases))
    assert asked == [
        ("configmaps", "get", "podscaler-history"),
        ("configmaps", "create", ""),
        ("configmaps", "patch", "podscaler-history"),
        ("leases", "get", "ours"),
        ("leases", "create", ""),
        ("leases", "update", "ours"),
        ("leases", "list", ""),
        ("leases", "watch", ""),
    ]


async def test_one_summary(transport: ScriptedTransport, caplog: pytest.LogCaptureFixture) -> None:
    """One line has whose permissions, verbs and resources, what does not work without them, and what to apply."""
    transport.on("POST", permissions.REVIEWS, _review("list pods", "watch pods", "get configmaps  shop"))
    client = Client(transport, VirtualClock(), credentials_text='context "main" of F (a bearer token)')
    needed = (*permissions.NEEDED, *permissions.of_histories("shop"))
    await permissions.warn(client, needed)
    assert caplog.messages == [
        'the API server https://10.0.0.1:443 does not allow the user of context "main" of F (a bearer token) to: '
        "list, watch pods (without it no autoscaler can decide); list pods.metrics.k8s.io (without it cpu and memory "
        "are not known); get configmaps in the namespace shop (without it histories do not survive a restart). Bind "
        "the user to the roles of deploy/kustomize/base/rbac.yaml, or install the Helm chart, which has the same; what "
        "is allowed works meanwhile, and the rest once it is granted"
    ]


async def test_nothing_is_missing(transport: ScriptedTransport, caplog: pytest.LogCaptureFixture) -> None:
    """Where all is allowed the log has nothing."""
    await permissions.warn(Client(transport, VirtualClock()))
    assert caplog.messages == []


def test_the_manifest_exists() -> None:
    """The file that the summary names is in the repository, and grants roles."""
    root = Path(__file__).parents[3]
    assert "kind: ClusterRole\n" in (root / permissions.MANIFEST).read_text()


HEAPSTER = Permission("get", "", "services", "proxy", "no metric is known", "kube-system", "http:heapster:")


@pytest.mark.parametrize(
    ("service", "proxy"),
    [(HeapsterService(), [HEAPSTER]), (HeapsterService(url="http://10.1.2.3:8082"), [])],
    ids=["through the API server", "at its own address"],
)
def test_metrics_from_heapster(service: HeapsterService, proxy: list[Permission]) -> None:
    """They need the proxy of its Service, if any, and none of the metrics APIs."""
    needed = permissions.needed(ControllerSettings(heapster=service))
    assert [each for each in needed if each.resource == "services"] == proxy
    assert [each for each in needed if each.group.endswith("metrics.k8s.io")] == []
