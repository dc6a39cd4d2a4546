"""The subcommands of the image agnhost, and the HTTP server that they share."""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path

import pytest

from podscaler.controlplane.kubelet.programs import (
    agnhost,
    external_metrics,
    go_flags,
    netexec,
    serve_hostname,
    web_server,
)
from podscaler.controlplane.kubelet.programs.external_metrics import ExternalMetricsServer
from podscaler.controlplane.kubelet.programs.netexec import Netexec, ServerState
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, WebResponse


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of a container."""
    monkeypatch.setenv("POD_IP", "127.0.0.1")
    monkeypatch.setenv("HOSTNAME", "web-0")
    monkeypatch.setenv("COLOUR", "blue")


def get(path: str, *, query: str = "", headers: dict[str, str] | None = None, **form: str) -> WebRequest:
    message = Message()
    for name, value in (headers or {}).items():
        message[name] = value
    return WebRequest("GET", path, query, form, message, b"", ("127.9.9.9", 4321))


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        (get("/hostname"), 200, "web-0"),
        (get("/hostName"), 200, "web-0"),
        (get("/clientip"), 200, "127.9.9.9:4321"),
        (get("/serverport"), 200, "8080"),
        (get("/echo", msg="hello"), 200, "hello"),
        (get("/echo", msg="hello", code="404"), 404, "hello"),
        (get("/echo", code="x"), 200, "argument 'code' must be an integer or empty, got \"x\"\n"),
        (get("/envvar", var="COLOUR"), 200, "blue"),
        (get("/envvar"), 400, "'var' query parameter is required\n"),
        (get("/envvar", var="NOT_SET"), 500, 'env var "NOT_SET" is not set\n'),
        (get("/header", key="X-Forwarded-For", headers={"x-forwarded-for": "1.2.3.4"}), 200, "1.2.3.4"),
        (get("/header", headers={"accept": "*/*", "host": "h"}), 200, '{"Accept": ["*/*"]}'),
        (get("/healthz"), 412, ""),
        (get("/readyz"), 412, ""),
        (get("/shell", cmd="echo hello"), 200, '{"output": "hello\\n"}'),
        (get("/shell", shellCommand="exit 3"), 200, '{"error": "exit status 3"}'),
        (get("/dial"), 400, "request parameter not specified. <nil>\n"),
        (get("/dial", query="request=x&protocol=sctp"), 400, "unsupported protocol. sctp\n"),
    ],
    ids=lambda value: value.path if isinstance(value, WebRequest) else "",
)
def test_netexec(request_: WebRequest, status: int, text: str) -> None:
    """Upstream's responses."""
    response = Netexec(ServerState(8080)).respond(request_)
    assert (response.status, response.text) == (status, text)


@pytest.mark.parametrize(
    ("state", "statuses"),
    [
        pytest.param(ServerState(80, is_ready=True), (200, 200), id="ready"),
        pytest.param(ServerState(80, is_ready=True, is_ending=True), (200, 503), id="ending"),
    ],
)
def test_netexec_health(state: ServerState, statuses: tuple[int, int]) -> None:
    """A server that ends is healthy and not ready."""
    netexec_ = Netexec(state)
    assert (netexec_.respond(get("/healthz")).status, netexec_.respond(get("/readyz")).status) == statuses


def test_netexec_redirects() -> None:
    """The location is sent as it was given, with line feeds quoted."""
    response = Netexec(ServerState(80)).respond(get("/redirect", location="/echo?msg=a\nb", code="307"))
    assert (response.status, response.headers) == (307, {"Location": "/echo?msg=a%0Ab"})


def test_netexec_ends_the_process() -> None:
    """`/exit` without a timeout ends it before there is a response."""
    codes: list[int] = []
    Netexec(ServerState(80), codes.append).respond(get("/exit", code="7"))
    assert codes[0] == 7


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("0", 0.0), ("5", None), ("x", None)]
)
def test_durations(text: str, seconds: float | None) -> None:
    """Go's form of durations."""
    assert go_flags.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("command", "response"),
    [
        ("hostname\n", "web-0"),
        ("hostName", "web-0"),
        ("echo Hello You", "hello you"),
        ("clientip", "127.9.9.9:5"),
        ("serverport", "8081"),
        ("envvar COLOUR", "blue"),
        ("envvar NOT_SET", ""),
        ("other", None),
        ("", None),
    ],
)
def test_datagrams(command: str, response: str | None) -> None:
    """The commands of the UDP server."""
    assert netexec.datagram_response(command, ("127.9.9.9", 5), 8081) == response


