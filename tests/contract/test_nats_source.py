"""The source nats with a real NATS server: streams, consumers, and everything that goes wrong."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import ConsumerConfig
from source_servers import PASSWORD, Place, config, failure, find_program, own_port, read, running

import prerequisites
from podscaler.sources.protocol import InvalidSource, Number
from podscaler.sources.systems.nats import NatsSource

PROGRAM = find_program("nats-server")
pytestmark = prerequisites.NATS.mark(is_there=PROGRAM is not None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A NATS server with JetStream, and a stream of five orders, of which the consumer has received two."""
    place = own_port(tmp_path_factory.mktemp("nats"))
    assert PROGRAM is not None
    command = [
        PROGRAM,
        "--addr",
        place.host,
        "--port",
        str(place.port),
        "--jetstream",
        "--user",
        "me",
        "--pass",
        PASSWORD,
    ]
    with running([*command, "--store_dir", str(place.folder)], place):
        asyncio.run(fill(place))
        yield place


async def fill(place: Place) -> None:
    """Make the stream and the consumer."""
    client = await nats.connect(f"nats://{place.address}", user="me", password=PASSWORD)
    stream = client.jetstream()
    await stream.add_stream(name="ORDERS", subjects=["orders"])
    await stream.add_consumer("ORDERS", ConsumerConfig(durable_name="workers", ack_wait=3600))
    for number in range(5):
        await stream.publish("orders", str(number).encode())
    subscription = await stream.pull_subscribe("orders", durable="workers", stream="ORDERS")
    await subscription.fetch(2)
    await client.close()


def source(server: Place, *, password: str = PASSWORD, **settings: Any) -> NatsSource:
    """The source with these settings."""
    common = {"address": server.address, "stream": "ORDERS", "username": "me"}
    return NatsSource(config(common | settings, timeout_s=10, password=password))


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        pytest.param({}, 5, id="the messages of a stream"),
        pytest.param({"consumer": "workers"}, 3, id="not received by the consumer"),
        pytest.param({"consumer": "workers", "includeUnacknowledged": True}, 5, id="not acknowledged by it"),
    ],
)
def test_numbers(server: Place, settings: dict[str, Any], number: Number) -> None:
    """Several reads use one connection."""
    assert read(source(server, **settings), times=3) == number


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        pytest.param({"stream": "NONE"}, "stream not found", id="no stream"),
        pytest.param({"consumer": "others"}, "consumer not found", id="no consumer"),
    ],
)
def test_failures(server: Place, settings: dict[str, Any], text: str) -> None:
    """The reason of the server."""
    assert text in str(failure(source(server, **settings)))


def test_a_wrong_password(server: Place) -> None:
    """The reason is the server's; the password is not in it."""
    error = str(failure(source(server, password="swordfish")))
    assert ("Authorization Violation" in error, "swordfish" in error) == (True, False)


def test_a_server_that_is_down(tmp_path: Path) -> None:
    """One attempt, and no retries in the background."""
    assert "connect call failed" in str(failure(source(own_port(tmp_path)))).lower()


@pytest.mark.parametrize(
    ("settings", "query"),
    [
        ({}, "nats stream ORDERS at nats:4222"),
        ({"consumer": "workers"}, "nats stream ORDERS consumer workers at nats:4222"),
    ],
)
def test_queries(settings: dict[str, Any], query: str) -> None:
    """What is asked, of which server."""
    assert source(Place("nats", 4222), **settings).query == query


def test_invalid_settings() -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource):
        NatsSource(config({"address": "nats", "stream": "ORDERS"}))
