"""How large a request may be."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from server_under_test import CONFIG_MAPS, Running, running_server

from podscaler.base.http_server import LINE_MAX_BYTES
from podscaler.controlplane.apiserver.http import request_bodies

BODY_MAX_BYTES = request_bodies.BODY_MAX_BYTES


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A running server."""
    async with running_server(tmp_path) as running:
        yield running


@pytest.mark.parametrize("is_path", [pytest.param(True, id="a path"), pytest.param(False, id="a header")])
async def test_too_long_a_line(server: Running, is_path: bool) -> None:
    """A path or a header beyond 64 KiB is a 431, and the next request is served."""
    long = "x" * (LINE_MAX_BYTES + 1)
    path = f"/{long}" if is_path else "/version"
    reply = await server.get(path, headers={} if is_path else {"X-Long": long})
    assert (reply.status, reply.body) == (431, "431 Request Header Fields Too Large")
    assert (await server.get("/version")).status == 200


@pytest.mark.parametrize(
    ("size_bytes", "status"),
    [
        pytest.param(BODY_MAX_BYTES, 400, id="as large as may be: read, and no JSON"),
        pytest.param(BODY_MAX_BYTES + 1, 413, id="one byte more"),
    ],
)
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_bodies(server: Running, size_bytes: int, status: int, is_chunked: bool) -> None:
    """A body has 3 MiB at most, whether it says its length or not."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * size_bytes

    data = chunks() if is_chunked else io.BytesIO(b"x" * size_bytes)
    reply = await server.request("POST", CONFIG_MAPS, data=data, headers={"Content-Type": "application/json"})
    assert reply.status == status
    if status == 413:
        assert reply.body["message"] == f"Request entity too large: limit is {BODY_MAX_BYTES}"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param("application/json", '{"a":' * 5000 + "1" + "}" * 5000, id="JSON"),
        pytest.param("application/yaml", "[" * 5000 + "]" * 5000, id="YAML"),
    ],
)
async def test_depth(server: Running, content_type: str, body: str) -> None:
    """A body that is nested too deeply is a 400, not the end of the server."""
    reply = await server.request("POST", CONFIG_MAPS, data=body, headers={"Content-Type": content_type})
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert (await server.get("/version")).status == 200
