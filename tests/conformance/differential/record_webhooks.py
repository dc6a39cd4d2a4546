"""Records what a real kube-apiserver answers while webhooks respond as in `webhook_cases`.

    python tests/conformance/differential/record_webhooks.py [NAME...]

Run by hand, with the binaries of `make assets`, after cases were added.
"""

import asyncio
import json
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[3]))

import webhook_cases
import webhook_play
from benchmarks import cluster_plane

from podscaler.testing import webhook_server

RECORDED = Path(__file__).parents[1] / "recorded_webhooks.json"
MEDIA_TYPE = "application/json"


def sender(session: aiohttp.ClientSession, url: str) -> webhook_play.Send:
    """Sends requests; the media type of a body follows `#` in the path."""

    async def send(method: str, path: str, body: Any) -> tuple[int, Any, list[str]]:
        path, _, media_type = path.partition("#")
        headers = {"Content-Type": media_type or MEDIA_TYPE, "User-Agent": "tester"}
        data = None if body is None else json.dumps(body)
        async with session.request(method, url + path, data=data, headers=headers) as response:
            text = await response.text()
            return response.status, _parsed(text), list(response.headers.getall("Warning", []))

    return send


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def record(plane: cluster_plane.Plane, folder: Path, names: list[str]) -> dict[str, Any]:
    """The answers to all cases, by name."""
    certificate, key = (folder / f"bench-admin.{end}" for end in ("crt", "key"))
    context = ssl.create_default_context(cafile=str(plane.authority.path))
    context.load_cert_chain(certificate, key)
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        webhook_server.serve_webhook(folder) as server,
    ):
        send = sender(session, plane.url)
        cases = [case for case in webhook_cases.CASES if not names or case.name in names]
        return {case.name: await webhook_play.play(case, send, server) for case in cases}


def main() -> None:
    """Record the cases, those with the given names or all."""
    programs = cluster_plane.programs()
    assert programs is not None, "make assets"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plane = cluster_plane.Plane(folder, programs)
        try:
            plane.start()
            found = asyncio.run(record(plane, folder, sys.argv[1:]))
        finally:
            plane.stop()
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() and sys.argv[1:] else {}
    lines = [f"{json.dumps(name)}: {json.dumps(answers)}" for name, answers in {**kept, **found}.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
