"""Bytes that hardly are HTTP, and paths, queries, headers and bodies that no client of ours would send."""

import random
import socket

import fuzz_bodies as bodies
import fuzz_budget as budget
import fuzz_queries as queries
import pytest
from fuzz_client import Request
from fuzz_server import NOBODY_TOKEN, TOKENS, Target
from fuzz_verdict import check
from hypothesis import given
from hypothesis import strategies as st

import sampling

PATHS = (
    "/api/v1/namespaces/default/pods/fuzz",
    "/apis/apps/v1/namespaces/default/deployments/fuzz/scale",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    "/openapi/v3/apis/apps/v1",
    "/healthz/etcd",
    "/apis/fuzz.example.com/v1/gadgets/fuzz",
    "/api/v1/watch/pods",
)
PIECES = (
    "..",
    ".",
    "",
    "%",
    "%2",
    "%zz",
    "%00",
    "%2f",
    "%252f",
    "%ff%fe",
    "%c0%af",
    "*",
    ";a=b",
    ":",
    "@",
    "#",
    "?",
    "??",
    "é",
    "a" * 9000,
)
PATH_CHARACTERS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=40)
_POST = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n"
_CHUNKED = _POST + b"Transfer-Encoding: chunked\r\n\r\n"
HEADS = (
    b"",
    b"GET",
    b"GET /",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"get /api HTTP/1.1\r\nHost: x\r\n\r\n",
    b"G\xc3\x89T / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    _CHUNKED + b"zz\r\n",
    _CHUNKED + b"ffffffffffffffffff\r\n",
    _CHUNKED + b"2\r\n{}xx\r\n0\r\n\r\n",
    _POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
    _POST + b"Content-Length: -1\r\n\r\n{}",
    _POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    _POST + b"Content-Length: 9\r\n\r\n{}",
    _POST + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Basic =\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\nA\x00b: c\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: x\r\n folded: c\r\n\r\n",
    b"GET /api?\xff\xfe=\x80 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n",
    b"GET /api/v1/pods?%=%&=&&a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
)
SESSIONS = ("exec", "attach", "portforward", "log")
UPGRADES = (
    {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    },
    {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"},
    {},
)
PROTOCOLS = (
    "v5.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "SPDY/3.1+portforward.k8s.io",
    "x",
    "",
    "v4.channel.k8s.io,x",
)


_KEYS = st.sampled_from(["kind", "apiVersion", "metadata", "spec", "data", "a"]) | st.text(max_size=3)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            _KEYS,
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("head", HEADS, ids=range(len(HEADS)))
def test_head(target: Target, head: bytes) -> None:
    """What is no request gets a 4xx or nothing, and never a word in the log."""
    with socket.create_connection(("127.0.0.1", target.client.port), timeout=120) as connection:
        connection.sendall(head)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 100 ", b"HTTP/1.1 200")), answer[
        :200
    ]
    assert target.alarm.taken() == ""


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", sampling.one_in(2, PATHS))
def test_path(target: Target, method: str, path: str) -> None:
    """Paths with odd parts put in anywhere, of which few are served."""

    @budget.of()
    @given(budget.SEEDS)
    def ask(seed: int) -> None:
        rng = random.Random(f"{method} {path} {seed}")
        parts = path.split("/")
        for _ in range(rng.randint(1, 3)):
            parts.insert(rng.randint(1, len(parts)), rng.choice(PIECES))
        asked = Request(method, "/".join(parts).replace(" ", ""), token=rng.choice(TOKENS))
        check(target.client.send(asked), asked, target.alarm)

    ask()


@budget.of(budget.EXAMPLES * 4)
@given(PATH_CHARACTERS, PATH_CHARACTERS)
def test_any_path(target: Target, path: str, query: str) -> None:
    """Any text as path and query."""
    asked = Request("GET", f"/{path}?{query}")
    check(target.client.send(asked), asked, target.alarm)


