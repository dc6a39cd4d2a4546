"""Answers of metrics APIs become samples.

Source: docs/spec/decision.md 7.1 (Resource metrics) to 7.4 (External metrics).
"""

from typing import Any

import msgspec
import pytest

from podscaler.api.machinery import instants
from podscaler.api.typed import metrics
from podscaler.core.calculation import samples
from podscaler.core.model.observation import PodSamples, Sample, Values
from podscaler.testing.decisions import NOW, NOW_TEXT, SECOND


def item(pod: str, *containers: dict[str, str], **rest: Any) -> dict[str, Any]:
    """One PodMetrics; containers are named c0, c1, ..."""
    listed = [{"name": f"c{index}", "usage": usage} for index, usage in enumerate(containers)]
    return {"metadata": {"name": pod}, "timestamp": NOW_TEXT, "window": "30s", "containers": listed, **rest}


def usage(*items: dict[str, Any], resource: str = "cpu", container: str = "") -> dict[str, int]:
    """The values that are read, by pod."""
    answer = msgspec.convert({"kind": "PodMetricsList", "items": list(items)}, metrics.PodMetricsList)
    return {
        name: sample.value_milli for name, sample in samples.of_resource(answer, resource, container).samples.items()
    }


def test_sum_over_containers() -> None:
    """A pod's usage is the sum over its containers, each rounded up to thousandths."""
    assert usage(item("a", {"cpu": "100m"}, {"cpu": "137123456n"})) == {"a": 238}


@pytest.mark.parametrize(
    "broken",
    [item("a"), item("a", {"cpu": "1"}, {"memory": "1"}), item("a", {}), item("a", containers=None)],
    ids=["no containers", "one lacks it", "no usage", "null"],
)
def test_incomplete_pods_are_left_out(broken: dict[str, Any]) -> None:
    """A pod with no containers, or with one that lacks the resource, has no sample."""
    assert usage(broken, item("b", {"cpu": "1"})) == {"b": 1000}


def test_one_container() -> None:
    """Asked for a container, its first entry counts; a pod where it is absent or lacks the resource has no sample."""
    twice = item("a", {"cpu": "1"}, {"cpu": "2"})
    twice["containers"].append({"name": "c1", "usage": {"cpu": "3"}})
    assert usage(twice, item("b", {"cpu": "1"}), item("c", {}, {"memory": "1"}), container="c1") == {"a": 2000}


def test_later_items_win() -> None:
    """Two items of one name: the later counts."""
    assert usage(item("a", {"cpu": "1"}), item("a", {"cpu": "2"})) == {"a": 2000}


def test_times_and_windows() -> None:
    """A sample has the item's timestamp and window; an absent timestamp is the zero time."""
    answer = msgspec.convert(
        {"items": [item("a", {"cpu": "1"}), item("b", {"cpu": "1"}, timestamp=None, window="1m30s")]},
        metrics.PodMetricsList,
    )
    assert samples.of_resource(answer, "cpu") == PodSamples(
        {"a": Sample(1000, NOW, 30 * SECOND), "b": Sample(1000, instants.ZERO, 90 * SECOND)}
    )


@pytest.mark.parametrize("items", [None, []])
def test_empty_answer(items: list[Any] | None) -> None:
    """An answer without items is marked as empty; one whose items are all left out is not."""
    empty = samples.of_resource(msgspec.convert({"items": items}, metrics.PodMetricsList), "cpu")
    useless = samples.of_resource(msgspec.convert({"items": [item("a")]}, metrics.PodMetricsList), "cpu")
    assert (empty, useless) == (PodSamples({}, is_empty=True), PodSamples({}))


def test_custom_metric_of_pods() -> None:
    """Values go by the name of the object they describe; an absent window is a minute. v1beta1 calls it `window`."""
    items = [
        {"describedObject": {"name": "a"}, "timestamp": NOW_TEXT, "value": "1500m"},
        {"describedObject": {"name": "b"}, "timestamp": NOW_TEXT, "windowSeconds": 0, "value": "2"},
        {"describedObject": {"name": "c"}, "timestamp": NOW_TEXT, "window": 90, "value": "3"},
    ]
    answer = msgspec.convert({"items": items}, metrics.MetricValueList)
    assert (samples.of_pods(answer), samples.of_pods(metrics.MetricValueList())) == (
        PodSamples(
            {"a": Sample(1500, NOW, 60 * SECOND), "b": Sample(2000, NOW, 0), "c": Sample(3000, NOW, 90 * SECOND)}
        ),
        PodSamples({}, is_empty=True),
    )


def test_values_in_order() -> None:
    """Object and external metrics give their values in order."""
    answer = msgspec.convert({"items": [{"value": "2"}, {"value": "1n"}]}, metrics.ExternalMetricValueList)
    assert (samples.of_values(answer), samples.of_values(metrics.MetricValueList())) == (
        Values((2000, 1)),
        Values(()),
    )


def test_the_query_of_a_value_that_was_read_directly() -> None:
    """The label of the first value has it."""
    item = {"value": "2", "metricLabels": {"podscaler.dev/query": "redis list jobs at redis:6379/0"}}
    answer = msgspec.convert({"items": [item, {"value": "3"}]}, metrics.ExternalMetricValueList)
    assert samples.of_values(answer) == Values((2000, 3000), "redis list jobs at redis:6379/0")


def test_unreadable_value() -> None:
    """A value that is no quantity is an error."""
    with pytest.raises(ValueError, match="quantities must match"):
        usage(item("a", {"cpu": "some"}))
