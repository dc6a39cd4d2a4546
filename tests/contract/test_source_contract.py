"""What every source of external metrics does: one table for the fake of tests, and for systems without a server."""

from collections.abc import Callable
from pathlib import Path

import pytest

from podscaler.sources.protocol import ExternalSource, SourceConfig
from podscaler.sources.systems.cron import CronSource
from podscaler.sources.systems.file import FileSource
from podscaler.testing import VirtualClock
from podscaler.testing.sources import FakeSystem

Change = Callable[[], None]
System = tuple[ExternalSource, Change, Change]


def fake(folder: Path) -> System:
    """The fake system: 7, then 8, then an error."""
    del folder
    system = FakeSystem(7)

    def change() -> None:
        system.number = 8

    def fail() -> None:
        system.number = OSError("away")

    return system.open(SourceConfig({}, VirtualClock())), change, fail


def file(folder: Path) -> System:
    """A file with 7, then with 8, then none."""
    path = folder / "number"
    path.write_text("7")
    source = FileSource(SourceConfig({"path": "number"}, VirtualClock(), folder=folder))

    def change() -> None:
        path.write_text("8")

    return source, change, path.unlink


@pytest.fixture(params=[fake, file], ids=["fake", "file"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> System:
    """Each of them."""
    found: System = request.param(tmp_path)
    return found


async def test_reads_follow_the_system(system: System) -> None:
    """The number of now, with each read."""
    source, change, _ = system
    before = await source.read()
    change()
    assert (before, await source.read()) == (7, 8)
    await source.close()


async def test_a_failure_raises(system: System) -> None:
    """And the source can still be closed."""
    source, _, fail = system
    await source.read()
    fail()
    with pytest.raises(OSError, match=r"."):
        await source.read()
    await source.close()


async def test_a_source_that_was_never_read_can_be_closed(system: System) -> None:
    """No connection is opened before the first read."""
    await system[0].close()


def test_the_query_is_one_line(system: System) -> None:
    """It is shown in status and explanations."""
    query = system[0].query
    assert (bool(query), query.isprintable()) == (True, True)


async def test_a_schedule_has_no_connection() -> None:
    """Reading after the end works too: there is nothing to close."""
    settings = {"start": "0 8 * * *", "end": "0 18 * * *", "insideValue": 5, "outsideValue": 1}
    source = CronSource(SourceConfig(settings, VirtualClock()))
    await source.close()
    assert await source.read() == 1