def test_overriding_requests() -> None:
    """Every request has the response of one target."""
    respond = netexec.fixed_responder(Netexec(ServerState(80)), "/echo?msg=fixed&code=202")
    assert respond(get("/hostname")) == WebResponse("fixed", 202)


@pytest.fixture
def port() -> Iterator[int]:
    """A running server that responds with the method, the path and the body of requests."""

    def respond(request: WebRequest) -> WebResponse:
        return WebResponse(f"{request.method} {request.path} {dict(request.form)} {request.body!r}")

    with web_server.new_server(respond, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


def test_a_line_that_is_no_request(port: int) -> None:
    """`echo hostName | nc` has a response: tests of Services look for any."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"hostName\n")
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as response:
            assert b"Bad request syntax" in response.read()


def test_the_log_names_no_path_for_a_line_that_is_no_request(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid request after a valid one, on the same connection, is not logged with the former's path."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET /a?b HTTP/1.1\r\n\r\nhostName\n")
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as response:
            response.read()
    assert capsys.readouterr().out == "GET /a 200\ninvalid request 400\n"


@pytest.mark.parametrize(
    ("headers", "body", "text"),
    [
        pytest.param({}, b"", "POST /a {'x': '1'} b''", id="query"),
        pytest.param(
            {"Content-Type": "application/x-www-form-urlencoded"},
            b"x=2&y=3",
            "POST /a {'x': '2', 'y': '3'} b'x=2&y=3'",
            id="form",
        ),
        pytest.param(
            {"Transfer-Encoding": "chunked"}, b"2;a=b\r\nhi\r\n0\r\n\r\n", "POST /a {'x': '1'} b'hi'", id="chunked"
        ),
        pytest.param({"Transfer-Encoding": "chunked"}, b"zz\r\n", "invalid body\n", id="invalid chunk"),
        pytest.param({"Transfer-Encoding": "chunked"}, b"-1\r\n", "invalid body\n", id="negative chunk"),
        pytest.param({"Content-Length": "-1"}, b"", "invalid body\n", id="negative length"),
        pytest.param({"Content-Length": "1_0"}, b"", "invalid body\n", id="no number"),
        pytest.param({"Content-Length": "99999999"}, b"", "request body too large\n", id="too large"),
    ],
)
def test_bodies(port: int, headers: dict[str, str], body: bytes, text: str) -> None:
    """Parameters of a form come before those of the query; large bodies are not read."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest("POST", "/a?x=1")
    length = {} if "Transfer-Encoding" in headers else {"Content-Length": str(len(body))}
    for name, value in (length | headers).items():
        connection.putheader(name, value)
    connection.endheaders(body)
    assert connection.getresponse().read().decode() == text
    connection.close()


def test_dialling(port: int) -> None:
    """`/dial` reports each response."""
    request = get("/dial", query=f"host=127.0.0.1&port={port}&request=hello&tries=2")
    assert json.loads(netexec.dial(request).text) == {"responses": ["GET /hello {} b''"] * 2}


@pytest.mark.parametrize(
    ("args", "values"),
    [
        ([], (80, True)),
        (["-port=81"], (81, True)),
        (["--port", "82", "--http=false"], (82, False)),
        (["--http"], (80, True)),
    ],
)
def test_flags(args: list[str], values: tuple[int, bool]) -> None:
    """Flags have Go's forms."""
    parser = go_flags.ArgumentParser(prog="test")
    parser.add_flag("port", 80)
    parser.add_flag("http", True)
    options = parser.parse_args(args)
    assert (options.port, options.http) == values


API = f"/apis/{external_metrics.GROUP_VERSION}"


def test_external_metrics_are_set() -> None:
    """A metric with labels is created, changed and read by its selector."""
    metrics = ExternalMetricsServer()
    statuses = [
        metrics.respond(get("/create/jobs", value="7", labels="queue=a")).status,
        metrics.respond(get("/set/jobs", value="9", labels="queue=a")).status,
    ]
    read = json.loads(metrics.respond(get(f"{API}/namespaces/default/jobs", labelSelector="queue=a")).text)
    items = [(item["metricName"], item["metricLabels"], item["value"]) for item in read["items"]]
    assert (statuses, items) == ([201, 200], [("jobs", {"queue": "a"}, "9")])


def test_external_metrics_fail() -> None:
    """A metric that is set to fail is an error until it is set not to."""
    metrics, path = ExternalMetricsServer(), f"{API}/namespaces/default/queue_messages_ready"
    statuses = [metrics.respond(get(path)).status]
    for fails in ("true", "false"):
        metrics.respond(get("/fail/queue_messages_ready", fail=fails))
        statuses.append(metrics.respond(get(path)).status)
    assert statuses == [200, 500, 200]


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        (get("/healthz"), 200, "ok"),
        (get("/set/jobs", value="1"), 404, "metric jobs not found\n"),
        (get("/set/http_requests_total"), 400, "value param required\n"),
        (get("/set/http_requests_total", value="x"), 400, "value param must be an integer\n"),
        (get("/fail/http_requests_total", fail="x"), 400, "fail param should be true or false\n"),
        (get("/create/", value="1"), 400, "metric name required\n"),
        (get(f"{API}/namespaces/n/jobs"), 404, "no metric name called jobs\n"),
        (
            get(f"{API}/namespaces/n/jobs", labelSelector="b=2,a=1"),
            404,
            "no metric name called jobs with labels map[a:1 b:2]\n",
        ),
        (get("/other"), 404, "404 page not found\n"),
    ],
    ids=lambda value: value.path if isinstance(value, WebRequest) else "",
)
def test_external_metrics_errors(request_: WebRequest, status: int, text: str) -> None:
    """Upstream's messages."""
    response = ExternalMetricsServer().respond(request_)
    assert (response.status, response.text) == (status, text)


