"""Mapping kinds to resources, and how long what was learnt is kept."""

import asyncio
from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery, RESTMapping
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer


def _resources(*pairs: str) -> Any:
    names = (pair.split(":") for pair in pairs)
    return json_answer({"resources": [{"name": name, "kind": kind, "namespaced": True} for name, kind in names]})


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time."""
    return VirtualClock()


@pytest.fixture
def transport() -> ScriptedTransport:
    """A server with pods and deployments, and a group in two versions."""
    made = ScriptedTransport()
    made.on("GET", "/api", json_answer({"versions": ["v1"]}))
    made.on("GET", "/api/v1", _resources("pods:Pod", "pods/status:Pod"))
    versions = [{"version": "v2"}, {"version": "v1"}]
    made.on("GET", "/apis/shop", json_answer({"versions": versions, "preferredVersion": {"version": "v1"}}))
    made.on("GET", "/apis/shop/v1", _resources("carts:Cart"))
    made.on("GET", "/apis/shop/v2", _resources("carts:Cart", "tills:Till"))
    return made


@pytest.fixture
def discovery(transport: ScriptedTransport, clock: VirtualClock) -> Discovery:
    """Discovery on that server."""
    return Discovery(Client(transport, clock), clock)


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        ("", "Pod", [("v1", "pods")]),
        ("shop", "Cart", [("v1", "carts"), ("v2", "carts")]),
        ("shop", "cart", [("v1", "carts"), ("v2", "carts")]),
        ("shop", "Till", [("v2", "tills")]),
    ],
    ids=["core, without subresources", "preferred version first", "in lower case", "not in the preferred version"],
)
async def test_mappings(discovery: Discovery, group: str, kind: str, expected: list[tuple[str, str]]) -> None:
    """Every served version of the kind, the group's preferred one first."""
    found = [(mapping.version, mapping.plural) for mapping in await discovery.mappings(group, kind)]
    assert found == expected


@pytest.mark.parametrize(("group", "kind"), [("shop", "CART"), ("nowhere", "Cart")], ids=["case", "group"])
async def test_no_match(discovery: Discovery, group: str, kind: str) -> None:
    """A kind that is not served is named with its group, as an error that arose in the client."""
    with pytest.raises(StatusError) as caught:
        await discovery.mappings(group, kind)
    assert (str(caught.value), caught.value.code, caught.value.reason) == (
        f'no matches for kind "{kind}" in group "{group}"',
        0,
        "NoKindMatch",
    )


async def test_answers_are_kept_for_30_s(
    discovery: Discovery, transport: ScriptedTransport, clock: VirtualClock
) -> None:
    """A group is read again when what is known is 30 s old."""
    asked = []
    for _ in range(3):
        await discovery.mappings("", "Pod")
        asked.append(len(transport.requests))
        await clock.advance(15)
    assert asked == [2, 2, 4]


async def test_a_miss_asks_again(discovery: Discovery, transport: ScriptedTransport, clock: VirtualClock) -> None:
    """A kind that appeared since is found at once, and a kind that never appears costs one reading a second at most."""
    with pytest.raises(StatusError):
        await discovery.mappings("", "Node")
    with pytest.raises(StatusError):
        await discovery.mappings("", "Node")
    assert len(transport.requests) == 2
    transport.on("GET", "/api/v1", _resources("nodes:Node"))
    await clock.advance(1)
    assert await discovery.mappings("", "Node") == [RESTMapping("", "v1", "nodes", "Node")]


async def test_lookups_at_once_share_a_request(discovery: Discovery, transport: ScriptedTransport) -> None:
    """Many workers that need the same group make one request."""
    await asyncio.gather(*(discovery.mappings("", "Pod") for _ in range(10)))
    assert transport.asked() == ["/api", "/api/v1"]


async def test_a_version_that_fails_hides_no_other(discovery: Discovery, transport: ScriptedTransport) -> None:
    """One broken version of a group leaves the others usable; all broken is the first failure."""
    transport.on("GET", "/apis/shop/v1", TransportFailure("connection refused"))
    assert [mapping.version for mapping in await discovery.mappings("shop", "Cart")] == ["v2"]


async def test_all_versions_failing(discovery: Discovery, transport: ScriptedTransport) -> None:
    """Where nothing could be read the failure is the server's, not "no match"."""
    transport.on("GET", "/api/v1", TransportFailure("connection refused"))
    with pytest.raises(StatusError, match=r'Get "https://10.0.0.1:443/api/v1": connection refused'):
        await discovery.mappings("", "Pod")


async def test_nonsense_is_a_failure(discovery: Discovery, transport: ScriptedTransport) -> None:
    """A document that is none is a failure of discovery, not a crash."""
    transport.on("GET", "/api", json_answer([]))
    with pytest.raises(StatusError, match="unable to decode the discovery document at /api: "):
        await discovery.mappings("", "Pod")


async def test_versions(discovery: Discovery) -> None:
    """Versions of a group, preferred first, none where the group is not served."""
    assert (await discovery.versions("shop"), await discovery.versions("nowhere")) == (("v1", "v2"), ())
