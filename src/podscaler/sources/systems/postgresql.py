"""Reads the one number of a query from PostgreSQL, in a read-only transaction.

The query runs as `SELECT * FROM (query) LIMIT 2` in a prepared statement: it is a single statement, and a large result
is not transferred. The transaction is read-only, and the server ends the query at the time limit. A function that the
query calls runs with the permissions of the role; the role should have no more than SELECT.
`podscaler.sources.source_types` finds PostgresqlSource by `spec.postgresql` of a MetricSource. A new setting: a field
of PostgresqlSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: the documentation of PostgreSQL (SET TRANSACTION, statement_timeout, extended query protocol).
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from podscaler.base.memory_file import MemoryFile
from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidValue, Number, SourceConfig, SystemSettings, TLSSettings, parse_settings
from podscaler.sources.systems import addresses


class PostgresqlSettings(SystemSettings, frozen=True):
    """The section `spec.postgresql`; `query` is a SELECT statement with one number as result."""

    host: str
    database: str
    query: str
    port: int = 5432
    username: str = ""


class PostgresqlSource:
    """The ExternalSource of `spec.postgresql`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = parse_settings(config, PostgresqlSettings)
        self._username = config.credentials.get("username") or self._settings.username
        self._password = config.credentials.get("password")
        self._timeout_s = config.timeout_s
        self._tls = config.tls
        if config.tls is not None:
            addresses.context_of(config.tls)  # only checks the authorities: libpq reads them by itself
        self._authorities: MemoryFile | None = None
        self._connection: AsyncConnection | None = None

    @property
    def query(self) -> str:
        """Such as `postgresql SELECT count(*) FROM jobs at db:5432/shop`."""
        address = addresses.host_port(self._settings.host, self._settings.port)
        return f"postgresql {self._settings.query} at {address}/{self._settings.database}"

    async def read(self) -> Number:
        """The number in the only column of the only row. Raises InvalidValue for other results, psycopg's errors."""
        if self._connection is None or self._connection.closed:
            self._connection = await self._connect()
        # on lines of their own, as the query may end with a comment; a second row shows that the result is invalid
        query = "\n".join(("SELECT * FROM (", self._settings.query.rstrip().rstrip(";"), ") AS metric LIMIT 2"))
        async with self._connection.transaction():
            cursor = await self._connection.execute(query.encode(), prepare=True)
            rows = await cursor.fetchmany(2)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise InvalidValue(f"the result has {_shape(rows)}, not one row with one number")
        return metric_numbers.number_of(rows[0][0])

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()
        if self._authorities is not None:
            self._authorities.close()

    async def _connect(self) -> AsyncConnection:
        """A new read-only connection, whose queries the server ends at the time limit."""
        parameters = await asyncio.to_thread(self._tls_parameters, self._tls)
        connection = await AsyncConnection.connect(
            host=self._settings.host,
            port=self._settings.port,
            dbname=self._settings.database,
            user=self._username or None,
            password=self._password,
            connect_timeout=max(2, int(self._timeout_s)),  # libpq treats 1 s as 2 s
            options=f"-c default_transaction_read_only=on -c statement_timeout={int(self._timeout_s * 1000)}",
            application_name="podscaler",
            client_encoding="utf8",
            passfile="/nonexistent",  # else libpq reads ~/.pgpass
            **parameters,
        )
        await connection.set_read_only(True)
        return connection

    def _tls_parameters(self, tls: TLSSettings | None) -> dict[str, Any]:
        """The parameters of libpq, which reads authorities from a file."""
        if tls is None:
            return {"sslmode": "disable"}
        if not tls.is_verified:
            return {"sslmode": "require"}
        if not tls.authorities_pem:
            return {"sslmode": "verify-full", "sslrootcert": "system"}
        if self._authorities is None:
            self._authorities = MemoryFile(tls.authorities_pem.encode("ascii"))
        return {"sslmode": "verify-full", "sslrootcert": self._authorities.path}


def _shape(rows: Sequence[Sequence[Any]]) -> str:
    """What is wrong with the number of rows, or of columns of the only row."""
    if not rows:
        return "no row"
    return "more than one row" if len(rows) > 1 else f"{len(rows[0])} columns"
