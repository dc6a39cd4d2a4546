"""MetricSources as external metrics of the adapter, next to those of Prometheus."""

import pytest
from adapter_world import EXTERNAL, AdapterWorld

from podscaler.adapter.providers.metric_sources import MetricSourceMetrics
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key
from podscaler.sources.direct_metrics import QUERY_LABEL, DirectSources
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.open_sources import OpenSources
from podscaler.testing.clock import VirtualClock
from podscaler.testing.sources import FakeSource, FakeSystem, metric_source
from podscaler.testing.transport import ScriptedTransport

JOBS = metric_source("jobs", "default", labels={"queue": "mail"})


class OneSource:
    """The MetricSource default/jobs."""

    async def find(self, key: Key) -> MetricSource | None:
        """As the informer."""
        return JOBS if key == ("default", "jobs") else None


async def world_of(system: FakeSystem) -> AdapterWorld:
    """An adapter that serves default/jobs of a fake system."""
    clock = VirtualClock()
    reader = OpenSources(Client(ScriptedTransport(), clock), clock, find_factory=system.find_factory)
    direct = DirectSources(OneSource(), reader, clock)
    return await AdapterWorld(external=[MetricSourceMetrics(direct, lambda: {"jobs"})]).started()


async def test_a_source_is_an_external_metric() -> None:
    """Its labels are those of the MetricSource and the query."""
    world = await world_of(FakeSystem(42))
    labels = {"queue": "mail", QUERY_LABEL: FakeSource.query}
    assert await world.values(f"{EXTERNAL}/jobs?labelSelector=queue%3Dmail") == {str(labels): "42"}


async def test_discovery_lists_both() -> None:
    """Metrics of Prometheus and of MetricSources."""
    world = await world_of(FakeSystem(42))
    resources = (await world.get("/apis/external.metrics.k8s.io/v1beta1"))["resources"]
    assert [each["name"] for each in resources] == ["jobs", "queue"]


async def test_prometheus_still_responds() -> None:
    """Metrics of rules come first."""
    world = await world_of(FakeSystem(42))
    assert list((await world.values(f"{EXTERNAL}/queue")).values()) == ["7"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/jobs",
            (
                500,
                "Internal error occurred: the MetricSource default/jobs (fake number of the fake system) cannot be "
                "read: ConnectionError: no answer",
            ),
        ),
        (
            "/jobs?labelSelector=queue%3Dother",
            (
                500,
                "Internal error occurred: the labels of the MetricSource default/jobs do not match the selector "
                "queue=other of the metric",
            ),
        ),
        ("/others", (404, "the server could not find the metric others for namespaces")),
    ],
    ids=["cannot be read", "other labels", "no such source"],
)
async def test_failures(path: str, expected: tuple[int, str]) -> None:
    """A failure of a source is an error of its metric alone."""
    world = await world_of(FakeSystem(ConnectionError("no answer")))
    assert await world.get(f"{EXTERNAL}{path}") == expected
