"""`podscaler timeline` on an API server: what objects and events show, and what watches add."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from api_server_world import CLOCK, ApiServerWorld, named
from click.testing import CliRunner, Result

from patience import WITHIN_S
from podscaler.base.clock import NANOSECONDS
from podscaler.cli.diagnosis import cluster_timeline
from podscaler.cli.explain.explain_request import ExplainRequest
from podscaler.cli.main import cli
from podscaler.kube.config import locate

HPAS = "horizontalpodautoscalers.autoscaling"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server with the autoscaler default/web over two pods."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await made.create_web(pods=2)
    yield made
    await made.close()


async def run(world: ApiServerWorld, *arguments: str) -> Result:
    """The command against the server."""
    words = ["timeline", *arguments, "--kubeconfig", str(world.folder / "kubeconfig")]
    return await asyncio.to_thread(CliRunner().invoke, cli, words)


async def add_event(world: ApiServerWorld, name: str, kind: str = "Deployment") -> None:
    """An Event about the object `web` of that kind, as of now."""
    now = world.hpa()["metadata"]["creationTimestamp"]
    event = named(name, type="Normal", reason=name.title(), message="text", firstTimestamp=now, lastTimestamp=now)
    about = {"kind": kind, "namespace": "default", "name": "web"}
    await world.opened.registry.create("events", event | {"involvedObject": about})


async def test_the_past(world: ApiServerWorld) -> None:
    """Creations and events, of the only autoscaler of the namespace."""
    await add_event(world, "scaled")
    await add_event(world, "other", kind="Service")
    result = await run(world, "-o", "json")
    data = json.loads(result.stdout)
    shown = [(each["kind"], each["subject"], each["text"]) for each in data["entries"] if each["kind"] != "write"]
    assert (result.exit_code, data["autoscaler"], data["notes"], shown) == (
        0,
        "default/web",
        [],
        [
            ("created", "Deployment/web", "created"),
            ("created", "HorizontalPodAutoscaler/web", "created"),
            ("event", "Deployment/web", "Normal Scaled: text"),
        ],
    )


async def test_text(world: ApiServerWorld) -> None:
    """The range, then a line for each entry; a target that is not there is said."""
    await world.opened.registry.delete("deployments.apps", "default", "web")
    lines = (await run(world, "web", "--since", "10m")).stdout.splitlines()
    assert lines[0].startswith("default/web, ")
    assert lines[-1] == 'Deployment web cannot be read: deployments.apps "web" not found'
    assert any(line.endswith("created   HorizontalPodAutoscaler/web created") for line in lines)


async def test_a_name_that_is_not_there(world: ApiServerWorld) -> None:
    """One sentence, exit status 2."""
    result = await run(world, "api")
    said = 'podscaler: no autoscaler "api" in the namespace default: there are web\n'
    assert (result.exit_code, result.stderr) == (2, said)


async def test_what_happens_from_now_on(world: ApiServerWorld) -> None:
    """New entries once each, until the autoscaler is deleted."""
    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    parts = cluster_timeline.timelines(config, ExplainRequest("web"), CLOCK, since_ns=3600 * NANOSECONDS, follow=True)
    seen: list[str] = []
    async with asyncio.timeout(WITHIN_S), aclosing(parts):
        await anext(parts)
        await add_event(world, "scaled")
        async for part in parts:
            seen += [each.text for each in part.entries]
            if seen[-1] == "Normal Scaled: text":
                await world.opened.registry.delete(HPAS, "default", "web")
    assert seen == ["Normal Scaled: text", "deleted"]
