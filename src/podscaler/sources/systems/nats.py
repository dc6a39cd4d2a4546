"""Reads the messages of a JetStream stream, or those that a consumer has not received yet, from NATS.

`podscaler.sources.source_types` finds NatsSource by `spec.nats` of a MetricSource. A new setting: a field of
NatsSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: the documentation of NATS (JetStream API, $JS.API.STREAM.INFO and $JS.API.CONSUMER.INFO).
"""

import asyncio
import contextlib

from nats.aio.client import Client
from nats.errors import NoServersError

from podscaler.sources.protocol import Number, SourceConfig, SystemSettings, parse_settings
from podscaler.sources.systems import addresses

CLOSE_TIMEOUT_S = 1.0


class NatsSettings(SystemSettings, frozen=True):
    """The section `spec.nats`.

    Attributes:
        consumer: the consumer whose messages count; empty if all messages of the stream count.
        include_unacknowledged: whether messages count that the consumer has received and not acknowledged.
    """

    address: str
    stream: str
    consumer: str = ""
    include_unacknowledged: bool = False
    username: str = ""


class NatsSource:
    """The ExternalSource of `spec.nats`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = settings = parse_settings(config, NatsSettings)
        self._host, self._port = addresses.split_address(settings.address)
        self._username = config.credentials.get("username") or settings.username or None
        self._password = config.credentials.get("password")
        self._token = config.credentials.get("token")
        self._context = None if config.tls is None else addresses.context_of(config.tls)
        self._timeout_s = config.timeout_s
        self._client: Client | None = None

    @property
    def query(self) -> str:
        """Such as `nats stream ORDERS consumer workers at nats:4222`."""
        consumer = f" consumer {self._settings.consumer}" if self._settings.consumer else ""
        return f"nats stream {self._settings.stream}{consumer} at {addresses.host_port(self._host, self._port)}"

    async def read(self) -> Number:
        """The number of messages in the stream, or still to be received by the consumer. Raises the client's errors."""
        client = self._client
        if client is None or not client.is_connected:
            client = await self._connect()
        manager = client.jsm(timeout=self._timeout_s)
        if not self._settings.consumer:
            return (await manager.stream_info(self._settings.stream)).state.messages
        consumer = await manager.consumer_info(self._settings.stream, self._settings.consumer, timeout=self._timeout_s)
        unacknowledged = consumer.num_ack_pending if self._settings.include_unacknowledged else 0
        return (consumer.num_pending or 0) + (unacknowledged or 0)

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            with contextlib.suppress(TimeoutError):  # after a failed handshake the client waits for ever
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._client.close()

    async def _connect(self) -> Client:
        """A connected client, after one attempt; `close` closes it also if this raises.

        Raises the error of the attempt in place of NoServersError, which the client raises for any failure.
        """
        await self.close()
        self._client = client = Client()
        errors: list[Exception] = []

        async def keep_error(error: Exception) -> None:
            errors.append(error)

        try:
            await client.connect(
                f"{'nats' if self._context is None else 'tls'}://{addresses.host_port(self._host, self._port)}",
                user=self._username,
                password=self._password,
                token=self._token,
                tls=self._context,
                connect_timeout=max(1, int(self._timeout_s)),
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                error_cb=keep_error,
                name="podscaler",
            )
        except NoServersError:
            raise errors[0] if errors else NoServersError from None
        return client
