"""Reads the lag of a consumer group for a topic from Kafka: the sum of end offsets less committed offsets.

Messages of a transaction that is not committed count. Of a partition without a committed offset nothing counts with
`offsetResetPolicy: Latest`, as a new consumer would skip its messages; with `Earliest` all retained messages count.
`podscaler.sources.source_types` finds KafkaSource by `spec.kafka` of a MetricSource. A new setting: a field of
KafkaSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: the documentation of Kafka (protocol: OffsetFetch, ListOffsets; consumer configuration auto.offset.reset).
"""

from typing import Any, Literal

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from podscaler.sources.protocol import InvalidValue, Number, SourceConfig, SystemSettings, parse_settings
from podscaler.sources.systems import addresses


class KafkaSettings(SystemSettings, frozen=True):
    """The section `spec.kafka`; each of `bootstrap_servers` is `host:port`."""

    bootstrap_servers: list[str]
    consumer_group: str
    topic: str
    offset_reset_policy: Literal["Latest", "Earliest"] = "Latest"
    username: str = ""
    sasl_mechanism: str = "PLAIN"


class KafkaSource:
    """The ExternalSource of `spec.kafka`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = settings = parse_settings(config, KafkaSettings)
        servers = [addresses.host_port(*addresses.split_address(server)) for server in settings.bootstrap_servers]
        self._client_arguments = _client_arguments(config, settings, servers)
        self._admin: AIOKafkaAdminClient | None = None
        self._consumer: AIOKafkaConsumer | None = None

    @property
    def query(self) -> str:
        """Such as `kafka lag of group workers in topic orders at kafka:9092`."""
        servers = ",".join(self._settings.bootstrap_servers)
        return f"kafka lag of group {self._settings.consumer_group} in topic {self._settings.topic} at {servers}"

    async def read(self) -> Number:
        """The lag of the consumer group in all partitions of the topic. Raises InvalidValue, and aiokafka's errors."""
        admin, consumer = await self._get_clients()
        topic = self._settings.topic
        topics = await admin.describe_topics([topic])
        partitions = [TopicPartition(topic, partition["partition"]) for partition in topics[0]["partitions"]]
        if not partitions:
            raise InvalidValue(f"there is no topic {topic}, or the user may not describe it")
        committed = await admin.list_consumer_group_offsets(self._settings.consumer_group, partitions=partitions)
        ends = await consumer.end_offsets(partitions)
        begins = await consumer.beginning_offsets(partitions)
        return sum(
            self._lag(committed[partition].offset, begins[partition], ends[partition]) for partition in partitions
        )

    async def close(self) -> None:
        """Close all connections."""
        try:
            if self._admin is not None:
                await self._admin.close()
        finally:
            if self._consumer is not None:
                await self._consumer.stop()

    def _lag(self, committed: int, begin: int, end: int) -> int:
        """The messages of a partition that are not committed; `committed` is negative if nothing is."""
        if committed < 0:
            return end - begin if self._settings.offset_reset_policy == "Earliest" else 0
        return max(0, end - max(committed, begin))  # messages before `begin` are deleted

    async def _get_clients(self) -> tuple[AIOKafkaAdminClient, AIOKafkaConsumer]:
        """The two clients, connected now if they are not: only the consumer reads the offsets of a topic."""
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(**self._client_arguments)
            await self._admin.start()
        if self._consumer is None:
            self._consumer = AIOKafkaConsumer(group_id=None, enable_auto_commit=False, **self._client_arguments)
            await self._consumer.start()
        return self._admin, self._consumer


def _client_arguments(config: SourceConfig, settings: KafkaSettings, servers: list[str]) -> dict[str, Any]:
    """The keyword arguments of aiokafka's clients by name. Raises InvalidSource for invalid authorities."""
    password = config.credentials.get("password")
    transport = "PLAINTEXT" if config.tls is None else "SSL"
    arguments: dict[str, Any] = {
        "bootstrap_servers": servers,
        "client_id": "podscaler",
        "request_timeout_ms": int(config.timeout_s * 1000),
        "security_protocol": transport,
    }
    if config.tls is not None:
        arguments["ssl_context"] = addresses.context_of(config.tls)
    if password is not None:
        arguments["security_protocol"] = f"SASL_{transport}"
        arguments["sasl_mechanism"] = settings.sasl_mechanism
        arguments["sasl_plain_username"] = config.credentials.get("username") or settings.username
        arguments["sasl_plain_password"] = password
    return arguments
