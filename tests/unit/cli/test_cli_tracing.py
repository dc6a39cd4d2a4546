"""`--otlp-endpoint`: where traces go, and what it costs without."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from patience import WITHIN_S
from podscaler.base.errors import UsageError
from podscaler.cli.options import span_sending, tracing
from podscaler.controller.telemetry import current_sync


class Collector(HTTPServer):
    """Takes what an exporter posts."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taker)
        self.taken: list[tuple[str, ExportTraceServiceRequest]] = []


class Scripted(SpanExporter):
    """Says what it is told to."""

    def __init__(self, results: list[SpanExportResult]) -> None:
        self._results = iter(results)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """The next result."""
        return next(self._results)


class Taker(BaseHTTPRequestHandler):
    """One request."""

    server: Collector

    def do_POST(self) -> None:
        """Keep it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that listens."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def test_spans_reach_the_collector(collector: Collector) -> None:
    """At the latest when the controller ends, with the service's name."""
    async with tracing.open_traces(f"http://127.0.0.1:{collector.server_port}") as traces:
        assert traces is not None
        with traces.tracer.start_as_current_span("sync"):
            pass
    ((path, request),) = collector.taken
    (resource,) = request.resource_spans
    named = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert (path, named["service.name"]) == ("/v1/traces", "podscaler")
    assert [span.name for scope in resource.scope_spans for span in scope.spans] == ["sync"]


async def test_without_an_endpoint_there_are_no_traces() -> None:
    """Nobody looks on."""
    async with tracing.open_traces("") as traces:
        assert traces is None
    assert tracing.log_fields_getter("") is current_sync.log_fields


def test_without_the_flag_nothing_of_opentelemetry_is_imported() -> None:
    """Start-up time and memory are those of a program without traces."""
    imports = "import sys, podscaler.cli.commands.controller"
    script = f"{imports}; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], timeout=WITHIN_S).returncode == 0


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        pytest.param("http://collector:4318", "http://collector:4318/v1/traces", id="a host"),
        pytest.param("https://collector:4318/", "https://collector:4318/v1/traces", id="with a slash"),
        pytest.param("http://c/otlp", "http://c/otlp/v1/traces", id="below a path"),
        pytest.param("http://c/v1/traces", "http://c/v1/traces", id="the whole URL"),
    ],
)
def test_where_spans_are_posted(endpoint: str, url: str) -> None:
    """OTLP's path is added where it is missing."""
    assert tracing.traces_url(endpoint) == url


@pytest.mark.parametrize("endpoint", ["collector:4318", "ftp://c", "http://", "http://c:99999", "http://[c"])
def test_what_is_no_url_is_refused(endpoint: str) -> None:
    """In one sentence that names the flag and shows what would be right."""
    with pytest.raises(UsageError) as refused:
        tracing.traces_url(endpoint)
    assert str(refused.value) == f'--otlp-endpoint "{endpoint}" is not a URL like http://localhost:4318'


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is optional."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(
        UsageError, match=r"^--otlp-endpoint needs OpenTelemetry, .*: pip install 'podscaler\[tracing\]'$"
    ):
        tracing.log_fields_getter("http://c")


async def test_log_records_of_a_sync_name_its_trace(collector: Collector) -> None:
    """So that a log and a trace find each other."""
    fields = tracing.log_fields_getter("http://c")
    outside = fields()
    async with tracing.open_traces(f"http://127.0.0.1:{collector.server_port}") as traces:
        assert traces is not None
        with traces.tracer.start_as_current_span("sync") as span:
            inside = fields()
    context = span.get_span_context()
    assert outside == {}
    assert inside == {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


async def test_a_collector_that_hangs_does_not_hold_up_the_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that is told to end is gone in time; the log has one line about it."""
    monkeypatch.setattr(span_sending, "CLOSE_TIMEOUT_S", 0.2)
    monkeypatch.setattr(span_sending, "POST_TIMEOUT_S", 2 * WITHIN_S)  # it is not this one that ends it
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        async with tracing.open_traces(f"http://127.0.0.1:{hanging.getsockname()[1]}") as traces:
            assert traces is not None
            with traces.tracer.start_as_current_span("sync"):
                pass
    assert [record.getMessage() for record in caplog.records] == ["the last traces could not be sent within 0.2 s"]


def test_a_collector_that_is_gone_and_comes_back_is_one_line_each(caplog: pytest.LogCaptureFixture) -> None:
    """However many batches fail between."""
    caplog.set_level("INFO")
    exporter = span_sending.LoggingExporter(
        Scripted([SpanExportResult.FAILURE] * 3 + [SpanExportResult.SUCCESS] * 2), "http://c/v1/traces"
    )
    for _ in range(5):
        exporter.export([])
    assert [record.getMessage() for record in caplog.records] == [
        "traces cannot be sent to http://c/v1/traces and are dropped until they can",
        "traces are sent to http://c/v1/traces again",
    ]
