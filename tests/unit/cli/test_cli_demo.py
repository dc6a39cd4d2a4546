"""The demo: its scenarios as data, the course that a story tells, and the servers that it starts."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from podscaler.base.errors import UsageError
from podscaler.cli.demo import demo, demo_scenario, demo_story, local_server
from podscaler.cli.demo.demo_scenario import DemoScenario, LoadShape
from podscaler.cli.demo.demo_story import DemoRescale, DemoView, Story
from podscaler.cli.demo.local_server import HOST, LocalServer, ServerProgram
from podscaler.cli.demo.queue_scenario import ArrivingJobs, RedisConnection
from podscaler.cli.demo.web_scenario import WebScenario
from tcp_server import serving

PYTHON = ServerProgram(sys.executable, "python3")


def story(*replicas: int, is_loaded: bool = False) -> Story:
    """A story that begins with the first number of pods, and changes to the others."""
    views = [DemoView(0.0, "", "", True, replicas[0], replicas[0])]
    views.append(DemoView(9.0, "", "", is_loaded, replicas[-1], replicas[-1]))
    return Story(views, [DemoRescale(float(index), each, "") for index, each in enumerate(replicas[1:])])


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        ((1,), (False, False, False, False)),
        ((1, 4), (True, False, False, False)),
        ((1, 4, 1), (True, True, False, False)),
        ((1, 4, 0), (True, True, True, False)),
        ((1, 4, 0, 3), (True, True, False, True)),
        ((0, 3), (True, False, False, True)),
    ],
)
def test_what_a_story_tells(replicas: Sequence[int], expected: tuple[bool, ...]) -> None:
    """Up, down, at zero now, up from zero."""
    told = story(*replicas)
    assert (told.scaled_up, told.scaled_down, told.is_at_zero, told.scaled_from_zero) == expected


def test_a_story_is_over_with_the_load() -> None:
    """Back at the first number of pods, without load."""
    assert [story(1, 4, 1).is_over(), story(1, 4, 1, is_loaded=True).is_over(), story(1, 4).is_over()] == [
        True,
        False,
        False,
    ]


def test_a_line() -> None:
    """Pods that are ready are `#`, others `.`."""
    view = DemoView(7.0, "load 10.0/s", "cpu  192%", True, 4, 1)
    assert demo_story.line(view) == "   7 s   load 10.0/s   cpu  192%   pods  4  #..."


def test_the_summary() -> None:
    """The goal where it was reached, else what was seen."""
    facts = demo_story.summary(story(1, 4, 1), {"jobs": 3})
    assert (facts["scaledUp"], facts["jobs"], [each["replicas"] for each in facts["timeline"]]) == (True, 3, [4, 1])
    lines = [demo_story.summary_lines(facts, fact_line="3 jobs", goal=goal)[:2] for goal in ("Done.", "")]
    assert lines == [["Done.", "3 jobs"], ["It scaled up and down, but not all was seen.", "3 jobs"]]


def test_the_shape_of_a_load() -> None:
    """Load from the fifth second to the middle."""
    shape = LoadShape(100, 10.0)
    assert [shape.rate_at(second) for second in (0, 4.9, 5, 49.9, 50)] == [0, 0, 10.0, 10.0, 0]


def test_jobs_arrive_in_phases() -> None:
    """Five a second for 15 s, each time; a call that comes late gets those of the whole time."""
    jobs = ArrivingJobs()
    assert jobs.take_due(3.0) == 0
    jobs.begin(3.0)
    assert [jobs.take_due(second) for second in (3.0, 4.0, 10.0, 18.0, 30.0)] == [0, 5, 30, 40, 0]
    jobs.begin(40.0)
    assert (jobs.is_arriving(54.9), jobs.is_arriving(55.0), jobs.take_due(41.0), jobs.arrived) == (True, False, 5, 80)


@pytest.mark.parametrize("name", demo.SCENARIOS)
def test_missing_programs_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its server a scenario says which Debian package has it, before anything is started."""
    monkeypatch.setenv("PATH", "/nowhere")
    scenario: DemoScenario = demo.SCENARIOS[name](30)
    if isinstance(scenario, WebScenario):
        scenario.check()
        return
    with pytest.raises(UsageError, match=r"^(redis-server|prometheus) is not installed: apt-get install \1$"):
        scenario.check()


@pytest.mark.parametrize(
    ("current", "shown"),
    [({"averageValue": "4500m"}, "4.5"), ({"averageValue": "-9223372036854775808m"}, "-"), ({}, "-")],
    ids=["a value", "without replicas", "none"],
)
def test_the_value_of_an_external_metric(current: dict[str, str], shown: str) -> None:
    """A decimal number, whatever the form of the quantity."""
    status = {"currentMetrics": [{"type": "External", "external": {"current": current}}]}
    assert demo_scenario.average_value_text(status) == shown


def test_an_unknown_scenario() -> None:
    """The choices are shown."""
    result = CliRunner().invoke(demo.command, ["--scenario", "rain"])
    assert (result.exit_code, "'web', 'queue', 'requests'" in result.output) == (2, True)


async def test_commands_of_redis() -> None:
    """Words are counted in bytes; a reply that is no integer is an error."""
    commands: list[bytes] = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commands.append(await reader.readuntil(b"LLEN\r\n$4\r\njobs\r\n"))
        writer.write(b":12\r\n-ERR no\r\n")
        await reader.read()
        ended.set()

    async with serving(serve) as port:
        connection = await RedisConnection.open(port)
        assert await connection.request_integer("LLEN", "jobs") == 12
        with pytest.raises(ValueError, match="redis replied '-ERR no'"):
            await connection.request_integer("LLEN", "jobs")
        await connection.close()
        await ended.wait()
    assert commands == [b"*2\r\n$4\r\nLLEN\r\n$4\r\njobs\r\n"]


async def _accepts(port: int) -> bool:
    _, writer = await asyncio.open_connection(HOST, port)
    writer.close()
    await writer.wait_closed()
    return True


async def test_a_server_is_started_and_ended(tmp_path: Path) -> None:
    """It is ready when it accepts connections, and its process is gone after the end."""
    server: LocalServer = await local_server.start(
        PYTHON, tmp_path / "server", lambda port, _: ["-m", "http.server", str(port), "--bind", HOST], is_ready=_accepts
    )
    assert (server.is_running, await _accepts(server.port)) == (True, True)
    await server.end()
    assert not server.is_running


async def test_a_server_that_does_not_start(tmp_path: Path) -> None:
    """What it wrote is the reason."""
    with pytest.raises(UsageError, match="did not start: no memory"):
        await local_server.start(
            PYTHON, tmp_path / "server", lambda *_: ["-c", "import sys; sys.exit('no memory')"], is_ready=_accepts
        )
