"""Probes: counting, timing, and what is really asked of a container."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import tcp_server
from patience import WITHIN_S
from podscaler.controlplane.kubelet.probes import http_check, probe_loop
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome, HandlerRunner, HandlerTarget, Purpose
from podscaler.controlplane.kubelet.probes.probe_tally import ProbeSpec, Tally, find_probe
from podscaler.testing import VirtualClock


def test_the_api_defaults() -> None:
    """Delay 0, period 10 s, timeout 1 s, one success, three failures."""
    handler = {"exec": {"command": ["true"]}}
    assert find_probe({"livenessProbe": handler}, "liveness") == ProbeSpec("liveness", handler, 0, 10, 1, 1, 3, None)


@pytest.mark.parametrize(
    ("results", "verdicts"),
    [
        pytest.param("+", [True], id="one success is enough"),
        pytest.param("--", [None, None], id="two failures say nothing"),
        pytest.param("---", [None, None, False], id="three do"),
        pytest.param("--+--", [None, None, True, True, True], id="a success starts the count again"),
        pytest.param("+---+", [True, True, True, False, True], id="there and back"),
    ],
)
def test_counting(results: str, verdicts: list[bool | None]) -> None:
    """A verdict changes after enough equal results in a row."""
    spec, tally, seen = ProbeSpec("readiness", {}), Tally(), []
    for result in results:
        tally = tally.with_result(spec, ok=result == "+")
        seen.append(tally.verdict)
    assert seen == verdicts


def test_more_successes_may_be_asked_for() -> None:
    """successThreshold 2: the first success does not make ready."""
    spec, tally = ProbeSpec("readiness", {}, success_threshold=2), Tally()
    tally = tally.with_result(spec, ok=True)
    assert (tally.verdict, tally.with_result(spec, ok=True).verdict) == (None, True)


async def test_the_times_of_a_probe() -> None:
    """First after the initial delay since the container's start, then every period; verdicts as they change."""
    clock = VirtualClock()
    started_ns = clock.now_ns()
    seen: list[tuple[float, bool | None, bool]] = []
    answers = iter("--+---")

    async def check() -> HandlerOutcome:
        return HandlerOutcome(next(answers, "+") == "+")

    def heard(result: probe_loop.ProbeResult) -> None:
        seen.append((clock.monotonic_s(), result.verdict, result.changed))

    await clock.advance(1)
    spec = ProbeSpec("readiness", {}, initial_delay_s=3, period_s=2, failure_threshold=2)
    task = asyncio.create_task(probe_loop.run(spec, check, heard, clock, started_ns=started_ns))
    await clock.advance(12)
    task.cancel()
    assert seen == [
        (3, None, False),
        (5, False, True),
        (7, True, True),
        (9, True, False),
        (11, False, True),
        (13, False, False),
    ]


async def test_a_wall_clock_that_is_set_during_a_check_changes_no_period() -> None:
    """The next check comes a period after the last, whatever the wall clock says."""
    clock = VirtualClock()
    checked_s: list[float] = []

    async def check() -> HandlerOutcome:
        checked_s.append(clock.monotonic_s())
        clock.set_wall(-3 * 3600)
        return HandlerOutcome(True)

    spec = ProbeSpec("readiness", {}, period_s=2)
    running = probe_loop.run(spec, check, lambda _: None, clock, started_ns=clock.now_ns())
    task = asyncio.create_task(running)
    await clock.advance(5)
    task.cancel()
    assert checked_s == [0, 2, 4]


async def no_command(argv: tuple[str, ...], timeout_s: float) -> HandlerOutcome:
    return HandlerOutcome(False, f"{argv} {timeout_s}")


REDIRECTED = HandlerOutcome(True, warning="Probe terminated redirects, Response body: ")

