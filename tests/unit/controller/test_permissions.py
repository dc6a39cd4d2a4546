"""What is not allowed: one sentence for each thing, with what to grant."""

from typing import Any

import msgspec
import pytest

from podscaler.controller import permissions
from podscaler.controller.permissions import Permission
from podscaler.kube.client import Client
from podscaler.kube.transport import Answer, Request
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer


def _review(*denied: str) -> Any:
    def answer(request: Request) -> Answer:
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
    found = await permissions.missing(client, (*permissions.NEEDED, *more))
    return [f"{permission.verb} {permission.shown}" for permission in found]


async def test_all_is_well(transport: ScriptedTransport) -> None:
    """A server that allows everything is fine; so is one that cannot tell what it allows."""
    allowed = await _missing(transport)
    transport.on("POST", permissions.REVIEWS, Answer(404, {}, b""))
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

    def answer(request: Request) -> Answer:
        attributes = msgspec.json.decode(request.body or b"")["spec"]["resourceAttributes"]
        asked.append((attributes["resource"], attributes["verb"], attributes.get("name", "")))
        return json_answer({"status": {"allowed": True}}, 201)

    transport.on("POST", permissions.REVIEWS, answer)
    leases = permissions.of_leases("shop", "ours", is_sharded=False)
    await permissions.missing(Client(transport, VirtualClock()), (*permissions.of_histories("shop"), *leases))
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


async def test_a_line_each(transport: ScriptedTransport, caplog: pytest.LogCaptureFixture) -> None:
    """Verb, resource, what to grant, and what does not work without it; a Role suffices for a namespace."""
    transport.on("POST", permissions.REVIEWS, _review("watch pods", "get configmaps  shop"))
    client = Client(transport, VirtualClock())
    needed = (*permissions.NEEDED, *permissions.of_histories("shop"))
    await permissions.warn(client, 'context "main" of F', needed)
    start = 'the API server https://10.0.0.1:443 does not allow the user of context "main" of F to '
    assert caplog.messages == [
        start + 'watch pods: grant the verb "watch" on "pods" of apiGroup "" in a ClusterRole '
        "(without it no autoscaler can decide)",
        start + 'get configmaps: grant the verb "get" on "configmaps" of apiGroup "" in a Role in the namespace "shop" '
        "(without it histories do not survive a restart)",
    ]
