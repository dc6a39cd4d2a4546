"""Open sources: how long reads may take, when a source is opened again and closed, and what failures say."""

import asyncio
import base64
from typing import Any

import pytest

from podscaler.kube.client.client import Client
from podscaler.sources.open_sources import IDLE_S, OpenSources, ReadResult
from podscaler.sources.protocol import ClientMissing, InvalidSource, InvalidValue, SourceError
from podscaler.testing import VirtualClock
from podscaler.testing.sources import FakeSystem, metric_source, with_password
from podscaler.testing.transport import ScriptedTransport, json_answer

SECRET = "/api/v1/namespaces/shop/secrets/login"
SENTINEL = "swordfish"


def secret(password: str) -> Any:
    """The response with a Secret that may be used."""
    metadata = {"labels": {"podscaler.dev/metric-source": "true"}}
    return json_answer({"metadata": metadata, "data": {"password": base64.b64encode(password.encode()).decode()}})


class World:
    """Open sources of a fake system."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.system = FakeSystem(7)
        self.transport = ScriptedTransport()
        self.transport.on("GET", SECRET, secret(SENTINEL))
        client = Client(self.transport, self.clock)
        self.sources = OpenSources(client, self.clock, find_factory=self.system.find_factory)

    async def read(self, **spec: Any) -> ReadResult:
        """One read of the source with that spec."""
        return await self.sources.read(metric_source(**spec))

    async def settle(self) -> None:
        """Let closing end."""
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_read() -> None:
    """The value in thousandths, and what was asked."""
    world = World()
    assert await world.read() == ReadResult("fake number of the fake system", 7000, None, world.clock.now_ns())


async def test_one_source_for_many_reads() -> None:
    """Connections are kept."""
    world = World()
    for _ in range(3):
        await world.read()
    assert (len(world.system.configs), world.system.reads, world.system.closed) == (1, 3, 0)


async def test_a_new_spec_opens_a_new_source() -> None:
    """The old one is closed."""
    world = World()
    await world.read()
    await world.read(custom={"type": "fake", "settings": {"queue": "other"}})
    await world.settle()
    assert ([each.settings for each in world.system.configs], world.system.closed) == ([{}, {"queue": "other"}], 1)


async def test_a_changed_secret_takes_effect_with_the_next_read() -> None:
    """The source is opened with the new password."""
    world = World()
    world.transport.on("GET", SECRET, secret("first"), secret("second"))
    for _ in range(3):
        await world.read(credentials=with_password())
    passwords = [each.credentials["password"] for each in world.system.configs]
    assert passwords == ["first", "second"]


async def test_a_slow_system_is_a_failure_at_the_time_limit() -> None:
    """The read is cancelled, and the connection is not used again."""
    world = World()
    world.system.responds.clear()
    reading = asyncio.ensure_future(world.read(timeoutSeconds=3))
    await world.system.wait_for_read()
    await world.clock.advance(3.0)
    result = await reading
    await world.settle()
    assert (str(result.error), result.value_milli, world.system.closed) == ("no response within 3 s", None, 1)
    assert result.error is not None
    assert result.error.reason == "TimedOut"


@pytest.mark.parametrize(
    ("number", "reason", "text"),
    [
        pytest.param(float("nan"), "InvalidValue", "the result is NaN", id="NaN"),
        pytest.param(-1, "InvalidValue", "the result is negative", id="negative"),
        pytest.param(1e300, "InvalidValue", "the result is greater than 9223372036854775", id="huge"),
        pytest.param(InvalidValue("the result is empty"), "InvalidValue", "the result is empty", id="empty"),
        pytest.param(ClientMissing("no client"), "ClientMissing", "no client", id="no client"),
        pytest.param(InvalidSource("no such zone"), "InvalidSpec", "no such zone", id="invalid"),
        pytest.param(
            ConnectionRefusedError(111, "refused"),
            "ReadFailed",
            "ConnectionRefusedError: [Errno 111] refused",
            id="down",
        ),
    ],
)
async def test_failures(number: Any, reason: str, text: str) -> None:
    """Each is a result with its reason; none escapes."""
    world = World()
    world.system.number = number
    result = await world.read()
    assert isinstance(result.error, SourceError)
    assert (result.error.reason, str(result.error), result.value_milli) == (reason, text, None)


@pytest.mark.parametrize(
    ("number", "opened"),
    [pytest.param(OSError("reset"), 2, id="after an error"), pytest.param(float("nan"), 1, id="after a bad value")],
)
async def test_when_a_source_is_opened_again(number: Any, opened: int) -> None:
    """A connection that failed is not trusted; one that gave a bad value is."""
    world = World()
    world.system.number = number
    await world.read()
    await world.read()
    assert len(world.system.configs) == opened


@pytest.mark.parametrize(
    "text",
    [f"cannot log in with {SENTINEL}", f"GET amqp://guest:{SENTINEL}@rabbit/", f"{SENTINEL}"],
    ids=["plain", "in a URL", "alone"],
)
async def test_no_credential_in_a_failure(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the result nor in the log, whatever the client library writes."""
    world = World()
    world.system.number = OSError(text)
    caplog.set_level(0)
    result = await world.read(credentials=with_password())
    assert SENTINEL not in f"{result!r}{result.error}{caplog.text}"
    assert result.error is not None
    assert result.error.__cause__ is None


