"""What a client sends, and when it sends it again."""

import asyncio
import random

import pytest

from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.transport.rate_limit import TokenBucket
from podscaler.kube.transport.transport import Response
from podscaler.testing import VirtualClock
from podscaler.testing.transport import Feed, ScriptedTransport, TransportFailure, json_answer

BUSY = Response(429, {"retry-after": "3"}, b"")


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time."""
    return VirtualClock()


@pytest.fixture
def transport() -> ScriptedTransport:
    """A script."""
    return ScriptedTransport()


@pytest.fixture
def client(transport: ScriptedTransport, clock: VirtualClock) -> Client:
    """A client on the script."""
    return Client(transport, clock)


async def test_get_asks_for_json(client: Client, transport: ScriptedTransport) -> None:
    """A GET carries its query and asks for JSON; the answer's bytes come back."""
    transport.on("GET", "/api", json_answer({}))
    body = await client.get("/api", subject="x", query=[("b", "2"), ("a", "1")])
    sent = transport.requests[0]
    assert (body, sent.target, sent.headers) == (b"{}", "/api?a=1&b=2", {"Accept": "application/json"})


@pytest.mark.parametrize(
    ("method", "content_type"),
    [("put", "application/json"), ("post", "application/json"), ("patch", "application/merge-patch+json")],
)
async def test_writes_name_their_content_type(
    client: Client, transport: ScriptedTransport, method: str, content_type: str
) -> None:
    """Bodies are JSON, a patch is a merge patch unless said otherwise."""
    transport.on(method.upper(), "/x", json_answer({}))
    await getattr(client, method)("/x", b"{}", subject="x")
    assert (transport.requests[0].body, transport.requests[0].headers["Content-Type"]) == (b"{}", content_type)


async def test_a_failure_is_a_status_error(client: Client, transport: ScriptedTransport) -> None:
    """What the server refuses raises with the generic text where there is no Status."""
    with pytest.raises(StatusError, match=r"could not find the requested resource \(get deployments web\)"):
        await client.get("/nowhere", subject="deployments web")


async def test_retry_after_is_obeyed(client: Client, transport: ScriptedTransport, clock: VirtualClock) -> None:
    """429 and 5xx with an integer Retry-After are sent again after so many seconds."""
    transport.on("PUT", "/x", BUSY, Response(503, {"retry-after": "2"}, b""), json_answer({}))
    task = asyncio.ensure_future(client.put("/x", b"{}", subject="x"))
    sent = []
    for _ in range(6):
        await clock.advance(1)
        sent.append(len(transport.requests))
    assert (sent, await task) == ([1, 1, 2, 2, 3, 3], b"{}")


@pytest.mark.parametrize(
    "answer",
    [
        Response(503, {}, b""),
        Response(429, {"retry-after": "soon"}, b""),
        Response(404, {"retry-after": "1"}, b""),
        TransportFailure("dial tcp 10.0.0.1:443: connect: connection refused"),
    ],
    ids=["no header", "no integer", "not 429 or 5xx", "refused"],
)
async def test_everything_else_fails_at_once(client: Client, transport: ScriptedTransport, answer: Response) -> None:
    """Only what the server asks to be repeated is repeated."""
    transport.on("GET", "/x", answer)
    with pytest.raises(StatusError):
        await client.get("/x", subject="x")
    assert len(transport.requests) == 1


async def test_ten_retries_are_the_limit(client: Client, transport: ScriptedTransport, clock: VirtualClock) -> None:
    """After ten repetitions the failure is the caller's."""
    transport.on("GET", "/x", BUSY)
    task = asyncio.ensure_future(client.get("/x", subject="x"))
    await clock.advance(100)
    with pytest.raises(StatusError, match="too many requests"):
        await task
    assert len(transport.requests) == 11


async def test_a_server_that_says_zero_is_not_asked_in_a_tight_loop(
    client: Client, transport: ScriptedTransport, clock: VirtualClock
) -> None:
    """Retry-After 0 is obeyed at first; then the waits grow to five seconds."""
    transport.on("GET", "/x", Response(429, {"retry-after": "0"}, b""))
    task = asyncio.ensure_future(client.get("/x", subject="x"))
    sent = []
    for _ in range(20):
        await clock.advance(1)
        sent.append(len(transport.requests))
    await asyncio.gather(task, return_exceptions=True)
    assert sent == [6, 7, 7, 8, 8, 8, 9, 9, 9, 9, 9, 10, 10, 10, 10, 10, 11, 11, 11, 11]


async def test_a_wait_of_an_hour_is_left_to_the_caller(client: Client, transport: ScriptedTransport) -> None:
    """A Retry-After beyond two minutes is not waited for here."""
    transport.on("GET", "/x", Response(503, {"retry-after": "3600"}, b""))
    with pytest.raises(StatusError, match="currently unable"):
        await client.get("/x", subject="x")


async def test_retries_are_spread(transport: ScriptedTransport, clock: VirtualClock) -> None:
    """With a source of randomness, waits are up to a tenth longer, so that many clients do not come back at once."""

    class Most(random.Random):
        def random(self) -> float:
            return 1.0

    transport.on("GET", "/x", BUSY, json_answer({}))
    task = asyncio.ensure_future(Client(transport, clock, rng=Most()).get("/x", subject="x"))
    await clock.advance(3.29)
    before = len(transport.requests)
    await clock.advance(0.02)
    assert (before, await task) == (1, b"{}")


async def test_a_rate_limit(transport: ScriptedTransport, clock: VirtualClock) -> None:
    """Requests wait their turn where there is a limit."""
    transport.on("GET", "/x", json_answer({}))
    limited = Client(transport, clock, limit=TokenBucket(1.0, 2, clock))
    tasks = [asyncio.ensure_future(limited.get("/x", subject="x")) for _ in range(4)]
    sent = []
    for _ in range(3):
        await clock.advance(0)
        sent.append(len(transport.requests))
        await clock.advance(1)
    await asyncio.gather(*tasks)
    assert sent == [2, 3, 4]


async def test_a_broken_connection_is_tried_again_for_reads_only(
    client: Client, transport: ScriptedTransport, clock: VirtualClock
) -> None:
    """A GET whose connection broke is sent again after a second; a write is not, for it may have been done."""
    for method in ("GET", "PUT"):
        transport.on(method, "/x", TransportFailure("EOF", broken=True), json_answer({}))
    task = asyncio.ensure_future(client.get("/x", subject="x"))
    await clock.advance(1)
    assert await task == b"{}"
    with pytest.raises(StatusError, match=r'Put "https://10.0.0.1:443/x": EOF'):
        await client.put("/x", b"{}", subject="x")


async def test_watch_streams_lines(client: Client, transport: ScriptedTransport) -> None:
    """A watch says `watch=true` and gives the lines as they come."""
    feed = Feed(b"{}")
    feed.end()
    transport.on("GET", "/pods", feed)
    async with client.watch("/pods", subject="pods", query=[("resourceVersion", "5")]) as stream:
        lines = [batch async for batch in stream.batches()]
    assert (transport.asked(), lines) == (["/pods?resourceVersion=5&watch=true"], [[b"{}"]])


async def test_a_refused_watch_raises(client: Client, transport: ScriptedTransport) -> None:
    """A watch that the server refuses raises what the Status says."""
    gone = {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}
    transport.on("GET", "/pods", json_answer(gone, 410))
    with pytest.raises(StatusError, match="too old"):
        async with client.watch("/pods", subject="pods"):
            pass
