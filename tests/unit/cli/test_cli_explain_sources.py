"""MetricSources in `podscaler explain`: read from here, or as the controller reported them."""

from typing import Any

import pytest

from podscaler.cli.explain.explain_sources import ReportedSourceReader
from podscaler.kube.client.client import Client
from podscaler.sources.open_sources import OpenSources, ReadResult
from podscaler.testing import VirtualClock
from podscaler.testing.sources import FakeSystem, metric_source
from podscaler.testing.transport import ScriptedTransport

STATUS = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "value": "1500m",
    "query": "fake number",
    "lastReadTime": "2026-01-01T00:00:00Z",
}


async def read(number: Any, status: dict[str, Any], age_s: float = 30.0) -> ReadResult:
    """The result for a system that gives `number` here, with that status, so long after its lastReadTime."""
    clock, system = VirtualClock(), FakeSystem(number)
    await clock.advance(age_s)
    sources = OpenSources(Client(ScriptedTransport(), clock), clock, find_factory=system.find_factory)
    result = await ReportedSourceReader(sources, clock).read(metric_source(status=status))
    await sources.close()
    return result


async def test_a_source_that_can_be_read_here() -> None:
    """The value of now."""
    result = await read(7, STATUS)
    assert (result.query, result.value_milli) == ("fake number of the fake system", 7000)


async def test_a_source_that_cannot_be_reached_from_here() -> None:
    """The value that the controller reported, with its age."""
    result = await read(OSError("no route"), STATUS)
    assert (result.query, result.value_milli) == ("fake number (by the controller, 30 s ago)", 1500)


@pytest.mark.parametrize(
    ("status", "age_s"),
    [
        pytest.param(STATUS, 121.0, id="an old value"),
        pytest.param(STATUS | {"conditions": [{"type": "Ready", "status": "False"}]}, 30.0, id="a failed read"),
        pytest.param({}, 30.0, id="no status"),
        pytest.param(STATUS | {"value": "many"}, 30.0, id="no quantity"),
        pytest.param(STATUS | {"lastReadTime": "yesterday"}, 30.0, id="no time"),
    ],
)
async def test_a_status_that_does_not_help(status: dict[str, Any], age_s: float) -> None:
    """The failure of the read here is shown."""
    result = await read(OSError("no route"), status, age_s)
    assert (str(result.error), result.value_milli) == ("OSError: no route", None)


async def test_a_bad_value_is_shown_as_it_is() -> None:
    """The system was reached: its response counts."""
    result = await read(-1, STATUS)
    assert str(result.error) == "the result is negative"