def test_no_credential_in_the_text_of_a_config() -> None:
    """A traceback that shows the arguments has none."""
    system = FakeSystem()
    result = asyncio.run(_read_with_password(system))
    assert result.value_milli == 0
    assert SENTINEL not in repr(system.configs)


async def _read_with_password(system: FakeSystem) -> ReadResult:
    world = World()
    sources = OpenSources(Client(world.transport, world.clock), world.clock, find_factory=system.find_factory)
    return await sources.read(metric_source(credentials=with_password()))


async def test_a_source_that_is_not_read_is_closed() -> None:
    """The next read of any other one does it."""
    world = World()
    await world.read(name="old")
    await world.clock.advance(IDLE_S + 1)
    await world.read(name="other")
    await world.settle()
    assert world.system.closed == 1


async def test_all_are_closed_at_the_end() -> None:
    """`close` waits for it."""
    world = World()
    await world.read(name="a")
    await world.read(name="b")
    await world.sources.close()
    assert world.system.closed == 2


async def test_reads_at_once_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait, within their own time limit."""
    monkeypatch.setattr("podscaler.sources.open_sources.CONCURRENT_READS", 2)
    world = World()
    world.system.responds.clear()
    reading = [asyncio.ensure_future(world.read(name=f"source-{number}")) for number in range(3)]
    await world.system.wait_for_read()
    await world.system.wait_for_read()
    await world.settle()
    begun = world.system.reads
    world.system.responds.set()
    results = await asyncio.gather(*reading)
    assert (begun, [each.value_milli for each in results]) == (2, [7000, 7000, 7000])


async def _timed_out(world: World, **spec: Any) -> str:
    """The failure of a read that no system responds to."""
    reading = asyncio.ensure_future(world.read(timeoutSeconds=1, **spec))
    begun = asyncio.ensure_future(world.system.wait_for_read())
    await asyncio.wait((reading, begun), return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()
    if not reading.done():
        await world.clock.advance(1.0)
    return str((await reading).error)


async def test_the_sources_of_a_namespace_leave_places_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for them does not count against the time limit of a read."""
    monkeypatch.setattr("podscaler.sources.open_sources.NAMESPACE_READS", 2)
    world = World()
    world.system.responds.clear()
    slow = [asyncio.ensure_future(world.read(name=f"slow-{number}", timeoutSeconds=3)) for number in range(3)]
    other = asyncio.ensure_future(world.sources.read(metric_source("other", "other", timeoutSeconds=3)))
    for _ in range(3):
        await world.system.wait_for_read()
    begun = world.system.reads
    await world.clock.advance(3.0)
    await world.system.wait_for_read()
    world.system.responds.set()
    results = [each.value_milli for each in await asyncio.gather(*slow, other)]
    assert (begun, results) == (3, [None, None, 7000, None])


async def test_a_source_without_responses_is_read_less_often() -> None:
    """From the second time in a row on, after 5 s, 10 s and so on, to a minute; the reads in between fail."""
    world = World()
    world.system.responds.clear()
    read_at_s = []
    for second in range(0, 360, 2):
        reads = world.system.reads
        await _timed_out(world)
        if world.system.reads > reads:
            read_at_s.append(second)
        await world.clock.advance(second + 2 - world.clock.monotonic_s())
    assert read_at_s == [0, 2, 8, 20, 42, 84, 146, 208, 270, 332]


async def test_the_failure_of_a_source_that_is_not_read() -> None:
    """It says how often it is read, with the query of the last read."""
    world = World()
    world.system.responds.clear()
    texts = [await _timed_out(world) for _ in range(4)]
    once = "no response within 1 s"
    again = f"{once}, 2 times: it is read again after 5 s"
    assert texts == [once, once, again, again]
    assert (await world.read(timeoutSeconds=1)).query == "fake number of the fake system"


@pytest.mark.parametrize(
    "spec", [{"custom": {"type": "fake", "settings": {"a": "b"}}}, {"name": "other"}], ids=["changed", "another"]
)
async def test_a_changed_source_is_read_at_once(spec: dict[str, Any]) -> None:
    """As is any other one."""
    world = World()
    world.system.responds.clear()
    for _ in range(3):
        await _timed_out(world)
    world.system.responds.set()
    assert (await world.read(timeoutSeconds=1, **spec)).value_milli == 7000


async def test_a_response_ends_the_back_off() -> None:
    """A source that responds once begins again with two reads."""
    world = World()
    world.system.responds.clear()
    for _ in range(2):
        await _timed_out(world)
    await world.clock.advance(5.0)
    world.system.responds.set()
    await world.read(timeoutSeconds=1)
    world.system.responds.clear()
    assert [await _timed_out(world) for _ in range(2)] == ["no response within 1 s"] * 2