def test_the_discovery_of_external_metrics() -> None:
    """The group and its resources are described."""
    metrics = ExternalMetricsServer()
    kinds = [json.loads(metrics.respond(get(path)).text)["kind"] for path in (f"/apis/{external_metrics.GROUP}", API)]
    assert kinds == ["APIGroup", "APIResourceList"]


def test_the_certificate_of_external_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one for each start, with its key."""
    monkeypatch.setattr(external_metrics.site, "main", lambda: None)
    contexts = [external_metrics.self_signed_context() for _ in range(2)]
    assert [context.protocol for context in contexts] == [ssl.PROTOCOL_TLS_SERVER] * 2


@pytest.mark.parametrize(
    ("path", "status"),
    [("/page", 200), ("/", 200), ("/missing", 404), ("/../secret", 404), ("/%2e%2e/secret", 404), ("/link", 404)],
)
def test_files(tmp_path: Path, path: str, status: int) -> None:
    """Files of the folder are served, and nothing outside it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "page").write_text("content")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    assert serve_hostname.file_response(folder, get(path)).status == status


def test_the_web_server_has_the_file_of_its_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes ask for /localhost.crt."""
    found: list[int] = []

    def serve(respond: Callable[[WebRequest], WebResponse], port: int) -> int:
        found.extend((port, respond(get("/localhost.crt")).status, respond(get("/other.crt")).status))
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(serve_hostname, "serve", serve)
    assert (serve_hostname.web_server_main([]), found) == (0, [80, 200, 404])


def test_an_unknown_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names those that exist."""
    assert agnhost.run(["python"], ["porter"]) == 1
    message = capsys.readouterr().err
    assert message.startswith('Error: unknown command "porter" for "app": podscaler has crd-conversion-webhook, ')
    assert message.endswith(", webhook\n")


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (get("/echo", msg="prestop"), "GET /echo?msg=prestop&code="),
        (get("/echo", msg="two\nlines"), "GET /echo?msg=two\\nlines&code="),
        (get("/shell", cmd="ls"), "GET /shell?cmd=ls"),
        (get("/hostname"), "GET /hostname"),
        (get("/other"), "GET /"),
    ],
)
def test_netexec_logs_requests(request_: WebRequest, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The log of the container has one line for each request."""
    Netexec(ServerState(8080)).respond(request_)
    assert capsys.readouterr().out == f"{line}\n"


def test_arguments_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`entrypoint-tester` prints its command line."""
    assert agnhost.run(["python"], ["entrypoint-tester", "a", "b c"]) == 0
    assert capsys.readouterr().out == "[/agnhost entrypoint-tester a b c]\n"


def test_a_health_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """`liveness` responds 500 after ten seconds."""
    now_s = [100.0]
    found: list[int] = []

    def serve(respond: Callable[[WebRequest], WebResponse], port: int) -> int:
        found.append(port)
        for now_s[0] in (109.9, 110.1):
            found.append(respond(get("/healthz")).status)
        return 0

    monkeypatch.setattr(serve_hostname, "serve", serve)
    monkeypatch.setattr(serve_hostname.time, "monotonic", lambda: now_s[0])
    assert (serve_hostname.liveness_main([]), found) == (0, [8080, 200, 500])