@pytest.mark.parametrize(
    "content_type", [bodies.JSON, bodies.YAML, bodies.PROTOBUF, *bodies.PATCHES, *bodies.ODD_TYPES]
)
@pytest.mark.parametrize("number", sampling.one_in(3, range(len(bodies.GARBAGE))))
def test_garbage(target: Target, content_type: str, number: int) -> None:
    """What is no object in any content type is refused; what is one without a name too."""
    is_patch = content_type in bodies.PATCHES
    for path in ("/api/v1/namespaces/default/configmaps", "/apis/fuzz.example.com/v1/gadgets"):
        target_path = f"{path}/fuzz?fieldManager=a" if is_patch else path
        headers = (("Content-Type", content_type),)
        asked = Request("PATCH" if is_patch else "POST", target_path, headers, bodies.GARBAGE[number])
        answer = target.client.send(asked)
        check(answer, asked, target.alarm)
        assert answer.status >= 400 or is_patch


@budget.of(budget.EXAMPLES * 4)
@given(ANY_JSON)
def test_any_json(target: Target, value: object) -> None:
    """Any JSON, in every place where a body is taken."""
    body = bodies.json_of(value)
    for method, path, content_type in (
        ("POST", "/api/v1/namespaces/default/configmaps", bodies.JSON),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/fuzz", bodies.JSON),
        ("POST", "/apis/fuzz.example.com/v1/gadgets", bodies.YAML),
        ("PATCH", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/fuzz", bodies.MERGE),
        ("PATCH", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/fuzz", bodies.STRATEGIC),
        ("PATCH", "/api/v1/namespaces/default/pods/fuzz", bodies.JSON_PATCH),
        ("PATCH", "/apis/fuzz.example.com/v1/gadgets/fuzz?fieldManager=a", bodies.APPLY),
        ("DELETE", "/api/v1/namespaces/default/pods/fuzz?dryRun=All", bodies.JSON),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", bodies.JSON),
    ):
        asked = Request(method, path, (("Content-Type", content_type),), body)
        check(target.client.send(asked), asked, target.alarm)


@pytest.mark.parametrize("what", SESSIONS)
def test_session(target: Target, what: str) -> None:
    """exec, attach, port-forward and logs are opened in every way, or refused."""

    @budget.of(budget.EXAMPLES * 4)
    @given(budget.SEEDS)
    def ask(seed: int) -> None:
        rng = random.Random(f"{what} {seed}")
        text = "&".join(f"{name}={value}" for name, value in _session_query(rng))
        headers = {**rng.choice(UPGRADES), "Sec-WebSocket-Protocol": rng.choice(PROTOCOLS)}
        path = f"/api/v1/namespaces/default/pods/{rng.choice(('fuzz', 'fuzz', 'nope'))}/{what}?{text}"
        asked = Request(rng.choice(("GET", "GET", "POST")), path, tuple(headers.items()), token=rng.choice(TOKENS))
        check(target.client.send(asked), asked, target.alarm)

    ask()


def _session_query(rng: random.Random) -> list[tuple[str, str]]:
    known = {
        "command": ("sh", "", "%00", "%ff", "x" * 5000),
        "container": ("c", "c", "c", "x", "", "%00"),
        **dict.fromkeys(
            ("stdin", "stdout", "stderr", "tty", "follow", "previous", "timestamps"), ("true", "1", "0", "x", "")
        ),
        **dict.fromkeys(
            ("tailLines", "limitBytes", "sinceSeconds", "ports"),
            ("1", "0", "-1", "80,81", "x", "9" * 30, "", "80&ports=70000"),
        ),
        "sinceTime": ("2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "x"),
        "stream": ("All", "Stdout", "x", ""),
    }
    names = rng.choices(list(known), k=rng.randrange(6))
    return [(name, rng.choice(known[name])) for name in names]


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/default/pods", "/apis", "/apis/apps/v1/namespaces/default/deployments/fuzz"]
)
def test_headers(target: Target, path: str) -> None:
    """Many odd headers at once, as everyone."""

    @budget.of(budget.EXAMPLES * 4)
    @given(budget.SEEDS)
    def ask(seed: int) -> None:
        rng = random.Random(f"headers {path} {seed}")
        headers: dict[str, str] = {}
        for _ in range(rng.randint(1, 5)):
            headers |= queries.headers(rng)
        asked = Request(
            "GET", path, tuple(headers.items()), token=rng.choice((*TOKENS, "", NOBODY_TOKEN, "é", "x" * 5000, "a.b.c"))
        )
        check(target.client.send(asked), asked, target.alarm)

    ask()