Answer = Callable[[bytes], Awaitable[bytes | None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server on 127.0.0.1 that answers each request head; None: never."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        reply = await answer(heads[-1])
        if reply is not None:
            writer.write(reply)
        else:
            await reader.read()
        writer.transport.abort()

    async with tcp_server.serving(serve) as port:
        yield port, heads


def target(port: int, **port_map: int) -> HandlerTarget:
    return HandlerTarget("127.0.0.1", {"http": port}, {int(k[1:]): v for k, v in port_map.items()}, no_command)


def says(text: str) -> Answer:
    async def answer(head: bytes) -> bytes:
        return text.encode()

    return answer


async def check(
    handler: dict[str, Any], at: HandlerTarget, *, timeout_s: float, purpose: Purpose = "probe"
) -> HandlerOutcome:
    checks = HandlerRunner()
    try:
        return await checks.run(handler, at, timeout_s=timeout_s, purpose=purpose)
    finally:
        await checks.close()


async def get(port: int, *, at: HandlerTarget | None = None, **action: Any) -> HandlerOutcome:
    return await check({"httpGet": {"port": port, **action}}, at or target(port), timeout_s=WITHIN_S)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("200 OK", HandlerOutcome(True)),
        ("204 No Content", HandlerOutcome(True)),
        ("302 Found", REDIRECTED),
        ("399 Odd", REDIRECTED),
        ("400 Bad Request", HandlerOutcome(False, "HTTP probe failed with statuscode: 400")),
        ("503 Service Unavailable", HandlerOutcome(False, "HTTP probe failed with statuscode: 503")),
    ],
)
async def test_http_statuses(status: str, outcome: HandlerOutcome) -> None:
    """200 to 399 is a success, with a warning where it is a redirect."""
    async with serving(says(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")) as (port, _):
        assert await get(port) == outcome


async def test_the_request_of_a_probe() -> None:
    """Path with query, the usual headers, and those of the probe, which win."""
    async with serving(says("HTTP/1.1 200 OK\r\n\r\n")) as (port, heads):
        headers = [{"name": "X-Probe", "value": "1"}, {"name": "Host", "value": "example.com"}]
        await get(port, path="/health?full=1", httpHeaders=headers)
    assert heads[0].decode().split("\r\n") == [
        "GET /health?full=1 HTTP/1.1",
        "Host: example.com",
        "User-Agent: kube-probe/1.37",
        "Accept: */*",
        "X-Probe: 1",
        "Connection: close",
        "",
        "",
    ]


async def test_headers_that_a_probe_takes_away() -> None:
    """Empty values of Accept and User-Agent; what describes a body is never sent. Host has the port, also 80."""
    async with serving(says("HTTP/1.1 200 OK\r\n\r\n")) as (port, heads):
        names = ("Accept", "User-Agent", "Content-Length", "Transfer-Encoding")
        await get(port, httpHeaders=[{"name": name} for name in names])
    assert heads == [f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()]
    assert http_check.make_request({}, "::1", 80, user_agent="x").authority == "[::1]:80"


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"X-A": "1\r\nHost: evil"}, 'net/http: invalid header field value for "X-A"'),
        ({"X-A": "1\nX-B: 2"}, 'net/http: invalid header field value for "X-A"'),
        ({"X-A": "1\0"}, 'net/http: invalid header field value for "X-A"'),
        ({"X-A: 1\r\nX-B": "2"}, "net/http: invalid header field name 'X-A: 1\\r\\nX-B'"),
        ({"X A": "2"}, "net/http: invalid header field name 'X A'"),
        ({"": "2"}, "net/http: invalid header field name ''"),
        ({"Host": "a\r\n\r\nGET /second HTTP/1.1"}, 'net/http: invalid header field value for "Host"'),
        ({"Host": "a/b c"}, "http: invalid Host header"),
    ],
)
async def test_headers_that_cannot_be_sent(headers: dict[str, str], text: str) -> None:
    """They are a failure with a sentence, and nothing is on the wire."""
    async with serving(says("HTTP/1.1 200 OK\r\n\r\n")) as (port, heads):
        outcome = await get(port, httpHeaders=[{"name": name, "value": value} for name, value in headers.items()])
    assert (outcome, heads) == (HandlerOutcome(False, f'Get "http://127.0.0.1:{port}/": {text}'), [])


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/a b", "/a%20b"),
        ("/a%2Fb", "/a%2Fb"),
        ("/a\r\nHost: evil\r\n\r\n", "/a%0D%0AHost:%20evil%0D%0A%0D%0A"),
        ("/a?b=c d", "/a?b=c%20d"),
        ("/a?b\r\nX: 1", "/a%3Fb%0D%0AX:%201"),
        ("/100%", "/100%25"),
        ("/ü", "/%C3%BC"),
        ("a#fragment", "/a"),
        ("//evil.example/x", "/x"),
        ("http://evil.example/x", "/x"),
        ("@evil.example/x", "/@evil.example/x"),
        ("//[", "//%5B"),
        ("?q", "/?q"),
    ],
)
async def test_paths_are_paths(path: str, target: str) -> None:
    """A path is escaped as upstream does; it names neither host nor headers."""
    async with serving(says("HTTP/1.1 200 OK\r\n\r\n")) as (port, heads):
        assert (await get(port, path=path)).ok
    assert heads[0].split(b"\r\n")[0].decode() == f"GET {target} HTTP/1.1"


@pytest.mark.parametrize("host", ["a\r\nb", "a b", "a/b", "a@b", "a?b", "[", "x" * 300, "\0"])
async def test_hosts_that_cannot_be(host: str) -> None:
    """They are failures."""
    outcome = await get(1, host=host)
    assert (outcome.ok, "\n" in outcome.text) == (False, False)


