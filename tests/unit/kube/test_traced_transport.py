"""A transport that makes spans of requests: their names, their failures, and nothing outside of a trace."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podscaler.kube.transport.traced_transport import REQUEST_COUNT, RequestCount, TracedTransport, name_of
from podscaler.kube.transport.transport import Request, TransportError
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

PATH = "/api/v1/nodes"


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        pytest.param("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/a/pods", "metrics query", id="resource metrics"),
        pytest.param("GET", "/apis/custom.metrics.k8s.io/v1beta2/namespaces/a/pods/*/m", "metrics query", id="custom"),
        pytest.param("GET", "/apis/external.metrics.k8s.io/v1beta1/namespaces/a/m", "metrics query", id="external"),
        pytest.param("GET", "/apis/metrics.k8s.io/v1beta1", "API request", id="discovery of metrics"),
        pytest.param("GET", "/apis/apps/v1/namespaces/a/deployments/b/scale", "scale read", id="scale read"),
        pytest.param("PUT", "/apis/apps/v1/namespaces/a/deployments/b/scale", "scale write", id="scale write"),
        pytest.param("PUT", "/apis/autoscaling/v2/namespaces/a/h/b/status", "status write", id="status write"),
        pytest.param("GET", "/apis/apps/v1", "API request", id="anything else"),
    ],
)
def test_a_span_is_named_for_what_the_request_is_for(method: str, path: str, name: str) -> None:
    """Few names, whatever objects are asked for."""
    assert name_of(Request(method, path)) == name


class World:
    """A traced transport on a scripted one."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")
        self.inner = ScriptedTransport()
        self.transport = TracedTransport(self.inner, self.tracer)


async def test_nothing_is_traced_outside_of_a_trace() -> None:
    """What the controller does beside its syncs: the request passes as it is."""
    world = World()
    world.inner.on("GET", PATH, json_answer({}))
    answer = await world.transport.request(Request("GET", PATH))
    assert (answer.status, world.exporter.get_finished_spans()) == (200, ())


async def test_a_request_without_an_answer_is_an_error() -> None:
    """The failure escapes as it is, counts as a request, and is what the span says."""
    world, count = World(), RequestCount()
    world.inner.on("GET", PATH, TransportFailure("EOF", broken=True))
    token = REQUEST_COUNT.set(count)
    with world.tracer.start_as_current_span("sync"), pytest.raises(TransportError, match="EOF"):
        await world.transport.request(Request("GET", PATH))
    REQUEST_COUNT.reset(token)
    request, _ = world.exporter.get_finished_spans()
    assert (request.status.is_ok, "EOF" in (request.status.description or ""), count.requests) == (False, True, 1)


async def test_it_is_the_inner_transport_otherwise() -> None:
    """Its server, its streams, its end."""
    world = World()
    assert world.transport.server == world.inner.server
    world.inner.on("GET", PATH, json_answer({"a": 1}))
    async with world.transport.stream(Request("GET", PATH)) as stream:
        assert await stream.read() == b'{"a":1}'
    await world.transport.close()
