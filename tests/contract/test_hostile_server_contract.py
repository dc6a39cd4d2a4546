"""A server that does everything wrong at times: each request gets its own answer or an error, and nothing leaks."""

import asyncio
import random
from collections import Counter

from patience import WITHIN_S
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.http_transport import HttpTransport
from podscaler.kube.transport.transport import Request, TransportError
from tcp_server import serving

WORKERS = 40
REQUESTS_EACH = 40
TIMEOUT_S = 2.0
"""Long enough that a machine that stands still for a moment does not turn answers into errors."""


def _good(path: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path)


class Hostile:
    """Closes, resets, stalls, lies about lengths, answers twice or with nonsense, by a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_open = True
        while is_open:
            head = await reader.readuntil(b"\r\n\r\n")
            is_open = await self._answer(head.split()[1], writer)

    async def _answer(self, path: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one request somehow; whether the connection goes on."""
        way, good = self._rng.randrange(20), _good(path)
        if way == 0:
            return False
        if way == 1:
            writer.transport.abort()
            return False
        if way == 2:
            await asyncio.sleep(2 * TIMEOUT_S)
        if way == 3:
            writer.write(good[: self._rng.randrange(len(good))])
            return False
        if way == 4:
            writer.write(b"SSH-2.0\r\n\r\n")
            return True
        if way == 5:
            writer.write(good + good)
            return True
        if way == 6:
            writer.write(good.replace(b"Content-Length", b"Connection: close\r\nContent-Length"))
            return False
        if way == 7:
            for byte in good:
                writer.write(bytes([byte]))
                await writer.drain()
            return True
        if way == 8:
            writer.write(good)
            await writer.drain()
            await asyncio.sleep(0.001)
            return False
        if way == 9:
            chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(path), path)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
            return True
        writer.write(good)
        return True


async def test_every_request_gets_its_own_answer_or_an_error() -> None:
    """No answer goes to another request, nobody waits for ever, and connections are given back."""
    seen: Counter[str] = Counter()

    async def work(transport: HttpTransport, worker: int) -> None:
        for number in range(REQUESTS_EACH):
            path = f"/{worker}/{number}"
            method = "GET" if number % 2 else "PUT"
            try:
                answer = await transport.request(Request(method, path, body=None, timeout_s=TIMEOUT_S))
            except TransportError as error:
                seen["error" if error.cause else "wrong"] += 1
            else:
                seen["own" if answer.body == path.encode() else "wrong"] += 1

    async with serving(Hostile(1).serve) as port:
        transport = await http_transport.connect(Config(f"http://127.0.0.1:{port}"), user_agent="test")
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*(work(transport, worker) for worker in range(WORKERS)))
        in_use = transport.connections_in_use
        await transport.close()
    assert (seen["wrong"], seen.total(), in_use) == (0, WORKERS * REQUESTS_EACH, 0)
    assert seen["own"] > seen["error"] > 0


async def test_who_gives_up_at_any_moment() -> None:
    """Requests that are cancelled at random moments leave the transport usable and no connection in use."""
    rng = random.Random(2)
    async with serving(Hostile(3).serve) as port:
        transport = await http_transport.connect(Config(f"http://127.0.0.1:{port}"), user_agent="test")
        tasks = []
        for number in range(300):
            tasks.append(asyncio.ensure_future(transport.request(Request("GET", f"/{number}", timeout_s=TIMEOUT_S))))
            await asyncio.sleep(rng.choice((0, 0, 0.001)))
            rng.choice(tasks).cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        in_use = transport.connections_in_use
        await transport.close()
    wrong = [
        number
        for number, result in enumerate(results)
        if not isinstance(result, TransportError | asyncio.CancelledError)
        and getattr(result, "body", b"") != f"/{number}".encode()
    ]
    assert (wrong, in_use) == ([], 0)
