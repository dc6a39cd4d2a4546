"""The controller's requests are counted with upstream's names, labels and buckets."""

import pytest
from prometheus_client import CollectorRegistry

from podscaler.controller.telemetry.request_metrics import ClientRequestMetrics, CountedTransport
from podscaler.kube.transport.transport import Request, Response, TransportError
from podscaler.testing import VirtualClock
from podscaler.testing.cluster import FakeCluster
from podscaler.testing.transport import TransportFailure

DURATION = "rest_client_request_duration_seconds"
HOST = "10.0.0.1:443"
LIST = Request("GET", "/api/v1/pods")
WATCH = Request("GET", "/api/v1/pods", "watch=true&resourceVersion=100")


class SlowCluster(FakeCluster):
    """A cluster that takes a second for each answer.

    Args:
        clock: its time.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    async def request(self, request: Request) -> Response:
        """As FakeCluster."""
        await self._clock.advance(1)
        return await super().request(request)


@pytest.fixture
def registry() -> CollectorRegistry:
    """Where the metrics are."""
    return CollectorRegistry()


@pytest.fixture
def counted(registry: CollectorRegistry) -> CountedTransport:
    """A transport to a slow cluster, whose second answer never comes."""
    clock = VirtualClock()
    cluster = SlowCluster(clock)
    cluster.interfere("GET", "/api/v1/nodes", TransportFailure("EOF"))
    return CountedTransport(cluster, ClientRequestMetrics(registry), clock)


def _counts(registry: CollectorRegistry) -> dict[tuple[str, str, str], float]:
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {
        (sample.labels["code"], sample.labels["method"], sample.labels["host"]): sample.value
        for sample in samples
        if sample.name == "rest_client_requests_total"
    }


def _durations(registry: CollectorRegistry) -> dict[str, float]:
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {
        f"{sample.name.rpartition('_')[2]} {' '.join(sample.labels.values())}": sample.value
        for sample in samples
        if sample.name in (f"{DURATION}_count", f"{DURATION}_sum")
    }


async def test_requests_are_counted_by_their_result(counted: CountedTransport, registry: CollectorRegistry) -> None:
    """By status code, and `<error>` where no answer came; the time counts either way."""
    await counted.request(LIST)
    await counted.request(LIST)
    with pytest.raises(TransportError):
        await counted.request(Request("GET", "/api/v1/nodes"))
    await counted.request(Request("PUT", "/api/v1/nothing", body=b"{}"))
    assert (_counts(registry), _durations(registry)) == (
        {("200", "GET", HOST): 2, ("<error>", "GET", HOST): 1, ("404", "PUT", HOST): 1},
        {f"count GET {HOST}": 3, f"sum GET {HOST}": 3, f"count PUT {HOST}": 1, f"sum PUT {HOST}": 1},
    )


async def test_watches_are_counted_when_they_begin(counted: CountedTransport, registry: CollectorRegistry) -> None:
    """A watch is a request of its status code, and has no duration."""
    async with counted.stream(WATCH):
        assert (_counts(registry), _durations(registry)) == ({("200", "GET", HOST): 1}, {})
    assert counted.server == FakeCluster.server
