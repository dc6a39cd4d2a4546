"""Relays bytes between a client and one TCP connection to a port of a pod.

`pod_ports` and `spdy_ports`, which transport the client's bytes, call `relay` once for each connection.
`run_until_first`, which `pod_logs` uses too, and `run_all` are helpers for concurrent coroutines.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable

from podscaler.controlplane.registry.pod_connections import PodConnections, PodPortConnection, SessionFailure
from podscaler.controlplane.registry.registry import Object

Send = Callable[[bytes], Awaitable[None]]
"""Sends data to the client; waits while the client does not read."""


async def relay(
    connections: PodConnections, pod: Object, port: int, client_data: AsyncIterator[bytes], send: Send
) -> str:
    """Connect and relay until the pod closes its side; returns the kubelet's error message, empty if none.

    Args:
        connections: connects to pods.
        pod: the pod.
        port: the port number in the pod.
        client_data: the data of the client, until it closes its side.
        send: sends data of the pod to the client.

    Raises:
        ConnectionError: `send` raised it: the client has disconnected.
    """
    try:
        connection = await connections.connect(pod, port)
    except SessionFailure as failure:
        return _error_message(pod, port, f"failed to connect: {failure}")
    sending = asyncio.ensure_future(_send_to_pod(connection, client_data))
    try:
        return await _send_to_client(connection, pod, port, send)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await connection.close()


async def _send_to_pod(connection: PodPortConnection, client_data: AsyncIterator[bytes]) -> None:
    """Send the client's data to the pod; ends silently on errors, as then the pod closes its side too."""
    try:
        async for data in client_data:
            await connection.write(data)
        await connection.end_input()
    except OSError:
        return


async def _send_to_client(connection: PodPortConnection, pod: Object, port: int, send: Send) -> str:
    """Send the pod's data to the client until it ends; returns the error message, empty if there is none."""
    chunks = connection.received()
    while True:
        try:
            data = await anext(chunks, b"")
        except OSError as error:
            return _error_message(pod, port, f"read: {(error.strerror or str(error)).lower()}")
        if not data:
            return ""
        await send(data)


def _error_message(pod: Object, port: int, cause: str) -> str:
    """The kubelet's message for a connection that failed for a cause."""
    metadata = pod["metadata"]
    return f"error forwarding port {port} to pod {metadata['name']}, uid {metadata['uid']}: {cause}"


async def run_until_first(*coroutines: Coroutine[None, None, None]) -> None:
    """Run all until one ends, then cancel the others; an error of the first one escapes."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def run_all(coroutines: Iterable[Coroutine[None, None, None]]) -> None:
    """Run all until they end; if one fails the others are cancelled and its error escapes."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
