"""Reads the number of ready messages of a queue from RabbitMQ, with a passive declaration of the queue (AMQP).

A passive declaration creates nothing, and needs only the permission to read the queue. Messages that a consumer has
received and not acknowledged do not count.

`podscaler.sources.source_types` finds RabbitmqSource by `spec.rabbitmq` of a MetricSource. A new setting: a field of
RabbitmqSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: the AMQP 0-9-1 specification (queue.declare, passive).
"""

from aio_pika import connect
from aio_pika.abc import AbstractConnection

from podscaler.sources.protocol import Number, SourceConfig, SystemSettings, parse_settings
from podscaler.sources.systems import addresses

PORT = 5672
TLS_PORT = 5671


class RabbitmqSettings(SystemSettings, frozen=True):
    """The section `spec.rabbitmq`.

    Attributes:
        port: the TCP port; 0 for PORT, or for TLS_PORT if TLS is used.
    """

    host: str
    queue: str
    port: int = 0
    virtual_host: str = "/"
    username: str = ""


class RabbitmqSource:
    """The ExternalSource of `spec.rabbitmq`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = settings = parse_settings(config, RabbitmqSettings)
        self._port = settings.port or (PORT if config.tls is None else TLS_PORT)
        self._username = config.credentials.get("username") or settings.username or "guest"
        self._password = config.credentials.get("password", "guest")
        self._context = None if config.tls is None else addresses.context_of(config.tls)
        self._timeout_s = config.timeout_s
        self._connection: AbstractConnection | None = None

    @property
    def query(self) -> str:
        """Such as `rabbitmq queue mails at rabbit:5672/`."""
        address = addresses.host_port(self._settings.host, self._port)
        return f"rabbitmq queue {self._settings.queue} at {address}/{self._settings.virtual_host.removeprefix('/')}"

    async def read(self) -> Number:
        """The number of messages that are ready. Raises aio-pika's errors, also if there is no such queue."""
        if self._connection is None or self._connection.is_closed:
            self._connection = await self._connect()
        channel = await self._connection.channel(publisher_confirms=False)
        try:
            queue = await channel.declare_queue(self._settings.queue, passive=True, timeout=self._timeout_s)
            return queue.declaration_result.message_count or 0
        finally:
            await channel.close()

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> AbstractConnection:
        """A new connection to the server. Raises aio-pika's errors."""
        return await connect(
            host=self._settings.host,
            port=self._port,
            login=self._username,
            password=self._password,
            virtualhost=self._settings.virtual_host,
            ssl=self._context is not None,
            ssl_context=self._context,
            timeout=self._timeout_s,
        )