async def test_a_body_is_read_to_its_limit() -> None:
    """10 KiB are enough, also of an answer without end; one that is cut short is a failure."""
    endless = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + "x" * 20_000
    cut = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + "x"
    async with serving(says(endless)) as (port, _):
        assert await get(port) == HandlerOutcome(True)
    async with serving(says(cut)) as (port, _):
        assert await get(port) == HandlerOutcome(False, f'Get "http://127.0.0.1:{port}/": unexpected EOF')


async def test_a_hook_takes_every_answer() -> None:
    """Kubelet does not look at the status of an HTTP hook, and names itself kube-lifecycle."""
    async with serving(says("HTTP/1.1 500 Broken\r\n\r\n")) as (port, heads):
        found = await check({"httpGet": {"port": port}}, target(port), timeout_s=WITHIN_S, purpose="lifecycle")
    assert (found, b"User-Agent: kube-lifecycle/1.37\r\n" in heads[0]) == (HandlerOutcome(True), True)


async def test_redirects_are_followed_on_the_same_host() -> None:
    """The status at the end counts; a redirect to another host is a success by itself."""

    async def answer(head: bytes) -> bytes:
        if head.startswith(b"GET /a "):
            return b"HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\n"
        if head.startswith(b"GET /away "):
            return b"HTTP/1.1 301 Moved\r\nLocation: http://192.0.2.1/\r\n\r\n"
        if head.startswith(b"GET /loop "):
            return b"HTTP/1.1 301 Moved\r\nLocation: /loop\r\n\r\n"
        return b"HTTP/1.1 500 Broken\r\n\r\n"

    async with serving(answer) as (port, _):
        assert await get(port, path="/a") == HandlerOutcome(False, "HTTP probe failed with statuscode: 500")
        assert await get(port, path="/away") == REDIRECTED
        looping = await get(port, path="/loop")
        assert (looping.ok, "stopped after 10 redirects" in looping.text) == (False, True)


@pytest.mark.parametrize(
    ("reply", "part"),
    [("nonsense\r\n\r\n", "malformed HTTP response"), ("", "EOF"), ("HTTP/1.1 200", "EOF")],
)
async def test_answers_that_are_not_http(reply: str, part: str) -> None:
    """Garbage and silence are failures with a reason."""
    async with serving(says(reply)) as (port, _):
        outcome = await get(port)
    assert not outcome.ok
    assert part in outcome.text


async def test_a_server_that_never_answers() -> None:
    """The probe gives up after its timeout."""

    async def never(head: bytes) -> None:
        return None

    async with serving(never) as (port, _):
        outcome = await check({"httpGet": {"port": port}}, target(port), timeout_s=0.05)
    assert outcome == HandlerOutcome(
        False, f'Get "http://127.0.0.1:{port}/": context deadline exceeded (the timeout is 0.05 s)'
    )


async def test_ports_by_name_and_by_map() -> None:
    """A port may be named; one that is mapped is asked where it really is."""
    async with serving(says("HTTP/1.1 200 OK\r\n\r\n")) as (port, _):
        assert await get(port, at=target(port)) == HandlerOutcome(True)
        assert (await check({"httpGet": {"port": "http"}}, target(port), timeout_s=WITHIN_S)).ok
        assert (await check({"tcpSocket": {"port": 80}}, target(port, p80=port), timeout_s=WITHIN_S)).ok
        assert await check({"tcpSocket": {"port": "no"}}, target(port), timeout_s=WITHIN_S) == HandlerOutcome(
            False, "couldn't find port no"
        )


async def test_a_closed_port() -> None:
    """tcpSocket and httpGet say that nobody listens."""
    async with serving(says("")) as (port, _):
        pass
    tcp = await check({"tcpSocket": {"port": port}}, target(port), timeout_s=WITHIN_S)
    assert tcp == HandlerOutcome(False, f"dial tcp 127.0.0.1:{port}: connect: connection refused")
    assert await get(port) == HandlerOutcome(False, f'Get "http://127.0.0.1:{port}/": connect: connection refused')


async def test_commands_and_kinds_that_are_not_there() -> None:
    """exec is run in the container with the timeout; grpc is refused with a message."""
    assert await check({"exec": {"command": ["a", "b"]}}, target(1), timeout_s=7) == HandlerOutcome(
        False, "('a', 'b') 7"
    )
    assert await check({"grpc": {"port": 1}}, target(1), timeout_s=7) == HandlerOutcome(
        False, "this kind of handler is not supported: grpc"
    )
