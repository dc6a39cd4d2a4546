"""Reads the length of a list or stream, or the lag or pending messages of a consumer group, from Redis or its like.

A list or a stream that does not exist has length 0, as Redis removes empty lists; it has no consumer groups, so their
lag is an error. The lag needs Redis 7 or newer.

`podscaler.sources.source_types` finds RedisSource by `spec.redis` of a MetricSource. A new setting: a field of
RedisSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: the documentation of Redis' commands LLEN, XLEN, XINFO GROUPS.
"""

from typing import Any, Literal

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from podscaler.sources.protocol import (
    InvalidSource,
    InvalidValue,
    Number,
    SourceConfig,
    SystemSettings,
    TLSSettings,
    parse_settings,
)
from podscaler.sources.systems import addresses


class RedisStream(SystemSettings, frozen=True):
    """The section `spec.redis.stream`; `Lag` and `Pending` count messages of the group, `Length` all messages."""

    key: str
    consumer_group: str = ""
    count: Literal["Length", "Lag", "Pending"] = "Length"


class RedisSettings(SystemSettings, frozen=True):
    """The section `spec.redis`; exactly one of `list` and `stream` is set, `address` is `host:port`."""

    address: str
    database: int = 0
    username: str = ""
    list: str = ""
    stream: RedisStream | None = None


class RedisSource:
    """The ExternalSource of `spec.redis`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = settings = parse_settings(config, RedisSettings)
        if bool(settings.list) == (settings.stream is not None):
            raise InvalidSource("exactly one of list and stream must be set")
        self._host, self._port = addresses.split_address(settings.address)
        self._username = config.credentials.get("username") or settings.username or None
        self._password = config.credentials.get("password")
        self._tls = config.tls
        if config.tls is not None:
            addresses.context_of(config.tls)  # only checks the authorities: the client makes a context of its own
        self._timeout_s = config.timeout_s
        self._redis: Redis | None = None

    @property
    def query(self) -> str:
        """What is read, for messages: `redis list jobs at redis:6379/0`."""
        settings, stream = self._settings, self._settings.stream
        address = f"{addresses.host_port(self._host, self._port)}/{settings.database}"
        if stream is None:
            return f"redis list {settings.list} at {address}"
        group = f" of group {stream.consumer_group}" if stream.consumer_group else ""
        return f"redis stream {stream.key} {stream.count.lower()}{group} at {address}"

    async def read(self) -> Number:
        """The length, the lag, or the pending messages. Raises InvalidValue without that group, and redis' errors."""
        redis, stream = self._get_client(), self._settings.stream
        if stream is None:
            return int(await redis.llen(self._settings.list))
        if stream.count == "Length":
            return int(await redis.xlen(stream.key))
        groups: list[dict[str, Any]] = await redis.xinfo_groups(stream.key)
        for group in groups:
            if group["name"] == stream.consumer_group.encode():
                return _count_of(group, stream.count.lower())
        raise InvalidValue(f"the stream has no consumer group {stream.consumer_group}")

    async def close(self) -> None:
        """Close all connections."""
        if self._redis is not None:
            await self._redis.aclose()

    def _get_client(self) -> Redis:
        """The client, which is made by the first read, and connects when it is used."""
        if self._redis is None:
            tls = self._tls or TLSSettings()
            self._redis = Redis(
                host=self._host,
                port=self._port,
                db=self._settings.database,
                username=self._username,
                password=self._password,
                ssl=self._tls is not None,
                ssl_ca_data=tls.authorities_pem or None,
                ssl_cert_reqs="required" if tls.is_verified else "none",
                ssl_check_hostname=tls.is_verified,
                retry=Retry(NoBackoff(), 1),  # once, as the server may have closed an idle connection
                socket_timeout=self._timeout_s,
                socket_connect_timeout=self._timeout_s,
                single_connection_client=True,
            )
        return self._redis


def _count_of(group: dict[str, Any], name: str) -> int:
    """The field `pending` or `lag` of a consumer group, which XINFO GROUPS returns by name. Raises InvalidValue."""
    count = group.get(name)
    if count is None:
        raise InvalidValue(f"the server does not know the {name} of the consumer group")
    return int(count)
