"""Scraping kubelets: their addresses, requests, failures and rounds."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podscaler.adapter.resource import kubelet_client, node_targets
from podscaler.adapter.resource.kubelet_client import KubeletClient, KubeletError
from podscaler.adapter.resource.kubelet_points import NodePoints, UsagePoint
from podscaler.adapter.resource.node_targets import (
    KubeletAddressing,
    KubeletTarget,
    NodeTargetError,
    ScrapedNode,
    find_target,
    parse_address_types,
)
from podscaler.adapter.resource.scraping import KubeletScraper
from podscaler.adapter.resource.usage_storage import UsageStorage
from podscaler.base.errors import UsageError
from podscaler.kube.transport.transport import Request, Response, Transport
from podscaler.testing import VirtualClock
from podscaler.testing.transport import Feed, ScriptedTransport, TransportFailure

ADDRESSES = [
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "ExternalIP", "address": "fd00::1"},
    {"type": "Hostname", "address": "vm-1"},
]
TARGET = KubeletTarget("https://10.0.0.1:10250", "/metrics/resource")
NODE_LINES = b"node_cpu_usage_seconds_total %d %d000\nnode_memory_working_set_bytes 5 %d000\n"
IP_FIRST = KubeletAddressing(("InternalIP",))


def _node(name: str = "n", **fields: Any) -> ScrapedNode:
    """A Node with the addresses above; `annotations`, `addresses` and `port` change it."""
    metadata = {"name": name, "annotations": fields.get("annotations")}
    endpoints = {"kubeletEndpoint": {"Port": fields.get("port", 0)}}
    status = {"addresses": fields.get("addresses", ADDRESSES), "daemonEndpoints": endpoints}
    return msgspec.convert({"metadata": metadata, "status": status}, ScrapedNode)


@pytest.mark.parametrize(
    ("node", "addressing", "expected"),
    [
        pytest.param(_node(), KubeletAddressing(), "https://vm-1:10250/metrics/resource", id="the defaults"),
        pytest.param(_node(), IP_FIRST, "https://10.0.0.1:10250/metrics/resource", id="another type"),
        pytest.param(
            _node(),
            KubeletAddressing(("InternalDNS", "ExternalIP")),
            "https://[fd00::1]:10250/metrics/resource",
            id="IPv6",
        ),
        pytest.param(
            _node(port=8000),
            KubeletAddressing(("InternalIP",), uses_status_port=True),
            "https://10.0.0.1:8000/metrics/resource",
            id="the port of the status",
        ),
        pytest.param(_node(port=8000), IP_FIRST, "https://10.0.0.1:10250/metrics/resource", id="not the status"),
        pytest.param(
            _node(annotations={node_targets.PATH_ANNOTATION: "/other/path"}),
            IP_FIRST,
            "https://10.0.0.1:10250/other/path",
            id="another path",
        ),
    ],
)
def test_where_a_kubelet_is_scraped(node: ScrapedNode, addressing: KubeletAddressing, expected: str) -> None:
    """At the first address of the preferred types."""
    found = find_target(node, addressing)
    assert found.server + found.path == expected


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (_node(addresses=[]), "no address of the types InternalIP"),
        (_node(addresses=[{"type": "InternalIP", "address": "evil/../x"}]), "'evil/../x' is no address"),
        (_node(addresses=[{"type": "InternalIP", "address": "h:80@x"}]), "'h:80@x' is no address"),
        (_node(annotations={node_targets.PATH_ANNOTATION: "/../logs"}), "'/../logs' is no path"),
        (_node(annotations={node_targets.PATH_ANNOTATION: "/x?y"}), "'/x\\?y' is no path"),
        (_node(annotations={node_targets.PATH_ANNOTATION: "//host/x"}), "'//host/x' is no path"),
    ],
)
def test_nodes_that_cannot_be_scraped(node: ScrapedNode, text: str) -> None:
    """What a Node states leads nowhere but to an address and a path."""
    with pytest.raises(NodeTargetError, match=text):
        find_target(node, IP_FIRST)


def test_a_port_beyond_the_ports() -> None:
    """It is reported."""
    with pytest.raises(NodeTargetError, match="70000 is no port"):
        find_target(_node(port=70000), KubeletAddressing(uses_status_port=True))


def test_the_flag_of_address_types() -> None:
    """Types are checked."""
    assert parse_address_types("InternalIP, Hostname") == ("InternalIP", "Hostname")
    for text in ("InternalIp", "", ","):
        with pytest.raises(ValueError, match=r"is none of|must have"):
            parse_address_types(text)


class _Kubelets:
    """The transports of a client by server."""

    def __init__(self) -> None:
        self.transports: dict[str, ScriptedTransport] = {}
        self.opened: list[str] = []

    async def open(self, server: str) -> Transport:
        self.opened.append(server)
        return self.transports.setdefault(server, ScriptedTransport(server))

    def respond(self, server: str, *scripts: Any) -> None:
        transport = self.transports.setdefault(server, ScriptedTransport(server))
        transport.on("GET", "/metrics/resource", *scripts)


@pytest.fixture
def kubelets() -> _Kubelets:
    """No kubelets yet."""
    return _Kubelets()


def _client(kubelets: _Kubelets, clock: VirtualClock, timeout_s: float = 60.0) -> KubeletClient:
    return KubeletClient(kubelets.open, clock, timeout_s=timeout_s)


def _text(cpu_s: int, at_s: int) -> Response:
    return Response(200, {}, NODE_LINES % (cpu_s, at_s, at_s))


async def test_a_kubelet_is_read(kubelets: _Kubelets) -> None:
    """One request on a transport that is kept."""
    kubelets.respond(TARGET.server, _text(7, 3))
    client = _client(kubelets, VirtualClock(0))
    found = [await client.read(TARGET), await client.read(TARGET)]
    assert found == [NodePoints(UsagePoint(0, 3 * 10**9, 7 * 10**9, 5))] * 2
    assert kubelets.opened == [TARGET.server]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (Response(403, {}, b"Forbidden"), "GET https://10.0.0.1:10250/metrics/resource: status 403"),
        (Response(200, {}, b"<html>\n"), "GET https://10.0.0.1:10250/metrics/resource: '<html>' is no sample"),
        (TransportFailure("EOF"), 'Get "https://10.0.0.1:10250/metrics/resource": EOF'),
    ],
    ids=["forbidden", "no metrics", "no connection"],
)
async def test_failures(kubelets: _Kubelets, script: Any, text: str) -> None:
    """The text names the address and the cause."""
    kubelets.respond(TARGET.server, script)
    with pytest.raises(KubeletError) as caught:
        await _client(kubelets, VirtualClock()).read(TARGET)
    assert str(caught.value) == text


async def test_a_kubelet_that_does_not_end(kubelets: _Kubelets) -> None:
    """The time-out holds for the whole response."""
    kubelets.respond(TARGET.server, Feed(b"# one line"))
    with pytest.raises(KubeletError, match="no response within 0 s"):
        await _client(kubelets, VirtualClock(), timeout_s=0.0).read(TARGET)


async def test_a_response_that_is_too_large(kubelets: _Kubelets, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read to its end."""
    monkeypatch.setattr(kubelet_client, "BODY_MAX_BYTES", 20)
    kubelets.respond(TARGET.server, Feed(b"# 10 bytes", b"# 10 bytes"))
    with pytest.raises(KubeletError, match="the response has more than 20 bytes"):
        await _client(kubelets, VirtualClock()).read(TARGET)


