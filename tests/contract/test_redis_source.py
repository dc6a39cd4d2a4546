"""The source redis with a real Redis: lists, streams, and everything that goes wrong."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis
from source_servers import PASSWORD, Place, config, failure, find_program, own_port, read, running

import prerequisites
from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidSource, Number
from podscaler.sources.systems.redis import RedisSource
from tcp_server import serving

PROGRAM = find_program("redis-server")
pytestmark = prerequisites.REDIS.mark(is_there=PROGRAM is not None)
STREAM = {"key": "orders", "consumerGroup": "workers"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A Redis with a password, a list of three jobs in database 2, and a stream."""
    place = own_port(tmp_path_factory.mktemp("redis"))
    assert PROGRAM is not None
    command = [PROGRAM, "--bind", place.host, "--port", str(place.port), "--save", "", "--requirepass", PASSWORD]
    with running(command, place, cwd=place.folder):
        with Redis(host=place.host, port=place.port, db=2, password=PASSWORD) as redis:
            redis.rpush("jobs", "a", "b", "c")
            for number in range(5):
                redis.xadd("orders", {"number": number})
            redis.xgroup_create("orders", "workers", id="0")
            redis.xreadgroup("workers", "me", {"orders": ">"}, count=2)
            redis.set("text", "no list")
        yield place


def source(server: Place, *, password: str = PASSWORD, **settings: Any) -> RedisSource:
    """The source with these settings."""
    return RedisSource(config({"address": server.address, "database": 2} | settings, password=password))


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        pytest.param({"list": "jobs"}, 3, id="the length of a list"),
        pytest.param({"list": "none"}, 0, id="a list that does not exist"),
        pytest.param({"stream": {"key": "orders"}}, 5, id="the length of a stream"),
        pytest.param({"stream": {"key": "none"}}, 0, id="a stream that does not exist"),
        pytest.param({"stream": STREAM | {"count": "Lag"}}, 3, id="not delivered to the group"),
        pytest.param({"stream": STREAM | {"count": "Pending"}}, 2, id="not acknowledged by the group"),
    ],
)
def test_numbers(server: Place, settings: dict[str, Any], number: Number) -> None:
    """Several reads use one connection."""
    assert metric_numbers.milli_of(read(source(server, **settings), times=3)) == number * 1000


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        pytest.param(
            {"list": "text"}, "WRONGTYPE Operation against a key holding the wrong kind of value", id="wrong type"
        ),
        pytest.param(
            {"stream": {"key": "none"} | STREAM | {"key": "none", "count": "Lag"}}, "no such key", id="no stream"
        ),
        pytest.param(
            {"stream": STREAM | {"count": "Lag", "consumerGroup": "others"}},
            "the stream has no consumer group others",
            id="no group",
        ),
        pytest.param({"list": "jobs", "database": 99}, "DB index is out of range", id="no database"),
    ],
)
def test_failures(server: Place, settings: dict[str, Any], text: str) -> None:
    """The reason of the server, or ours."""
    assert text in str(failure(source(server, **settings)))


def test_a_wrong_password(server: Place) -> None:
    """The reason is the server's; the password is not in it."""
    error = str(failure(source(server, list="jobs", password="swordfish")))
    assert ("invalid" in error, "swordfish" in error) == (True, False)


def test_a_server_that_is_down(tmp_path: Any) -> None:
    """Nothing listens there."""
    assert "connect call failed" in str(failure(source(own_port(tmp_path), list="jobs"))).lower()


async def test_a_server_that_accepts_and_is_silent() -> None:
    """The client's own time limit ends the read, if the caller's did not."""
    async with serving(lambda reader, _: reader.read()) as port:
        made = RedisSource(config({"address": f"127.0.0.1:{port}", "list": "jobs"}, timeout_s=0.1))
        with pytest.raises(Exception, match=r"(?i)timeout"):
            await made.read()
        await made.close()


def test_a_connection_that_was_lost_is_replaced(server: Place) -> None:
    """A read after the server closed the connection works."""

    async def run() -> list[Number]:
        made = source(server, list="jobs")
        numbers = [await made.read()]
        with Redis(host=server.host, port=server.port, password=PASSWORD) as redis:
            redis.client_kill_filter(_type="normal", skipme=True)
        numbers.append(await made.read())
        await made.close()
        return numbers

    assert asyncio.run(run()) == [3, 3]


@pytest.mark.parametrize(
    ("settings", "query"),
    [
        ({"list": "jobs"}, "redis list jobs at redis:6379/0"),
        ({"stream": {"key": "orders"}}, "redis stream orders length at redis:6379/0"),
        (
            {"stream": STREAM | {"count": "Lag"}, "database": 2},
            "redis stream orders lag of group workers at redis:6379/2",
        ),
    ],
)
def test_queries(settings: dict[str, Any], query: str) -> None:
    """What is asked, of which server."""
    assert RedisSource(config({"address": "redis:6379"} | settings)).query == query


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"address": "redis:6379"},
        {"address": "redis", "list": "a"},
        {"address": "redis:70000", "list": "a"},
        {"address": "user@redis:6379", "list": "a"},
        {"address": "redis/path:6379", "list": "a"},
        {"address": "redis:6379", "list": "a", "stream": {"key": "b"}},
        {"address": "redis:6379", "stream": {"key": "b", "count": "Age"}},
    ],
)
def test_invalid_settings(settings: dict[str, Any]) -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource):
        RedisSource(config(settings))
