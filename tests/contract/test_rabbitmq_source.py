"""The source rabbitmq with a real RabbitMQ: queues, virtual hosts, and everything that goes wrong."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from source_servers import PASSWORD, Place, accepts, config, failure, find_program, own_port, read, running

import prerequisites
from podscaler.sources.protocol import InvalidSource, Number
from podscaler.sources.systems.rabbitmq import RabbitmqSource

FOLDER = Path("/usr/lib/rabbitmq/bin")
EPMD = find_program("epmd")
IS_THERE = EPMD is not None and (FOLDER / "rabbitmq-server").exists()
pytestmark = [prerequisites.RABBITMQ.mark(is_there=IS_THERE), pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A RabbitMQ with a port mapper of its own, whose user `me` may use the virtual hosts `/` and `shop`."""
    folder = tmp_path_factory.mktemp("rabbitmq")
    place, mapper, distribution = own_port(folder), own_port(tmp_path_factory.mktemp("epmd")), own_port(folder)
    environment = os.environ | {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(mapper.port),
        "ERL_EPMD_ADDRESS": mapper.host,
        "RABBITMQ_NODENAME": f"podscaler-{os.getpid()}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": place.host,
        "RABBITMQ_NODE_PORT": str(place.port),
        "RABBITMQ_DIST_PORT": str(distribution.port),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
    }
    (folder / "plugins").write_text("[].")
    control = [str(FOLDER / "rabbitmqctl"), "--quiet", "--node", environment["RABBITMQ_NODENAME"]]

    def is_ready() -> bool:
        command = [*control, "await_startup", "--timeout", "60"]
        return accepts(place) and subprocess.run(command, env=environment, capture_output=True).returncode == 0

    with (
        running([EPMD or "", "-port", str(mapper.port), "-address", mapper.host], mapper),
        running([str(FOLDER / "rabbitmq-server")], place, is_up=is_ready, env=environment, cwd=folder),
    ):
        for command in (
            ["add_user", "me", PASSWORD],
            ["add_vhost", "shop"],
            ["set_permissions", "-p", "/", "me", ".*", ".*", ".*"],
            ["set_permissions", "-p", "shop", "me", ".*", ".*", ".*"],
        ):
            subprocess.run([*control, *command], env=environment, check=True, capture_output=True)
        asyncio.run(fill(place, "/", 3))
        asyncio.run(fill(place, "shop", 1))
        yield place


async def fill(place: Place, virtual_host: str, messages: int) -> None:
    """Make the queue `mails` with so many messages, and an empty one."""
    connection = await aio_pika.connect(
        host=place.host, port=place.port, login="me", password=PASSWORD, virtualhost=virtual_host
    )
    channel = await connection.channel()
    for name in ("mails", "empty"):
        await channel.declare_queue(name, durable=True)
    for number in range(messages):
        await channel.default_exchange.publish(aio_pika.Message(str(number).encode()), "mails")
    await connection.close()


def source(server: Place, *, password: str = PASSWORD, **settings: Any) -> RabbitmqSource:
    """The source with these settings."""
    common = {"host": server.host, "port": server.port, "username": "me", "queue": "mails"}
    return RabbitmqSource(config(common | settings, timeout_s=20, password=password))


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        pytest.param({}, 3, id="ready messages"),
        pytest.param({"queue": "empty"}, 0, id="an empty queue"),
        pytest.param({"virtualHost": "shop"}, 1, id="another virtual host"),
    ],
)
def test_numbers(server: Place, settings: dict[str, Any], number: Number) -> None:
    """Several reads use one connection."""
    assert read(source(server, **settings), times=3) == number


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        pytest.param({"queue": "none"}, "no queue 'none' in vhost '/'", id="no queue"),
        pytest.param({"virtualHost": "none"}, "Connection.Close", id="no virtual host"),
    ],
)
def test_failures(server: Place, settings: dict[str, Any], text: str) -> None:
    """The reason of the server."""
    assert text in str(failure(source(server, **settings)))


def test_a_wrong_password(server: Place, caplog: pytest.LogCaptureFixture) -> None:
    """The reason is the server's; the password is neither in it nor in the log of the client."""
    caplog.set_level(0)
    error = str(failure(source(server, password="swordfish")))
    assert ("ACCESS_REFUSED" in error, "swordfish" in error + caplog.text) == (True, False)


def test_a_queue_that_was_missing_appears(server: Place) -> None:
    """A channel that the server closed does not harm the next read."""

    async def run() -> list[object]:
        made = source(server, queue="late")
        found: list[object] = []
        for _ in range(2):
            try:
                found.append(await made.read())
            except Exception as error:
                found.append(type(error).__name__)
                connection = await aio_pika.connect(host=server.host, port=server.port, login="me", password=PASSWORD)
                await (await connection.channel()).declare_queue("late")
                await connection.close()
        await made.close()
        return found

    assert asyncio.run(run()) == ["ChannelNotFoundEntity", 0]


def test_a_server_that_is_down(tmp_path: Path) -> None:
    """Nothing listens there."""
    assert "connect call failed" in str(failure(source(own_port(tmp_path)))).lower()


@pytest.mark.parametrize(
    ("settings", "query"),
    [
        ({}, "rabbitmq queue mails at rabbit:5672/"),
        ({"virtualHost": "shop"}, "rabbitmq queue mails at rabbit:5672/shop"),
    ],
)
def test_queries(settings: dict[str, Any], query: str) -> None:
    """What is asked, of which server."""
    assert source(Place("rabbit", 5672), **settings).query == query


def test_invalid_settings() -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource):
        RabbitmqSource(config({"host": "rabbit"}))
