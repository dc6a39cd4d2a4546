"""Scripted metrics behind TLS, for the aggregation layer, on the thread of somebody else's loop.

The soak and the scenario suite use it; the benchmark of controllers has its script in a process of its own.
"""

import asyncio
import ssl
from pathlib import Path
from typing import Any, Protocol

from benchmarks.cluster_metrics import Http
from benchmarks.gate import LoopThread


class Script(Protocol):
    """What is answered.

    Attributes:
        questions: how many were answered so far.
        delay_s: how long an answer takes.
    """

    questions: int
    delay_s: float

    def answer(self, path: str, query: str) -> tuple[int, Any]:
        """Status and document."""
        ...


class MetricsServer:
    """Serves a script from `listen` to `close`.

    Args:
        script: what is answered.
        thread: where it runs.
    """

    def __init__(self, script: Script, thread: LoopThread) -> None:
        self._script = script
        self._thread = thread
        self._connections: list[_Connection] = []

    def listen(self, pair: tuple[Path, Path], authority: Path) -> int:
        """Begin with that certificate and key, for clients of that authority; the port."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_REQUIRED  # only the aggregator may ask
        self._server: asyncio.Server = self._thread.run(self._listen(context))
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """End, with every connection."""
        self._thread.run(self._close())

    async def _listen(self, context: ssl.SSLContext) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(self._connection, "127.0.0.1", 0, ssl=context)

    def _connection(self) -> "_Connection":
        self._connections = [each for each in self._connections if not each.is_over]
        self._connections.append(_Connection(self._script))
        return self._connections[-1]

    async def _close(self) -> None:
        self._server.close()
        for each in self._connections:
            each.abort()


class _Connection(Http):
    """One connection of the aggregator's, which remembers whether it is over."""

    is_over = False

    def connection_lost(self, exc: Exception | None) -> None:
        """As asyncio.Protocol."""
        self.is_over = True

    def abort(self) -> None:
        """Drop it, if it was made."""
        if hasattr(self, "_transport"):
            self._transport.abort()
