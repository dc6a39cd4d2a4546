"""Statuses of MetricSources: what is written, and how often."""

import asyncio
from typing import Any

import msgspec
import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request
from podscaler.sources import status
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.open_sources import ReadResult
from podscaler.sources.protocol import ReadTimeout, SourceError
from podscaler.sources.status import SourceStatusWriter
from podscaler.testing import VirtualClock
from podscaler.testing.sources import metric_source
from podscaler.testing.transport import ScriptedTransport, json_answer

PATH = "/apis/podscaler.dev/v1alpha1/namespaces/shop/metricsources/jobs/status"
SLOW = ReadTimeout("no response within 5 s")


class World:
    """A writer whose patches are answered."""

    def __init__(self, *, may_write: bool = True) -> None:
        self.clock = VirtualClock()
        self.transport = ScriptedTransport()
        self.transport.on("PATCH", PATH, json_answer({}))
        self.writer = SourceStatusWriter(Client(self.transport, self.clock), may_write=lambda: may_write)

    async def note(
        self, *reads: tuple[float, int | None, SourceError | None], source: MetricSource | None = None
    ) -> None:
        """Report reads (seconds before the read, value in thousandths, error), and let the writer work."""
        running = asyncio.ensure_future(self.writer.run())
        for delay_s, milli, error in reads:
            await self.clock.advance(delay_s)
            self.writer.record_read(source or metric_source(), ReadResult("fake", milli, error, self.clock.now_ns()))
            for _ in range(10):
                await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    @property
    def written(self) -> list[dict[str, Any]]:
        """The statuses that were sent."""
        return [_body(request)["status"] for request in self.transport.requests]

    @property
    def ready(self) -> list[tuple[str, str, str]]:
        """Status, reason and message of their conditions."""
        conditions = [each["conditions"][0] for each in self.written]
        return [(each["status"], each["reason"], each["message"]) for each in conditions]


def _body(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(request.body or b"")
    return found


async def test_the_first_read() -> None:
    """The whole status, for the object with that uid."""
    world = World()
    await world.note((0, 7000, None))
    condition = {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "ReadSucceeded",
        "message": "",
    }
    assert [_body(each) for each in world.transport.requests] == [
        {
            "metadata": {"uid": "uid-jobs"},
            "status": {
                "observedGeneration": 1,
                "conditions": [condition],
                "query": "fake",
                "value": "7",
                "lastReadTime": "2026-01-01T00:00:00Z",
            },
        }
    ]


@pytest.mark.parametrize(
    ("reads", "values"),
    [
        pytest.param([(0, 1000, None), (59, 2000, None)], ["1"], id="a second less than the period"),
        pytest.param([(0, 1000, None), (60, 2000, None)], ["1", "2"], id="the period"),
        pytest.param([(0, 1000, None), *[(1, 2000, None)] * 119], ["1", "2"], id="two minutes of reads every second"),
    ],
)
async def test_values_are_written_once_a_minute(reads: list[tuple[float, int, None]], values: list[str]) -> None:
    """However often the source is read."""
    world = World()
    await world.note(*reads)
    assert [each["value"] for each in world.written] == values


async def test_a_write_that_fails_is_repeated() -> None:
    """By a read after 5 s, then after 10 s and so on; the time of the transition is that of the first one."""
    world = World()
    unavailable = json_answer({"kind": "Status", "message": "no", "code": 503}, 503)
    world.transport.on("PATCH", PATH, unavailable, unavailable, unavailable, json_answer({}))
    await world.note(*[(1, 1000, None)] * 120)
    times = [each["lastReadTime"][14:19] for each in world.written]
    transitions = {each["conditions"][0]["lastTransitionTime"] for each in world.written}
    assert (times, transitions) == (["00:01", "00:06", "00:16", "00:36", "01:36"], {"2026-01-01T00:00:01Z"})


async def test_transitions_are_written_at_once() -> None:
    """Each change of status or reason; a failure with another message is none."""
    world = World()
    refused = SourceError("refused")
    reads = [(0, 1000, None), (1, None, refused), (1, None, SourceError("reset")), (1, None, SLOW), (1, 1000, None)]
    await world.note(*reads)
    assert world.ready == [
        ("True", "ReadSucceeded", ""),
        ("False", "ReadFailed", "refused"),
        ("False", "TimedOut", "no response within 5 s"),
        ("True", "ReadSucceeded", ""),
    ]


async def test_a_failure_keeps_the_last_value() -> None:
    """A merge patch without value and lastReadTime leaves both."""
    world = World()
    await world.note((0, None, SLOW))
    assert sorted(world.written[0]) == ["conditions", "observedGeneration", "query"]


async def test_a_new_generation_is_written_at_once() -> None:
    """observedGeneration tells which spec was read."""
    world = World()
    await world.note((0, 1000, None))
    await world.note((1, 1000, None), source=metric_source(generation=2))
    assert [each["observedGeneration"] for each in world.written] == [1, 2]


async def test_a_restarted_controller_goes_on_with_the_stored_status() -> None:
    """The time of the transition stays."""
    stored = {
        "observedGeneration": 1,
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "ReadSucceeded", "lastTransitionTime": "2025-01-01T00:00:00Z"}
        ],
    }
    world = World()
    await world.note((0, 1000, None), source=metric_source(status=stored))
    assert [each["conditions"][0]["lastTransitionTime"] for each in world.written] == ["2025-01-01T00:00:00Z"]


async def test_nothing_is_written_in_a_dry_run() -> None:
    """Nor while another controller is at work."""
    world = World(may_write=False)
    await world.note((0, 1000, None))
    assert world.written == []


async def test_a_write_that_fails_is_not_repeated_at_once() -> None:
    """The next one is due in a minute; the others go on."""
    world = World()
    world.transport.on("PATCH", PATH, json_answer({"kind": "Status", "message": "no", "code": 403}, 403))
    await world.note((0, 1000, None), (1, 1000, None), (59, 1000, None))
    assert len(world.written) == 2


async def test_a_read_that_ends_after_the_delete_leaves_nothing_behind() -> None:
    """The API server does not know the object: its state is dropped, and the next read is a first one."""
    world = World()
    not_found = {"kind": "Status", "message": "not found", "code": 404, "reason": "NotFound"}
    world.transport.on("PATCH", PATH, json_answer(not_found, 404))
    await world.note((0, 1000, None), (1, 1000, None))
    assert len(world.written) == 2


async def test_the_status_of_a_deleted_source_is_not_written() -> None:
    """A new object of the same name begins anew."""
    world = World()
    world.writer.record_read(metric_source(), ReadResult("fake", 1000, None, 0))
    world.writer.forget(("shop", "jobs"))
    await world.note()
    assert world.written == []


def test_the_period_is_a_minute() -> None:
    """As documented."""
    assert status.PERIOD_S * NANOSECONDS == 60_000_000_000
