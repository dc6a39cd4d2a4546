"""Requests that once made the server fail: each has its answer now."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from server_under_test import Running, running_server

JSON = "application/json"
APPS = "/apis/apps/v1/namespaces/default"
Refused = tuple[int, str]
POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with a controller revision."""
    async with running_server(tmp_path / "data") as running:
        await running.create(f"{APPS}/controllerrevisions", {"metadata": {"name": "a"}, "revision": 1, "data": {}})
        yield running


@pytest.mark.parametrize(
    ("method", "path", "content_type", "body", "refused"),
    [
        pytest.param(
            "POST",
            "/apis/batch/v1/namespaces/default/jobs",
            JSON,
            json.dumps({"metadata": {}, "spec": {"template": {"spec": POD}}}),
            (422, "metadata.name: Required value: name or generateName is required"),
            id="a Job without a name",
        ),
        pytest.param(
            "PATCH",
            f"{APPS}/controllerrevisions/a",
            "application/json-patch+json",
            '{"kind": "a", "kind": "b"}',
            (400, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
            id="an object with a repeated key as a JSON patch",
        ),
        pytest.param(
            "PATCH",
            f"{APPS}/controllerrevisions/a",
            "application/json-patch+json",
            '[{"op": "replace", "path": "/data", "value": 1e400}]',
            (422, "json: cannot unmarshal number 1e400 into Go value of type float64"),
            id="a number beyond float64 in a JSON patch",
        ),
        pytest.param(
            "PATCH",
            f"{APPS}/controllerrevisions/a?fieldManager=a",
            "application/apply-patch+yaml",
            '{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"}, "revision": 1e400}',
            (500, ".revision: expected numeric (int or float), got string"),
            id="a number beyond float64 in a configuration",
        ),
        pytest.param(
            "POST",
            "/api/v2/namespaces/default/bindings",
            JSON,
            "{}",
            (404, "the server could not find the requested resource"),
            id="a Binding in a version that is not served",
        ),
    ],
)
async def test_answer(server: Running, method: str, path: str, content_type: str, body: str, refused: Refused) -> None:
    """It is an API error that says why."""
    reply = await server.request(method, path, headers={"Content-Type": content_type}, data=body)
    assert (reply.status, refused[1] in reply.body["message"]) == (refused[0], True), reply.body["message"]


async def test_document_for_people_who_take_gzip(server: Running) -> None:
    """`curl --compressed` gets an OpenAPI document as it is packed already: it is not indented."""
    headers = {"User-Agent": "curl/8", "Accept-Encoding": "gzip"}
    async with server.client.get(f"{server.url}/openapi/v3/apis/apps/v1", headers=headers) as answer:
        assert (answer.status, answer.headers["Content-Encoding"]) == (200, "gzip")
        assert "openapi" in await answer.json()
