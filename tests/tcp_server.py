"""TCP and TLS servers of tests, which leave no open connection behind."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[object]]

_TURNS_TO_ACCEPT = 5
"""More turns of the event loop than asyncio takes from the accepted socket to the call for its connection."""


@asynccontextmanager
async def serving(
    serve: Serve, *, context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """The port of a server that gives each connection to `serve`, and closes it then.

    At the end `serve` is cancelled where it still runs, and all connections are closed, also those that were accepted
    at the last moment: one that the event loop has not closed when it ends is a ResourceWarning, in whatever test
    happens to collect it.

    Args:
        context: for TLS.
        host: the address that the server listens on.
    """
    tasks: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await serve(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(handle(reader, writer))
        tasks[task] = writer
        task.add_done_callback(tasks.pop)

    server = await asyncio.start_server(accept, host, 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        running = dict(tasks)
        for task, writer in running.items():
            task.cancel()
            writer.transport.abort()  # a task that has not begun closes nothing
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports are closed in the next turn
