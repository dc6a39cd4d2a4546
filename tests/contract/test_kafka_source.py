"""The source kafka with a real Kafka broker: the lag of groups, and everything that goes wrong."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from source_servers import Place, config, failure, own_port, running

import prerequisites
from podscaler.sources.protocol import InvalidSource, Number
from podscaler.sources.systems.kafka import KafkaSource

JARS = Path.home() / ".cache" / "podscaler" / "kafka"
JAVA = shutil.which("java")
IS_THERE = JAVA is not None and any(JARS.glob("kafka_*.jar"))
pytestmark = [prerequisites.KAFKA.mark(is_there=IS_THERE), pytest.mark.slow]

CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
listeners=PLAINTEXT://{broker},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{broker}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A single Kafka node, and a topic of two partitions with three messages each."""
    folder = tmp_path_factory.mktemp("kafka")
    place, controller = own_port(folder), own_port(folder)
    properties = folder / "server.properties"
    text = CONFIGURATION.format(broker=place.address, controller=controller.address, folder=folder)
    properties.write_text(text)
    java = [JAVA or "", "-Xmx256m", "-cp", f"{JARS}/*"]
    storage = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties)]
    subprocess.run([*java, *storage], check=True, capture_output=True)

    def is_up() -> bool:
        return "Kafka Server started" in (folder / "log.txt").read_text()

    with running([*java, "kafka.Kafka", str(properties)], place, is_up=is_up, cwd=folder):
        asyncio.run(fill(place))
        yield place


async def fill(place: Place) -> None:
    """Make the topics; the group `workers` has committed one message of partition 0 and none of partition 1."""
    admin = AIOKafkaAdminClient(bootstrap_servers=place.address)
    await admin.start()
    await admin.create_topics([NewTopic("orders", 2, 1), NewTopic("empty", 1, 1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=place.address) as producer:
        for number in range(6):
            await producer.send_and_wait("orders", str(number).encode(), partition=number % 2)
    consumer = AIOKafkaConsumer(bootstrap_servers=place.address, group_id="workers", enable_auto_commit=False)
    await consumer.start()
    consumer.assign([TopicPartition("orders", 0)])
    await consumer.commit({TopicPartition("orders", 0): 1})
    await consumer.stop()


def source(server: Place, **settings: Any) -> KafkaSource:
    """The source with these settings."""
    common = {"bootstrapServers": [server.address], "consumerGroup": "workers", "topic": "orders"}
    return KafkaSource(config(common | settings, timeout_s=20))


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        pytest.param({}, 2, id="committed partitions"),
        pytest.param({"offsetResetPolicy": "Earliest"}, 5, id="all of the partition without an offset"),
        pytest.param({"consumerGroup": "others"}, 0, id="a group that does not exist"),
        pytest.param({"consumerGroup": "others", "offsetResetPolicy": "Earliest"}, 6, id="all messages"),
        pytest.param({"topic": "empty"}, 0, id="an empty topic"),
    ],
)
async def test_numbers(server: Place, settings: dict[str, Any], number: Number) -> None:
    """Several reads use the same connections."""
    made = source(server, **settings)
    found = [await made.read() for _ in range(3)]
    await made.close()
    assert found == [number] * 3


async def test_the_lag_follows_new_messages(server: Place) -> None:
    """End offsets are not kept."""
    made = source(server, consumerGroup="late", topic="empty", offsetResetPolicy="Earliest")
    before = await made.read()
    async with AIOKafkaProducer(bootstrap_servers=server.address) as producer:
        await producer.send_and_wait("empty", b"x")
    after = await made.read()
    await made.close()
    assert (before, after) == (0, 1)


def test_no_topic(server: Place) -> None:
    """A name that is wrong is no empty queue."""
    assert str(failure(source(server, topic="none"))) == "there is no topic none, or the user may not describe it"


def test_a_server_that_is_down(tmp_path: Path) -> None:
    """Nothing listens there."""
    assert "Unable to bootstrap" in str(failure(source(own_port(tmp_path))))


def test_the_query() -> None:
    """What is asked, of which servers."""
    assert source(Place("kafka", 9092)).query == "kafka lag of group workers in topic orders at kafka:9092"


def test_invalid_settings() -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource):
        KafkaSource(config({"bootstrapServers": ["kafka"], "consumerGroup": "a", "topic": "b"}))


def test_partitions_that_were_truncated() -> None:
    """A committed offset before the first retained message counts from that message on."""
    made = source(Place("kafka", 9092))
    assert [made._lag(5, 10, 15), made._lag(12, 10, 15), made._lag(20, 10, 15), made._lag(-1, 10, 15)] == [5, 3, 0, 0]
