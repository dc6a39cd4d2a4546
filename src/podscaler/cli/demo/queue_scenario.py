"""The demo's scenario `queue`: workers scaled by the length of a list in a real Redis: up, down to zero, up again.

`podscaler.cli.demo.demo` runs it. Jobs arrive for a while, faster than one worker does them; workers are added, the
list becomes empty, and the last worker is removed. Then jobs arrive again. The autoscaler reads the length through a
MetricSource.
"""

import asyncio
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podscaler.base.errors import UsageError
from podscaler.cli.demo import demo_scenario, local_server
from podscaler.cli.demo.demo_scenario import DemoControlPlane, DemoScenario, Object
from podscaler.cli.demo.demo_story import Story
from podscaler.cli.demo.local_server import HOST, LocalServer, ServerProgram

PROGRAM = ServerProgram("redis-server", "redis-server")
NAME = "worker"
LIST = "jobs"
JOBS_PER_WORKER = "5"
ARRIVALS_PER_S = 5.0
PHASE_S = 15.0
"""For how long jobs arrive, each time."""
FIRST_ARRIVAL_S = 3.0
"""When the first jobs arrive, seconds after the start."""

WORKER = f"""
import os, socket, time
host, port = os.environ["REDIS"].rsplit(":", 1)
redis = socket.create_connection((host, int(port)))
replies = redis.makefile("rb")
while True:
    redis.sendall(b"BLPOP {LIST} 1\\r\\n")
    if replies.readline().startswith(b"*2"):
        for _ in range(4):
            replies.readline()
        time.sleep(1)
"""
"""The program of a worker: it takes a job from the list, sleeps a second in place of work, and takes the next."""


class QueueScenario(DemoScenario):
    """The objects, the load and the report of `podscaler demo --scenario queue`.

    Args:
        seconds: how long the demo may last.
    """

    name = NAME
    goal = "It followed the queue up, down to zero, and up again."

    def __init__(self, seconds: float) -> None:
        del seconds  # the second phase begins when the list and the workers are gone, not at a time
        self._server: LocalServer | None = None
        self._redis: RedisConnection | None = None
        self._jobs = ArrivingJobs()
        self._waiting = 0

    def check(self) -> None:
        """Raise UsageError if Redis, or the Python client by which MetricSources read it, is not installed."""
        PROGRAM.path()
        if importlib.util.find_spec("redis") is None:
            raise UsageError("MetricSources read Redis with its client: pip install 'podscaler[sources]'")

    async def start(self, control_plane: DemoControlPlane) -> None:
        """Start Redis. Raises UsageError."""
        self._server = await local_server.start(PROGRAM, control_plane.folder / "redis", _arguments, is_ready=_is_ready)
        self._redis = await RedisConnection.open(self._server.port)

    def objects(self) -> Sequence[Object]:
        """A Deployment of workers, a MetricSource, and an autoscaler: 0 to 10 workers, one for five waiting jobs."""
        assert self._server is not None, "it was started"
        address = f"{HOST}:{self._server.port}"
        container = {
            "name": NAME,
            "image": "python",
            "command": [sys.executable, "-I", "-S", "-c", WORKER],
            "env": [{"name": "REDIS", "value": address}],
        }
        return (
            demo_scenario.deployment(NAME, container),
            demo_scenario.metric_source(LIST, "redis", {"address": address, "list": LIST}),
            demo_scenario.autoscaler(NAME, demo_scenario.external_metric(LIST, JOBS_PER_WORKER), min_replicas=0),
        )

    async def advance(self, story: Story, elapsed_s: float) -> None:
        """Push the jobs that have arrived since the last call; begins the phases. Raises OSError, ValueError."""
        assert self._redis is not None, "it was started"
        begins_first = elapsed_s >= FIRST_ARRIVAL_S and not self._jobs.phases
        begins_second = self._jobs.phases == 1 and story.is_at_zero and not self._jobs.is_arriving(elapsed_s)
        if begins_first or begins_second:
            self._jobs.begin(elapsed_s)
        for _ in range(self._jobs.take_due(elapsed_s)):
            await self._redis.request_integer("RPUSH", LIST, "job")
        self._waiting = await self._redis.request_integer("LLEN", LIST)

    @property
    def is_loaded(self) -> bool:
        """Whether jobs wait."""
        return self._waiting > 0

    def load_text(self) -> str:
        """`queue   12 jobs`."""
        return f"queue {self._waiting:4d} jobs"

    def metric_text(self, status: Object) -> str:
        """` 4.5 each`."""
        return f"{demo_scenario.average_value_text(status):>4} each"

    def is_over(self, story: Story) -> bool:
        """Whether the workers came back, and the second jobs are done."""
        return self.is_success(story) and self._jobs.phases == 2 and not self.is_loaded

    def is_success(self, story: Story) -> bool:
        """Whether it scaled up, down to zero, and up again."""
        return story.scaled_up and story.scaled_from_zero

    def facts(self) -> Mapping[str, Any]:
        """How many jobs arrived."""
        return {"jobs": {"arrived": self._jobs.arrived, "waiting": self._waiting}}

    def fact_line(self) -> str:
        """How many jobs arrived."""
        return f"{self._jobs.arrived} jobs arrived, {self._waiting} wait"

    async def end(self) -> None:
        """End Redis."""
        if self._redis is not None:
            await self._redis.close()
        if self._server is not None:
            await self._server.end()


