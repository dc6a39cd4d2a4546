"""One connection of a client to a port of a pod: bytes both ways until both have ended.

Called by `pod_ports` and `spdy_ports`, which know how a client's bytes travel.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable

from podscaler.controlplane.registry.pod_connections import PodConnections, PodPortConnection, SessionFailure
from podscaler.controlplane.registry.registry import Object

Send = Callable[[bytes], Awaitable[None]]


async def relay(connections: PodConnections, pod: Object, port: int, given: AsyncIterator[bytes], send: Send) -> str:
    """Connect and relay until the pod has ended what it sends; returns what went wrong, in the kubelet's words.

    Args:
        given: what the client sends, until it ends that.
        send: gives the client what the pod sends.

    Raises:
        ConnectionError: of `send`: the client has gone.
    """
    try:
        connection = await connections.connect(pod, port)
    except SessionFailure as failure:
        return _fault(pod, port, f"failed to connect: {failure}")
    giving = asyncio.ensure_future(_give(connection, given))
    try:
        return await _take(connection, pod, port, send)
    finally:
        giving.cancel()
        await asyncio.gather(giving, return_exceptions=True)
        await connection.close()


async def _give(connection: PodPortConnection, given: AsyncIterator[bytes]) -> None:
    """Send to the pod. One that does not take it any more says so by ending its own side."""
    try:
        async for data in given:
            await connection.write(data)
        await connection.end_input()
    except OSError:
        return


async def _take(connection: PodPortConnection, pod: Object, port: int, send: Send) -> str:
    chunks = connection.received()
    while True:
        try:
            data = await anext(chunks, b"")
        except OSError as error:
            return _fault(pod, port, f"read: {(error.strerror or str(error)).lower()}")
        if not data:
            return ""
        await send(data)


def _fault(pod: Object, port: int, why: str) -> str:
    meta = pod["metadata"]
    return f"error forwarding port {port} to pod {meta['name']}, uid {meta['uid']}: {why}"


async def first_of(*works: Coroutine[None, None, None]) -> None:
    """Run all until one has ended, then cancel the others; what that one raised escapes."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def all_of(works: Iterable[Coroutine[None, None, None]]) -> None:
    """Run all to their ends; where one fails the others are cancelled and its error escapes."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
