"""Following ConfigMaps: changes count at once, faults are told once, and a broken watch loses nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from metric_world import CUSTOM, EXTERNAL, MetricWorld, config_map, metric_world

from podscaler.api.kinds import catalog
from podscaler.base.errors import StatusError
from podscaler.controlplane.metrics.custom.config_maps import ConfigMaps
from podscaler.controlplane.metrics.custom.index import MetricIndex
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.registry.providers import MetricResource
from podscaler.controlplane.registry.registry import ObjectEvent, Registry
from podscaler.testing import VirtualClock

PATTERN = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[MetricWorld]:
    """A world without ConfigMaps and pods."""
    async with metric_world(tmp_path) as opened:
        yield opened


def depth(world: MetricWorld) -> list[str]:
    """The values of the external metric `depth`; empty where it is not known."""
    if MetricResource("", "depth") not in world.apis.resources(EXTERNAL):
        return []
    return [item["value"] for item in world.external("depth")["items"]]


async def test_a_changed_value_counts_at_once(world: MetricWorld) -> None:
    """Whatever is written into a ConfigMap is what the next query gets."""
    await world.state("external", depth="1")
    seen = [depth(world)]
    await world.state("external", depth="2")
    seen.append(depth(world))
    await world.state("external", other="2")
    seen.append(depth(world))
    assert seen == [["1"], ["2"], []]


async def test_config_maps_come_and_go(world: MetricWorld) -> None:
    """A ConfigMap counts from the moment it has the label until it loses it or is deleted."""
    await world.registry.create("configmaps", config_map("queue", None, {"depth": "1"}))
    await world.clock.advance(0)
    seen = [depth(world)]
    for labels in ({"podscaler.dev/metrics": "external"}, {}, {"podscaler.dev/metrics": "external"}):
        await world.registry.mutate(
            "configmaps", "default", "queue", lambda stored, labels=labels: stored["metadata"].update(labels=labels)
        )
        await world.clock.advance(0)
        seen.append(depth(world))
    await world.registry.delete("configmaps", "default", "queue")
    await world.clock.advance(0)
    assert [*seen, depth(world)] == [[], ["1"], [], ["1"], []]


async def test_the_list_of_metrics_has_a_generation(world: MetricWorld) -> None:
    """Discovery is told of metrics that come or go, not of values that change."""
    generations = [world.apis.generation]
    for name, data in (
        ("queue", {"depth": "1"}),
        ("queue", {"depth": "2"}),
        ("more", {"depth": "2"}),
        ("queue", {"age": "2"}),
        ("more", {"depth": "2", "age": "2"}),
        ("more", {}),
    ):
        await world.state("external", name=name, **data)
        generations.append(world.apis.generation)
    assert generations == [0, 1, 1, 1, 2, 2, 3]
    assert world.apis.resources(CUSTOM) == []
    assert [each.metric for each in world.apis.resources(EXTERNAL)] == ["age"]


async def test_faults_are_told_and_other_entries_count(world: MetricWorld, caplog: pytest.LogCaptureFixture) -> None:
    """A bad entry is an event on the ConfigMap and a line in the log; the others work."""
    await world.state("external", name="queue", age="old", depth="[1, {valeu: 2}]")
    known = "metric, labels, value, steps, ramp, start, sharedBy and window"
    faults = [
        ("data[age]", f'data[age]: value: "old" is not a quantity: {PATTERN}'),
        ("data[depth][1]", f'data[depth][1]: "valeu" is no field: known are {known}'),
    ]
    assert world.events() == faults
    assert caplog.messages == [f"configmap default/queue: {text}" for _, text in faults]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert depth(world) == ["1"]


async def test_the_event_names_the_config_map(world: MetricWorld) -> None:
    """The event is a warning about the ConfigMap, as `kubectl describe` finds it."""
    await world.state("external", name="queue", age="old")
    stored = world.registry.get("configmaps", "default", "queue")
    (event,) = world.registry.list("events", "default")
    involved = {name: stored["metadata"][name] for name in ("namespace", "name", "uid", "resourceVersion")}
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "fieldPath": "data[age]",
        **involved,
    }
    assert (event["type"], event["reason"], event["source"]) == (
        "Warning",
        "InvalidMetric",
        {"component": "metric-values"},
    )


async def test_a_fault_is_told_once(world: MetricWorld) -> None:
    """A fault that stays is not repeated with each change; one that comes back is."""
    await world.state("external", age="old")
    await world.state("external", age="old", depth="deep")
    await world.state("external", age="1", depth="deep")
    await world.state("external", age="old", depth="deep")
    events = world.registry.list("events", "default")
    assert sorted((event["involvedObject"]["fieldPath"], event["count"]) for event in events) == [
        ("data[age]", 2),
        ("data[depth]", 1),
    ]


async def test_many_faults_are_told_in_brief(world: MetricWorld) -> None:
    """Of many bad entries nine are told one by one, the rest as a number."""
    await world.state("external", **{f"m{number:02}": "x" for number in range(30)})
    paths = [path for path, _ in world.events()]
    assert paths == [*(f"data[m{number:02}]" for number in range(9)), "data"]
    assert world.events()[-1] == ("data", "data: 21 more entries cannot be used")


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        pytest.param(
            config_map("queue", "extrenal", {"depth": "1"}),
            'metadata.labels[podscaler.dev/metrics]: "extrenal" is no metrics API: it must be custom or external',
            id="a label of another value",
        ),
        pytest.param(
            config_map("queue", "external", {}, binaryData={"depth": "MQ==", "age": "MQ=="}),
            "binaryData: age and depth cannot be read: metrics are texts, in data",
            id="binary data",
        ),
    ],
)
async def test_faults_of_the_config_map(world: MetricWorld, wanted: dict[str, Any], fault: str) -> None:
    """What is wrong with the ConfigMap as a whole is told in the same way."""
    await world.registry.create("configmaps", wanted)
    await world.clock.advance(0)
    assert [text for _, text in world.events()] == [fault]
    assert depth(world) == []


class Watches(Registry):
    """A registry whose watches the test ends; `there` are the ConfigMaps that exist."""

    def __init__(self) -> None:
        self.streams: list[asyncio.Queue[ObjectEvent | Exception]] = []
        self.there: set[str] = set()

    def watch(self, resource: str, *, initial: bool = True) -> AsyncIterator[ObjectEvent]:
        """One more stream."""
        assert (resource, initial) == ("configmaps", True)
        self.streams.append(asyncio.Queue())
        return self._changes(self.streams[-1])

    async def _changes(self, queue: asyncio.Queue[ObjectEvent | Exception]) -> AsyncIterator[ObjectEvent]:
        while True:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            yield item

    def find(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Whether it is there."""
        assert (resource, namespace) == ("configmaps", "default")
        return {} if name in self.there else None

    def tell(self, name: str, value: str) -> None:
        """The last stream has a ConfigMap with an external metric of its own name."""
        created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
        new = config_map(name, "external", {name: value})
        new["metadata"] |= created
        self.there.add(name)
        self.streams[-1].put_nowait(ObjectEvent("ADDED", new))


async def test_a_watch_that_broke_loses_nothing() -> None:
    """When a watch has to begin anew, values stay meanwhile, and what was deleted meanwhile goes."""
    watches, clock, index = Watches(), VirtualClock(), MetricIndex()
    following = asyncio.create_task(ConfigMaps(watches, index, DescribableKinds(catalog.RESOURCES), clock).run())
    await clock.advance(0)
    watches.tell("stays", "1")
    watches.tell("goes", "1")
    await clock.advance(0)
    seen = [[metric for _, metric in index.listed]]
    watches.there.remove("goes")
    watches.streams[-1].put_nowait(StatusError("too old", code=410, reason="Expired"))
    await clock.advance(0)
    seen.append([metric for _, metric in index.listed])
    watches.tell("new", "1")
    await clock.advance(0)
    seen.append([metric for _, metric in index.listed])
    assert (len(watches.streams), seen) == (2, [["goes", "stays"], ["stays"], ["new", "stays"]])
    watches.streams[-1].put_nowait(StatusError("no", code=500, reason="InternalError"))
    with pytest.raises(StatusError, match="no"):
        await following
