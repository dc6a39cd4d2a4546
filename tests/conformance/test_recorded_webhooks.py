"""While webhooks respond as in `webhook_cases`, our server answers what a real kube-apiserver answered."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import golden_gaps
import golden_server
import pytest
import webhook_cases
import webhook_play
from differential import record_webhooks

from podscaler.testing import webhook_server

NAMES = [case.name for case in webhook_cases.CASES]
RECORDED: dict[str, Any] = json.loads(record_webhooks.RECORDED.read_text())
HEADERS = {"Authorization": f"Bearer {golden_server.ADMIN_TOKEN}"}


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers of our server to the cases that were selected."""
    selected = {item.callspec.params["name"] for item in request.session.items if "name" in item.fixturenames}
    folder = tmp_path_factory.mktemp("webhooks")
    with golden_server.serving(folder / "data") as port:
        return asyncio.run(_play(f"http://127.0.0.1:{port}", folder, selected))


async def _play(url: str, folder: Path, selected: set[str]) -> dict[str, Any]:
    cases = [case for case in webhook_cases.CASES if case.name in selected]
    async with aiohttp.ClientSession(headers=HEADERS) as session, webhook_server.serve_webhook(folder) as server:
        send = record_webhooks.sender(session, url)
        return {case.name: await webhook_play.play(case, send, server) for case in cases}


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in NAMES])
def test_answers_are_those_of_a_real_server(name: str, answers: dict[str, Any]) -> None:
    """Status, body and warnings of every request, and what the webhook is called for; a listed gap must differ."""
    assert (answers[name] == RECORDED[name]) == (name not in golden_gaps.WEBHOOK_GAPS), answers[name]


def test_gaps_are_cases() -> None:
    """The list of gaps names only cases that exist, and every case was recorded."""
    assert golden_gaps.WEBHOOK_GAPS.keys() <= set(NAMES) == RECORDED.keys()
