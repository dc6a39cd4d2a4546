"""What is asked for each type of metric, and what becomes of answers and failures."""

import asyncio
from typing import Any

import msgspec
import pytest

from podscaler.api.machinery import selectors
from podscaler.api.typed import autoscaling, metrics
from podscaler.base.errors import StatusError
from podscaler.core.model import emulation, metric_spec
from podscaler.core.model.observation import Failure, PodSamples, Sample, Values
from podscaler.metrics import metric_fetching
from podscaler.metrics.queries import (
    ExternalMetricQuery,
    MetricQuery,
    ObjectMetricQuery,
    PodsMetricQuery,
    ResourceMetricsQuery,
)
from podscaler.metrics.shared_queries import SharedMetricsSource
from podscaler.testing.clock import VirtualClock

WEB = selectors.parse("app=web")
TAKEN_AT = 1_767_225_600_000_000_000
QUEUE = {"name": "depth", "selector": {"matchLabels": {"queue": "q"}}}
SECOND = 1_000_000_000


class Source:
    """A source that writes down what it is asked and answers with fixed values, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.failure = failure

    def _note(self, *what: str) -> None:
        self.asked.append(what)
        if self.failure is not None:
            raise self.failure

    async def query(self, query: MetricQuery[Any]) -> Any:
        match query:
            case ResourceMetricsQuery():
                self._note("resource", query.namespace, str(query.selector))
                containers = (
                    metrics.ContainerMetrics("a", {"cpu": "100m"}),
                    metrics.ContainerMetrics("b", {"cpu": "7m"}),
                )
                item = metrics.PodMetrics(metrics.PodMetricsMeta("p"), "2026-01-01T00:00:00Z", "30s", containers)
                return metrics.PodMetricsList(items=(item,))
            case PodsMetricQuery(namespace, metric, selector, own):
                self._note("pods", namespace, metric, str(selector), str(own))
                described = metrics.DescribedObject(name="p")
                return metrics.MetricValueList(items=(metrics.MetricValue(described, value="3"),))
            case ObjectMetricQuery(namespace, metric, described_by, own):
                self._note("object", namespace, metric, described_by.name, str(own))
                return metrics.MetricValueList(items=(metrics.MetricValue(value="9"),))
            case ExternalMetricQuery(namespace, metric, own):
                self._note("external", namespace, metric, str(own))
                return metrics.ExternalMetricValueList(
                    items=(metrics.ExternalMetricValue(value="4"), metrics.ExternalMetricValue(value="1500m"))
                )
        raise AssertionError(query)


def _metric(kind: str, **source: Any) -> metric_spec.Metric:
    field = kind[0].lower() + kind[1:]
    wire = msgspec.convert({"type": kind, field: source}, autoscaling.MetricSpec)
    return metric_spec.parse(wire, "shop", emulation.V1_37)


AVERAGE = {"type": "AverageValue", "averageValue": "1"}
CASES: dict[str, tuple[metric_spec.Metric, tuple[str, ...], Any]] = {
    "resource": (
        _metric("Resource", name="cpu", target=AVERAGE),
        ("resource", "shop", "app=web"),
        PodSamples({"p": Sample(107, TAKEN_AT, 30 * SECOND)}),
    ),
    "container": (
        _metric("ContainerResource", name="cpu", container="b", target=AVERAGE),
        ("resource", "shop", "app=web"),
        PodSamples({"p": Sample(7, TAKEN_AT, 30 * SECOND)}),
    ),
    "pods": (
        _metric("Pods", metric=QUEUE, target=AVERAGE),
        ("pods", "shop", "depth", "app=web", "queue=q"),
        None,
    ),
    "object": (
        _metric("Object", metric=QUEUE, target=AVERAGE, describedObject={"kind": "Service", "name": "main"}),
        ("object", "shop", "depth", "main", "queue=q"),
        Values((9000,)),
    ),
    "external, without a selector": (
        _metric("External", metric={"name": "depth"}, target=AVERAGE),
        ("external", "shop", "depth", ""),
        Values((4000, 1500)),
    ),
}


async def _ask(source: Any, metric: metric_spec.Metric) -> Any:
    found = await metric_fetching.fetch(source, metric, namespace="shop", selector=WEB, rules=emulation.V1_37)
    assert (found.response is None) == isinstance(found.measurement, Failure)
    return found.measurement


@pytest.mark.parametrize("name", CASES)
async def test_each_type(name: str) -> None:
    """The right question for each type, and its answer in thousandths."""
    metric, asked, expected = CASES[name]
    source = Source()
    found = await _ask(source, metric)
    assert source.asked == [asked]
    assert expected is None or found == expected


async def test_a_refusal_is_a_fact() -> None:
    """What the API refuses is a Failure with the bare text, code and reason."""
    refused = StatusError("no", code=403, reason="Forbidden")
    assert await _ask(Source(refused), CASES["resource"][0]) == Failure("no", "Forbidden", 403)


async def test_an_unreadable_number_is_a_fact() -> None:
    """A number that is none fails that metric, and nothing else."""
    found = await _ask(Source(ValueError("bad quantity")), CASES["external, without a selector"][0])
    assert found == Failure("the metrics API's answer cannot be read: bad quantity")


@pytest.mark.parametrize("name", CASES)
async def test_equal_questions_at_once_are_one(name: str) -> None:
    """Who asks while the answer is on its way shares it, failures too; a later question is asked again."""
    metric = CASES[name][0]
    source = Source()
    shared = SharedMetricsSource(source, VirtualClock())
    first, second = await asyncio.gather(_ask(shared, metric), _ask(shared, metric))
    await _ask(shared, metric)
    assert (first == second, len(source.asked)) == (True, 2)
