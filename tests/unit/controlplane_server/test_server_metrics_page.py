"""What the API server says about itself at /metrics."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from server_under_test import VIEWER_TOKEN, Running, running_server

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with a ConfigMap."""
    async with running_server(tmp_path) as running:
        await running.create(MAPS, {"metadata": {"name": "one"}})
        yield running


async def _series(server: Running, name: str) -> list[str]:
    reply = await server.get("/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return [line for line in reply.body.splitlines() if line.startswith(name)]


async def test_requests_are_counted_by_what_they_want(server: Running) -> None:
    """Each verb, resource and code has a series; lists are not gets."""
    await server.get(f"{MAPS}/one")
    await server.get(f"{MAPS}/two")
    await server.get(MAPS)
    wanted = 'group="",resource="configmaps",subresource="",verb="{}",version="v1"'
    lines = await _series(server, "apiserver_request_total")
    for code, verb in ((200, "GET"), (404, "GET"), (200, "LIST"), (201, "POST")):
        labels = wanted.format(verb)
        assert f'apiserver_request_total{{code="{code}",{labels}}} 1.0' in lines


async def test_what_is_not_served_has_no_series_of_its_own(server: Running) -> None:
    """Clients cannot make as many series as they like."""
    for number in range(5):
        await server.get(f"/apis/none{number}/v1/things{number}")
        await server.get(f"/nothing{number}")
        await server.request("PATCH", f"{MAPS}/one/part{number}", data="{}")
    assert not [line for line in await _series(server, "apiserver_request_total") if "none" in line or "part" in line]


async def test_durations_and_objects(server: Running) -> None:
    """How long requests took, and how many objects of each kind there are."""
    lines = await _series(server, "apiserver_request_duration_seconds_count")
    durations = [line for line in lines if 'verb="POST"' in line]
    assert any(
        'resource="configmaps"' in line and 'verb="POST"' in line and line.endswith(" 1.0") for line in durations
    )
    assert 'apiserver_storage_objects{resource="configmaps"} 1.0' in await _series(server, "apiserver_storage_objects")


async def test_the_process(server: Running) -> None:
    """Memory and processor time of the process are there."""
    assert await _series(server, "process_resident_memory_bytes")


async def test_metrics_need_a_right(server: Running) -> None:
    """They tell what there is: not for everybody."""
    assert (await server.get("/metrics", headers={"Authorization": f"Bearer {VIEWER_TOKEN}"})).status == 403
