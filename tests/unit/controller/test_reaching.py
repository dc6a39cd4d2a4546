"""Waiting for the API server at the start: what heals, and one sentence for what cannot."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from podscaler.base.errors import UsageError
from podscaler.controller.server import api_server_wait
from podscaler.kube.client.client import Client
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import TokenFile, bearer
from podscaler.kube.transport.transport import Response
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

SERVER = "the API server https://10.0.0.1:443"
ORIGIN = 'context "main" of F'
CONFIG = Config("https://10.0.0.1:443", credentials=bearer("t"), origin=ORIGIN)
REFUSED = TransportFailure("dial tcp 10.0.0.1:443: connect: connection refused")


class World:
    """A server that answers by a script."""

    def __init__(self, *answers: Any) -> None:
        self.clock = VirtualClock()
        self.transport = ScriptedTransport()
        self.transport.on("GET", api_server_wait.AUTOSCALERS, *answers)

    async def wait(self, config: Config, span_s: float) -> bool:
        """Whether the wait is over after `span_s`. Raises what it raised."""
        client = Client(self.transport, self.clock)
        task = asyncio.ensure_future(api_server_wait.wait_for_server(client, config, self.clock))
        await self.clock.advance(span_s)
        if task.done():
            task.result()
            return True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return False


@pytest.mark.parametrize("answer", [json_answer({"items": []}), Response(403, {}, b"no")], ids=["allowed", "forbidden"])
async def test_a_server_that_answers(answer: Response) -> None:
    """A server that knows us will do: what it forbids may be granted later."""
    assert await World(answer).wait(CONFIG, 0)


@pytest.mark.parametrize(
    ("answer", "config"),
    [
        (REFUSED, CONFIG),
        (TransportFailure("dial tcp: lookup h: no such host"), CONFIG),
        (Response(503, {}, b""), CONFIG),
        (Response(401, {}, b""), Config(CONFIG.server, credentials=TokenFile(Path("/none"), VirtualClock()))),
    ],
    ids=["away", "unknown host", "busy", "a token that others renew"],
)
async def test_what_heals(answer: Any, config: Config, caplog: pytest.LogCaptureFixture) -> None:
    """What may heal is said once and waited for."""
    world = World(answer, answer, answer, json_answer({"items": []}))
    waits = await World(answer).wait(config, 100)
    caplog.clear()
    heals = await world.wait(config, 10)
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert (waits, heals, len(warnings)) == (False, True, 1)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            TransportFailure("tls: failed to verify certificate: x509: certificate signed by unknown authority"),
            f"cannot reach the API server https://10.0.0.1:443 ({ORIGIN}): "
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ),
        (
            Response(401, {}, b""),
            f"{SERVER} does not accept the credentials of {ORIGIN} (a bearer token): the server has asked for the "
            "client to provide credentials (get horizontalpodautoscalers.autoscaling)",
        ),
        (
            Response(404, {}, b""),
            f"{SERVER} ({ORIGIN}) does not serve autoscaling/v2, which needs Kubernetes 1.23 or newer",
        ),
    ],
    ids=["not trusted", "a token that never changes", "too old"],
)
async def test_what_cannot_heal(answer: Any, sentence: str) -> None:
    """What failed, where, and what to change."""
    with pytest.raises(UsageError) as caught:
        await World(answer).wait(CONFIG, 0)
    assert str(caught.value) == sentence
