"""`podscaler explain` about PodAutoscalers, and who looks after an autoscaler, on an API server."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_server_world import CLOCK, SPEC, ApiServerWorld, named

from patience import WITHIN_S
from podscaler.api.machinery import instants
from podscaler.base.errors import StatusError, UsageError
from podscaler.cli.explain import explain_cluster, explain_request
from podscaler.cli.explain.assumed_controller import AssumedController, NoHistory, StoredHistory
from podscaler.cli.explain.explain_request import ExplainRequest, ExplainResult
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import HistoryRecord
from podscaler.controller.informers import handover
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options.autoscaler_kinds import HPA, POD_AUTOSCALER
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model.history import History, Recommendation
from podscaler.explain import what_if
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate

HPAS = "horizontalpodautoscalers.autoscaling"
PAS = "podautoscalers.podscaler.dev"
OURS = {"apiVersion": "podscaler.dev/v1alpha1", "kind": "PodAutoscaler"}
LEASE = {"holderIdentity": "pod-a", "leaseDurationSeconds": 15}


class Kept:
    """A history that the controller keeps: two replicas were recommended a minute ago."""

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """The history."""
        del client, autoscaler
        return History(recommendations=(Recommendation(2, CLOCK.now_ns() - 60_000_000_000),))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server with two pods of the Deployment web, and a PodAutoscaler for it in place of the usual one."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await made.create_web(pods=2)
    await made.opened.registry.delete(HPAS, "default", "web")
    await made.define_pod_autoscalers()
    await made.opened.registry.create(PAS, named("web", spec=SPEC) | OURS)
    made.metrics.cpu = "900m"
    yield made
    await made.close()


async def explained(world: ApiServerWorld, name: str = "web", question: str = "", **settings: Any) -> ExplainResult:
    """What the command finds out."""
    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    found = explain_request.parse_name(name, None)
    request = ExplainRequest(found.name, kind=found.kind, assignments=what_if.parse(question) if question else ())
    history = settings.pop("history", NoHistory())
    return await explain_cluster.explain_one(
        config, request, AssumedController(ControllerSettings(**settings), history), CLOCK
    )


async def create_hpa(world: ApiServerWorld, name: str = "web") -> dict[str, Any]:
    """A HorizontalPodAutoscaler of the same Deployment."""
    return await world.opened.registry.create(HPAS, named(name, spec=SPEC) | {"apiVersion": "autoscaling/v2"})


@pytest.mark.parametrize("name", ["web", "podautoscaler/web", "pa/web"])
async def test_a_pod_autoscaler(world: ApiServerWorld, name: str) -> None:
    """What its controller will do at its next sync."""
    answer = await explained(world, name, history=Kept())
    assert answer.explanation.summary == (
        "default/podautoscaler/web goes from 2 to 4 at its next sync: cpu is at 90 % of requests, target 50 %."
    )


async def test_a_what_if(world: ApiServerWorld) -> None:
    """The same look, decided again, under the same name."""
    answer = await explained(world, "pa/web", "metrics[0].target=90%")
    assert answer.comparison is not None
    assert answer.comparison.explanation.autoscaler == "default/podautoscaler/web"


async def test_a_horizontal_pod_autoscaler_of_the_same_target(world: ApiServerWorld) -> None:
    """Its controller stops; the controller of HorizontalPodAutoscalers knows nothing of PodAutoscalers."""
    await create_hpa(world, "rival")
    summary = (await explained(world, "pa/web")).explanation.summary
    assert summary.startswith(
        "default/podautoscaler/web stays at 2: default/podautoscaler/web and default/rival scale "
    )
    rival = await explained(world, "rival", history=Kept())
    assert rival.explanation.summary.startswith("default/rival goes from 2 to 4 at its next sync: ")


async def test_a_controller_of_both_kinds(world: ApiServerWorld) -> None:
    """It sees all of them as neighbours."""
    await create_hpa(world, "rival")
    answer = await explained(world, "rival", kinds=(HPA, POD_AUTOSCALER))
    assert "default/podautoscaler/web and default/rival scale the same pods" in answer.explanation.summary


async def test_a_name_that_both_kinds_have(world: ApiServerWorld) -> None:
    """One sentence that says how to name either."""
    await create_hpa(world)
    with pytest.raises(UsageError) as caught:
        await explained(world)
    assert str(caught.value) == ('the namespace default has 2 autoscalers "web", name one: hpa/web, podautoscaler/web')
    assert (await explained(world, "hpa/web")).explanation.autoscaler == "default/web"


async def test_names_that_are_not_there(world: ApiServerWorld) -> None:
    """One sentence, with what there is of the kind."""
    with pytest.raises(UsageError) as caught:
        await explained(world, "hpa/web")
    assert str(caught.value) == 'no autoscaler "hpa/web" in the namespace default: there are none'
    with pytest.raises(UsageError) as caught:
        await explained(world, "api")
    assert str(caught.value) == 'no autoscaler "api" in the namespace default: there are podautoscaler/web'


async def test_one_that_waits_for_its_turn(world: ApiServerWorld) -> None:
    """While it is handed over, nothing is done about it, and the sentence begins with that."""
    hpa = await create_hpa(world)
    meta = world.opened.registry.find(PAS, "default", "web")
    origin = f"hpa/web/{hpa['metadata']['uid']}"
    meta["metadata"]["annotations"] = {handover.MIGRATED_FROM: origin}
    await world.opened.registry.update(PAS, meta)
    answer = await explained(world, "pa/web")
    said = f"waits until {origin} is gone"
    assert answer.explanation.summary.startswith(f"default/podautoscaler/web is left alone for now ({said}); else: ")
    assert answer.manager is not None
    assert answer.manager.waiting_reason == said


async def test_a_history_that_was_handed_over(world: ApiServerWorld) -> None:
    """What a migration has carried over counts, as for the controller."""
    world.metrics.cpu = "100m"
    now_ns = CLOCK.now_ns()
    past = History(recommendations=(Recommendation(3, now_ns - 60_000_000_000),))
    found = world.opened.registry.find(PAS, "default", "web")
    record = history_record.encode(HistoryRecord("u", "migrate", now_ns, past))
    found["metadata"]["annotations"] = {handover.HISTORY: record}
    await world.opened.registry.update(PAS, found)
    answer = await explained(world, history=StoredHistory("kube-system", CLOCK))
    assert "a recommendation of 3 from 1 min ago" in answer.explanation.summary


async def test_who_looks_after_it(world: ApiServerWorld) -> None:
    """The program tells who wrote the status last, and who holds the Lease."""
    await world.create_system_namespace()
    found = world.opened.registry.find(PAS, "default", "web")
    status = {"desiredReplicas": 2, "conditions": [], "currentMetrics": None}
    await world.opened.registry.update(PAS, found | {"status": status}, subresource="status")
    labels = {"podscaler.dev/election": "podscaler-controller"}
    meta = {"name": "podscaler-controller", "namespace": "kube-system", "labels": labels}
    spec = LEASE | {"renewTime": f"{instants.text(CLOCK.now_ns())[:-1]}.000000Z"}
    await world.opened.registry.create("leases.coordination.k8s.io", {"metadata": meta, "spec": spec})
    command = [sys.executable, "-m", "podscaler", "explain", "pa/web", "-o", "json"]
    process = await asyncio.create_subprocess_exec(
        *command, "--kubeconfig", str(world.folder / "kubeconfig"), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
    told = json.loads(output)["lookedAfter"]
    assert (process.returncode, told["lease"]["holder"], told["lease"]["isHeld"]) == (0, "pod-a", True)


async def test_what_may_not_be_read(
    world: ApiServerWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Leases tell nothing then; a kind that is not the one that is meant is done without, and that is said."""
    send = Client.get

    async def refusing(client: Client, path: str, **rest: Any) -> bytes:
        if path.endswith(("/leases", "/horizontalpodautoscalers")):
            raise StatusError(f"{path} is forbidden", code=403, reason="Forbidden")
        return await send(client, path, **rest)

    monkeypatch.setattr(Client, "get", refusing)
    answer = await explained(world, "pa/web")
    assert (answer.explanation.autoscaler, answer.manager and answer.manager.section) == (
        "default/podautoscaler/web",
        None,
    )
    hpas = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    assert caplog.messages == [f"horizontalpodautoscalers are left out: {hpas} is forbidden"]
    with pytest.raises(StatusError, match="forbidden"):
        await explained(world)


async def test_a_server_without_them(tmp_path: Path) -> None:
    """Who asks for a PodAutoscaler is told how to define them; who does not, never notices."""
    world = ApiServerWorld(tmp_path)
    await world.start_server()
    try:
        await world.create_web()
        assert (await explained(world)).explanation.autoscaler == "default/web"
        with pytest.raises(UsageError, match=r"podscaler crd \\| kubectl apply"):
            await explained(world, "pa/web")
    finally:
        await world.close()