async def test_certificates_that_cannot_be_used() -> None:
    """They are a failure of the node."""

    async def fail(server: str) -> Transport:
        raise UsageError(f"certificate-authority: no PEM for {server}")

    with pytest.raises(KubeletError, match="certificate-authority: no PEM"):
        await KubeletClient(fail, VirtualClock(), timeout_s=1).read(TARGET)


def _scraper(
    kubelets: _Kubelets, clock: VirtualClock, nodes: Callable[[], list[ScrapedNode]]
) -> tuple[KubeletScraper, UsageStorage]:
    storage = UsageStorage(15 * 10**9)
    client = _client(kubelets, clock)
    return KubeletScraper(nodes, client, storage, clock, addressing=IP_FIRST, resolution_s=15), storage


async def test_rounds(kubelets: _Kubelets) -> None:
    """Each round reads each node; two of them give a usage."""
    clock = VirtualClock()
    kubelets.respond(TARGET.server, _text(10, 1_767_225_600), _text(25, 1_767_225_615))
    scraper, storage = _scraper(kubelets, clock, lambda: [_node()])
    task = asyncio.create_task(scraper.run())
    await clock.advance(0)
    first = storage.find_node("n")
    await clock.advance(15)
    task.cancel()
    found = storage.find_node("n")
    assert (first, found and found.cpu_nanocores, scraper.rounds) == (None, 10**9, 2)


async def test_a_node_that_fails_harms_no_other(kubelets: _Kubelets, caplog: pytest.LogCaptureFixture) -> None:
    """Its failure is logged once, and that it works again."""
    clock = VirtualClock(0)
    caplog.set_level(logging.INFO)
    failing = [_node("bad", addresses=[{"type": "InternalIP", "address": "10.0.0.2"}]), _node("none", addresses=[])]
    kubelets.respond(TARGET.server, _text(10, 1), _text(20, 2))
    kubelets.respond("https://10.0.0.2:10250", TransportFailure("EOF"), TransportFailure("EOF"), _text(1, 1))
    scraper, storage = _scraper(kubelets, clock, lambda: [_node(), *failing])
    for _ in range(3):
        await scraper.scrape()
    assert storage.find_node("n") is not None
    assert [record.getMessage() for record in caplog.records] == [
        "node none cannot be scraped: no address of the types InternalIP",
        'node bad cannot be scraped: Get "https://10.0.0.2:10250/metrics/resource": EOF',
        "node bad is scraped again",
    ]


def _fail(request: Request) -> Response:
    raise OverflowError("a defect")


async def test_an_unexpected_error_is_one_of_its_node(kubelets: _Kubelets, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with the node, and counted; the round is complete."""
    bad = _node("bad", addresses=[{"type": "InternalIP", "address": "10.0.0.2"}])
    kubelets.respond(TARGET.server, _text(10, 1), _text(20, 2))
    kubelets.respond("https://10.0.0.2:10250", _fail)
    scraper, storage = _scraper(kubelets, VirtualClock(0), lambda: [bad, _node()])
    for _ in range(2):
        await scraper.scrape()
    assert storage.find_node("n") is not None
    assert (scraper.rounds, scraper.unexpected_errors) == (2, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "node bad cannot be scraped: unexpected error: OverflowError('a defect')"
    ]


async def test_a_node_that_is_gone(kubelets: _Kubelets) -> None:
    """Its points go, and another connection is opened when it comes back."""
    nodes = [_node()]
    kubelets.respond(TARGET.server, _text(10, 1), _text(20, 2))
    scraper, storage = _scraper(kubelets, VirtualClock(0), lambda: nodes)
    await scraper.scrape()
    await scraper.scrape()
    nodes.clear()
    await scraper.scrape()
    assert storage.find_node("n") is None
    nodes.append(_node())
    await scraper.scrape()
    assert kubelets.opened == [TARGET.server] * 2
