"""`podscaler explain` on an API server: it looks as the controller does, writes nothing, says what it cannot know."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from api_server_world import CLOCK, SPEC, TEMPLATE, ApiServerWorld, eventually, named

from patience import WITHIN_S
from podscaler.cli import explain_cluster
from podscaler.cli.explain_cluster import Controller, NoHistory
from podscaler.cli.explain_request import Answer, Request
from podscaler.controller.following import Autoscaler
from podscaler.controller.settings import Settings
from podscaler.core import what_if
from podscaler.core.history import History, Recommendation
from podscaler.errors import UsageError
from podscaler.kube import locate
from podscaler.kube.client import Client

MINUTE = 60_000_000_000
HPAS = "horizontalpodautoscalers.autoscaling"


class Kept:
    """A history that the controller keeps: five replicas were recommended a minute ago."""

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """The history."""
        del client, autoscaler
        return History(recommendations=(Recommendation(5, CLOCK.now_ns() - MINUTE),))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server with the autoscaler default/web over two pods, without a controller."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await made.create_web(pods=2)
    yield made
    await made.close()


async def explained(
    world: ApiServerWorld, question: str = "", *, name: str | None = "web", history: NoHistory | Kept | None = None
) -> Answer:
    """What the command finds out."""
    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    request = Request(name, question=what_if.parse(question) if question else ())
    controller = Controller(Settings(), history or Kept())
    return await explain_cluster.answer(config, request, controller, CLOCK)


async def test_a_scale_up(world: ApiServerWorld) -> None:
    """What the controller will do at its next sync; nothing is written."""
    world.metrics.cpu = "900m"
    before = world.hpa()
    answer = await explained(world)
    assert (
        answer.explanation.summary
        == "default/web goes from 2 to 4 at its next sync: cpu is at 90 % of requests, target 50 %."
    )
    assert (world.replicas(), world.hpa()) == (2, before)


async def test_kept_history_holds_a_scale_down(world: ApiServerWorld) -> None:
    """Recommendations that the controller keeps are looked at, and tell until when."""
    world.metrics.cpu = "100m"
    answer = await explained(world, name=None)
    assert answer.explanation.summary.startswith(
        "default/web wants 1, goes from 2 to 4 at its next sync: a recommendation of 5 from 1 min ago still counts"
    )


async def test_unknown_history_is_said(world: ApiServerWorld) -> None:
    """Without a history nothing is said about windows but the controller's own last word."""
    world.metrics.cpu = "100m"
    hpa = world.hpa()
    said = {"type": "AbleToScale", "status": "True", "reason": "ScaleDownStabilized", "message": "held"}
    hpa["status"]["conditions"] = [said | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]
    await world.opened.registry.update(HPAS, hpa, subresource="status")
    answer = await explained(world, history=NoHistory())
    assert answer.explanation.summary == (
        "default/web has 2, and its metrics ask for 1; the controller's last word was ScaleDownStabilized (held); how "
        "long something holds it back is not known, because its history is not."
    )
    assert answer.explanation.next_change is None


async def test_neighbours_are_asked(world: ApiServerWorld) -> None:
    """Another autoscaler over the same pods is found, though no controller remembers its selector here."""
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    await world.opened.registry.create("deployments.apps", named("other", spec=spec))
    target = SPEC["scaleTargetRef"] | {"name": "other"}
    rival = named("rival", spec=SPEC | {"scaleTargetRef": target}) | {"apiVersion": "autoscaling/v2"}
    await world.opened.registry.create(HPAS, rival)
    answer = await explained(world)
    assert answer.explanation.summary == (
        "default/web stays at 2: default/rival and default/web scale the same pods (app=web), and none of them does so "
        "until that ends."
    )


async def test_what_if(world: ApiServerWorld) -> None:
    """The same look, decided again; also where only the other spec looks at metrics."""
    world.metrics.cpu = "900m"
    answer = await explained(world, "metrics[0].target=90%")
    assert answer.comparison is not None
    assert answer.comparison.summary == (
        "With metrics[0].target=90% default/web wants 2 instead of 4, but goes from 2 to 4 either way."
    )
    hpa = world.hpa()
    hpa["spec"]["minReplicas"] = 3
    await world.opened.registry.update(HPAS, hpa)
    answer = await explained(world, "minReplicas=1")
    assert answer.comparison is not None
    assert answer.comparison.summary == "With minReplicas=1 default/web goes from 2 to 4 instead of going to 3."


async def test_names_that_are_not_there(world: ApiServerWorld) -> None:
    """One sentence, with the names that there are."""
    with pytest.raises(UsageError) as caught:
        await explained(world, name="api")
    assert str(caught.value) == 'no autoscaler "api" in the namespace default: there are web'


async def test_a_server_that_is_gone(world: ApiServerWorld) -> None:
    """One sentence, with the server and where its address came from."""
    await world.stop_server()
    with pytest.raises(UsageError, match=r"^cannot reach the API server https://127.0.0.1:\d+ \(.*kubeconfig.*\): "):
        await explained(world)


async def test_the_command(world: ApiServerWorld) -> None:
    """The whole program, with a controller at work beside it: the sentence on standard output, exit status 0."""
    world.metrics.cpu = "500m"
    await world.start_controller()
    await eventually(lambda: world.condition("AbleToScale") == "ReadyForNewScale")
    arguments = ["-m", "podscaler", "explain", "web", "--kubeconfig", str(world.folder / "kubeconfig")]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), WITHIN_S)
    sentence = b"default/web stays at 2: cpu is at 50 % of requests, target 50 %, which is within tolerance."
    assert (process.returncode, out.splitlines()[0], err) == (0, sentence, b"")
