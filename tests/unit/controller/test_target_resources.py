"""Kinds that are served under several names: which resource's scale is read, and whose error is told.

Source: docs/spec/decision.md 2 (Reconcile in order, steps 2 and 3).
"""

import random
from typing import Any

import pytest

from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.base.errors import StatusError
from podscaler.controller.informers.scale_client import ScaleClient
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer

GADGETS, WIDGETS = (f"/apis/example.com/v1/namespaces/shop/{plural}/web/scale" for plural in ("gadgets", "widgets"))
SCALE = {
    "kind": "Scale",
    "apiVersion": "autoscaling/v1",
    "metadata": {"name": "web"},
    "spec": {"replicas": 3},
    "status": {"replicas": 3},
}


def refusal(message: str) -> dict[str, Any]:
    """A Status that says no."""
    return {"kind": "Status", "status": "Failure", "message": message, "reason": "NotFound", "code": 404}


@pytest.fixture
def transport() -> ScriptedTransport:
    """A server with the kind Gadget under two names."""
    made = ScriptedTransport()
    version = {"version": "v1", "groupVersion": "example.com/v1"}
    made.on("GET", "/apis/example.com", json_answer({"versions": [version], "preferredVersion": version}))
    resources = [
        {"name": name, "kind": kind}
        for plural in ("gadgets", "widgets")
        for name, kind in ((plural, "Gadget"), (f"{plural}/scale", "Scale"))
    ]
    made.on("GET", "/apis/example.com/v1", json_answer({"resources": resources}))
    return made


def targets(transport: ScriptedTransport) -> ScaleClient:
    """The scale client of that server."""
    clock = VirtualClock()
    client = Client(transport, clock)
    return ScaleClient(client, Discovery(client, clock), clock=clock, rng=random.Random(0))


@pytest.mark.parametrize("kind", ["Gadget", "gadget"])
async def test_first_success_counts(transport: ScriptedTransport, kind: str) -> None:
    """The resources are tried in order; the kind may be written in lower case, and messages show it as written."""
    transport.on("GET", GADGETS, json_answer(refusal("no gadget"), 404))
    transport.on("GET", WIDGETS, json_answer(SCALE))
    target = await targets(transport).read("shop", CrossVersionObjectReference(kind, "web", "example.com/v9"))
    assert (target.path, target.reference) == (WIDGETS, f"{kind}/shop/web")


async def test_first_error_is_told(transport: ScriptedTransport) -> None:
    """Where all fail, the error is that of the first."""
    transport.on("GET", GADGETS, json_answer(refusal("no gadget"), 404))
    transport.on("GET", WIDGETS, json_answer(refusal("no widget"), 404))
    with pytest.raises(StatusError, match=r"^no gadget$"):
        await targets(transport).read("shop", CrossVersionObjectReference("Gadget", "web", "example.com/v1"))


@pytest.mark.parametrize(
    ("kind", "group", "text"),
    [
        ("GADGET", "example.com", 'no matches for kind "GADGET" in group "example.com"'),
        ("gADGET", "example.com", 'no matches for kind "gADGET" in group "example.com"'),
        ('G"', "example.com", r'no matches for kind "G\"" in group "example.com"'),
    ],
    ids=["upper case", "mixed case", "quoted as Go does"],
)
async def test_no_such_kind(transport: ScriptedTransport, kind: str, group: str, text: str) -> None:
    """Only the kind as it is and in lower case match."""
    with pytest.raises(StatusError) as caught:
        await targets(transport).read("shop", CrossVersionObjectReference(kind, "web", f"{group}/v1"))
    assert str(caught.value) == text