class ArrivingJobs:
    """Computes how many jobs arrive: ARRIVALS_PER_S a second, in phases of PHASE_S.

    Attributes:
        phases: how many phases have begun.
        arrived: how many jobs were due so far.
    """

    def __init__(self) -> None:
        self.phases = 0
        self.arrived = 0
        self._began_s = 0.0
        self._arrived_before_phase = 0

    def begin(self, elapsed_s: float) -> None:
        """Begin a phase."""
        self.phases += 1
        self._began_s, self._arrived_before_phase = elapsed_s, self.arrived

    def is_arriving(self, elapsed_s: float) -> bool:
        """Whether a phase has begun and not ended."""
        return self.phases > 0 and elapsed_s < self._began_s + PHASE_S

    def take_due(self, elapsed_s: float) -> int:
        """How many jobs have arrived since the last call, and must be pushed now; counts them as arrived."""
        if not self.phases:
            return 0
        passed_s = min(elapsed_s - self._began_s, PHASE_S)
        due = self._arrived_before_phase + round(passed_s * ARRIVALS_PER_S) - self.arrived
        self.arrived += due
        return due


class RedisConnection:
    """A connection for commands with integer replies. Source: the Redis serialization protocol (RESP2)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "RedisConnection":
        """A connection to the server on that port of this machine. Raises OSError."""
        return cls(*await asyncio.open_connection(HOST, port))

    async def request_integer(self, *command: str) -> int:
        """Send a command; returns the integer of the reply. Raises OSError, and ValueError for any other reply."""
        parts = [f"*{len(command)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in command)]
        self._writer.write("".join(parts).encode())
        await self._writer.drain()
        reply = (await self._reader.readline()).decode()
        if not reply.startswith(":"):
            raise ValueError(f"redis replied {reply.strip()!r}")
        return int(reply[1:])

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with suppress(OSError):  # the server may have closed it
            await self._writer.wait_closed()


def _arguments(port: int, folder: Path) -> Sequence[str]:
    return ("--port", str(port), "--bind", HOST, "--dir", str(folder), "--save", "", "--appendonly", "no")


async def _is_ready(port: int) -> bool:
    """Whether the server executes commands. Raises OSError."""
    connection = await RedisConnection.open(port)
    try:
        return await connection.request_integer("LLEN", LIST) == 0
    except ValueError:
        return False
    finally:
        await connection.close()
