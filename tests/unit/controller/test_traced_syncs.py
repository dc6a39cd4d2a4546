"""Spans of syncs and of what they ask for."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from podscaler.cli.options.tracing import Traces
from podscaler.controller import assembly
from podscaler.controller.controller import Controller
from podscaler.kube.client.client import Client
from podscaler.testing.autoscaling import AutoscalerWorld, NoRandomness
from podscaler.testing.cluster import refusal

HPAS_OF_SHOP = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"


class TracedWorld(AutoscalerWorld):
    """A controller whose spans are kept."""

    def __init__(self, **provider: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **provider)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        super().__init__()

    def make_controller(self) -> Controller:
        """As AutoscalerWorld, traced."""
        client = Client(self.cluster, self.clock)
        made = assembly.new_controller(client, self.settings, self.clock, recording=self.recording, rng=NoRandomness())
        Traces(self.provider).attach(client, made)
        return made

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """Those that have ended, in the order of their ends."""
        return self.exporter.get_finished_spans()

    def span(self, name: str) -> ReadableSpan:
        """The only one of that name."""
        (found,) = (span for span in self.spans if span.name == name)
        return found


def headers(world: TracedWorld, method: str, fragment: str) -> list[str | None]:
    """The header with the trace of such requests."""
    asked = (each for each in world.cluster.requests if each.method == method and fragment in each.path)
    return [each.headers.get("traceparent") for each in asked]


@pytest.fixture
async def world() -> AsyncIterator[TracedWorld]:
    """One autoscaler whose pod uses more than it should, not started."""
    made = TracedWorld()
    made.add_web(cpu="900m")
    yield made
    await made.close()


async def test_a_sync_is_a_span_with_its_decision(world: TracedWorld) -> None:
    """Which autoscaler, which target, what was decided, what was written, and how many requests it took."""
    await world.start()
    assert dict(world.span("sync").attributes or {}) == {
        "podscaler.kind": "HorizontalPodAutoscaler",
        "k8s.namespace.name": "shop",
        "k8s.hpa.name": "web",
        "k8s.hpa.scaletargetref.kind": "Deployment",
        "k8s.hpa.scaletargetref.name": "web",
        "podscaler.decision": "scale_up",
        "podscaler.desired_replicas": 2,
        "podscaler.replicas_written": 2,
        "podscaler.requests": len(world.spans) - 1,
    }


async def test_what_a_sync_asks_for_are_spans_within_it(world: TracedWorld) -> None:
    """Queries of metrics and writes, in order and in one trace; nothing that the controller does beside."""
    await world.start()
    sync = world.span("sync")
    assert [span.name for span in world.spans if span.name != "API request"] == [
        "scale read",
        "metrics query",
        "scale write",
        "status write",
        "sync",
    ]
    assert sync.context is not None
    assert {span.parent.span_id for span in world.spans if span.parent is not None} == {sync.context.span_id}
    assert {span.context.trace_id for span in world.spans if span.context is not None} == {sync.context.trace_id}


async def test_a_request_is_described_without_its_query(world: TracedWorld) -> None:
    """Method, path, status, and which API metrics came from."""
    await world.start()
    assert dict(world.span("metrics query").attributes or {}) == {
        "http.request.method": "GET",
        "url.path": "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods",
        "server.address": world.cluster.server,
        "podscaler.metrics.api": "metrics.k8s.io",
        "http.response.status_code": 200,
    }


async def test_a_refused_request_and_its_sync_are_errors(world: TracedWorld) -> None:
    """The span of the request says the status, that of the sync the error's text."""
    world.cluster.interfere("PUT", f"{HPAS_OF_SHOP}/web/status", refusal(403, "Forbidden", "not you"))
    await world.start()
    write, sync = world.span("status write"), world.span("sync")
    assert (write.status.is_ok, write.status.description) == (False, "status 403")
    assert (sync.status.is_ok, "not you" in (sync.status.description or "")) == (False, True)


async def test_the_server_is_told_the_trace(world: TracedWorld) -> None:
    """The header of W3C Trace Context names the request's own span."""
    await world.start()
    context = world.span("scale write").context
    assert context is not None
    assert headers(world, "PUT", "/scale") == [
        f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    ]


async def test_what_is_not_sampled_costs_no_spans() -> None:
    """Only the sync itself is asked about; its requests carry no header of a trace."""
    world = TracedWorld(sampler=ALWAYS_OFF)
    world.add_web(cpu="900m")
    await world.start()
    await world.close()
    assert (world.spans, headers(world, "PUT", "/scale")) == ((), [None])
