"""No source shows a credential: not in its query, a failure, a status, a log line or the text of an object."""

import asyncio
import base64
from typing import Any

import pytest

from podscaler.kube.client.client import Client
from podscaler.sources import source_types, status
from podscaler.sources.open_sources import OpenSources, ReadResult
from podscaler.testing import VirtualClock
from podscaler.testing.sources import metric_source
from podscaler.testing.transport import ScriptedTransport, json_answer
from tcp_server import serving

SENTINEL = "sen/tin el@1%"
FORMS = (SENTINEL, "sen%2Ftin", "sen/tin", "tin%20el", base64.b64encode(SENTINEL.encode()).decode())
SYSTEMS: dict[str, dict[str, Any]] = {
    "prometheus": {"url": "http://{}", "query": "up"},
    "redis": {"address": "{}", "list": "jobs"},
    "postgresql": {"host": "{host}", "port": 0, "database": "shop", "query": "SELECT 1"},
    "rabbitmq": {"host": "{host}", "port": 0, "queue": "mails"},
    "nats": {"address": "{}", "stream": "ORDERS"},
    "kafka": {"bootstrapServers": ["{}"], "consumerGroup": "workers", "topic": "orders"},
    "http": {"url": "http://{}"},
}


async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond to anything with a line, and hang up."""
    writer.write(b"-ERR no such thing\r\n")


def filled(settings: dict[str, Any], host: str, port: int) -> dict[str, Any]:
    """The settings with that address."""
    places = {"{}": f"{host}:{port}", "{host}": host, "http://{}": f"http://{host}:{port}"}
    found = {name: places.get(value, value) if isinstance(value, str) else value for name, value in settings.items()}
    if "port" in found:
        found["port"] = port
    if "bootstrapServers" in found:
        found["bootstrapServers"] = [f"{host}:{port}"]
    return found


async def read(name: str, port: int, credential: str) -> ReadResult:
    """A read of that system with the sentinel as a credential."""
    transport = ScriptedTransport()
    secret = {
        "metadata": {"labels": {"podscaler.dev/metric-source": "true"}},
        "data": {"key": base64.b64encode(SENTINEL.encode()).decode()},
    }
    transport.on("GET", "/api/v1/namespaces/shop/secrets/login", json_answer(secret))
    clock = VirtualClock()
    sources = OpenSources(Client(transport, clock), clock)
    reference = {"name": credential, "secretKeyRef": {"name": "login", "key": "key"}}
    source = metric_source(credentials=[reference], **{name: filled(SYSTEMS[name], "127.0.0.1", port)})
    result = await sources.read(source)
    await sources.close()
    return result


@pytest.mark.parametrize("credential", ["password", "token"])
@pytest.mark.parametrize("is_up", [True, False], ids=["rude", "down"])
@pytest.mark.parametrize("name", SYSTEMS)
async def test_no_credential_is_shown(
    name: str, credential: str, *, is_up: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the client library says about a server that fails."""
    caplog.set_level(0)
    async with serving(refuse) as port:
        result = await read(name, port, credential) if is_up else None
    if result is None:
        result = await read(name, port, credential)
    written = status.status_of(metric_source(), result, old_status={})
    shown = f"{result!r} {result.error} {written} {caplog.text}"
    assert result.error is not None
    assert [form for form in FORMS if form in shown] == []


def test_all_systems_with_credentials_are_covered() -> None:
    """A new system gets a line in the table."""
    assert {*SYSTEMS, "file", "cron"} == set(source_types.BUILT_IN)
