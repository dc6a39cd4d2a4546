"""Sends the requests of a capture to our adapter, in this process and without a socket of the adapter."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
from yarl import URL

from podscaler.adapter import assembly
from podscaler.adapter.assembly import AdapterServers, AdapterSettings
from podscaler.adapter.config import config_file
from podscaler.adapter.prometheus.client import PrometheusClient
from podscaler.adapter.providers.object_values import Batching
from podscaler.adapter.server.request_info import RequestInfo
from podscaler.base.clock import SystemClock
from podscaler.kube.client.client import Client
from podscaler.kube.serving.serving_certificate import self_signed_context
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.transport import Request, Response, Transport
from podscaler.testing.clock import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch


DIRECT = AdapterSettings(tick_s=0.0, batching=Batching.NEVER, watches=False)
BATCHED = AdapterSettings(tick_s=60.0, batching=Batching.ALWAYS, watches=False)


class EverybodyMay:
    """Allows every request."""

    async def check(self, request: Any, info: RequestInfo) -> None:
        """None: allowed."""


def normalised(value: Any) -> Any:
    """A body without what differs in each run: instants, and the order of lists that have none."""
    if isinstance(value, dict):
        body = {key: normalised(each) for key, each in value.items()}
        for key in ("resources", "containers"):
            if isinstance(body.get(key), list):
                body[key] = sorted(body[key], key=lambda each: str(each["name"]))
        return body
    if isinstance(value, list):
        return [normalised(each) for each in value]
    return "<time>" if isinstance(value, str) and _INSTANT(value) else value


async def answers_of_ours(
    config: str, lister: Client, prometheus: str | Transport, paths: list[str], settings: AdapterSettings | None = None
) -> list[dict[str, Any]]:
    """The answers of our adapter; `prometheus` is its address or a transport."""
    clock = SystemClock()
    if isinstance(prometheus, str):
        prometheus = await http_transport.connect(Config(prometheus), user_agent="replay")
    database = PrometheusClient(prometheus, clock, timeout_s=10.0)
    servers = AdapterServers(database, lister, EverybodyMay())
    settings = settings or DIRECT
    adapter = assembly.new_adapter(config_file.parse(config, "sample.yaml"), settings, servers, clock)
    await adapter.relisting.update()
    address = await adapter.server.start("127.0.0.1", 0, await asyncio.to_thread(self_signed_context, ["localhost"]))
    found = []
    try:
        async with aiohttp.ClientSession(headers={"Accept": "application/json"}) as session:
            for path in paths:
                async with session.get(URL(f"https://{address}{path}", encoded=True), ssl=False) as response:
                    text = await response.text()
                    is_json = response.content_type == "application/json"
                    body = normalised(json.loads(text)) if is_json else text
                    found.append({"path": path, "status": response.status, "body": body})
    finally:
        await adapter.server.stop()
        await prometheus.close()
    return found


def recorded_kubernetes(capture: dict[str, Any]) -> Client:
    """A client of an API server with the responses of a capture."""
    return Client(_Recorded(capture["kubernetes"], lambda request: request.target), VirtualClock())


def recorded_prometheus(capture: dict[str, Any]) -> Transport:
    """A transport to a Prometheus with the responses of a capture, at whatever instant it is asked."""

    def key(request: Request) -> str:
        parameters = dict(parse_qsl(request.query))
        return f"{request.path} {parameters.get('query') or parameters.get('match[]')}"

    return _Recorded(capture["prometheus"], key)


class _Recorded(ScriptedTransport):
    """Responses by a key of the request; a request without one is a mistake of the test."""

    def __init__(self, kept: dict[str, Any], key: Callable[[Request], str]) -> None:
        super().__init__()
        self._kept = kept
        self._key = key

    async def request(self, request: Request) -> Response:
        """As in Transport."""
        found = self._kept[self._key(request)]
        return json_answer(found["body"], found["status"])
