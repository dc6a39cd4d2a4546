"""`podscaler explain` on an API server: it looks as the controller does, writes nothing, says what it cannot know."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from api_server_world import CLOCK, SPEC, TEMPLATE, TOKEN, ApiServerWorld, eventually, named

from patience import WITHIN_S
from podscaler import __version__
from podscaler.base.errors import UsageError
from podscaler.cli.explain import explain_cluster
from podscaler.cli.explain.assumed_controller import AssumedController, NoHistory
from podscaler.cli.explain.explain_request import ExplainRequest, ExplainResult
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options import effective_settings
from podscaler.controller.options.effective_settings import BUILT_IN
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model.history import History, Recommendation
from podscaler.explain import what_if
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport
from podscaler.kube.transport import transport as transports

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
) -> ExplainResult:
    """What the command finds out."""
    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    request = ExplainRequest(name, assignments=what_if.parse(question) if question else ())
    controller = AssumedController(ControllerSettings(), history or Kept())
    return await explain_cluster.explain_one(config, request, controller, CLOCK)


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
        "default/web goes from 2 to 4 at its next sync: its metrics ask for 1, but "
        "a recommendation of 5 from 1 min ago still counts"
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
    assumption = (
        b"Assumes that test has default settings, as they are not visible: give the flags that it was started with."
    )
    sentence = b"default/web stays at 2: cpu is at 50 % of requests, target 50 %, which is within tolerance."
    assert (process.returncode, out.splitlines()[:2], err) == (0, [assumption, sentence], b"")


async def test_the_settings_of_our_controller_are_read(world: ApiServerWorld) -> None:
    """A controller without a stabilization window scales down at once, and the explanation says so without any flag."""
    await world.create_system_namespace()
    await world.start_controller("podscaler")
    await eventually(lambda: world.condition("AbleToScale") != "")
    await eventually(lambda: world.opened.registry.find("configmaps", "kube-system", "podscaler-history") is not None)
    world.tasks.pop().cancel()
    world.metrics.cpu = "100m"
    answer = await explained(world)
    assert answer.settings is not None
    assert (
        answer.settings.origin,
        answer.settings.decision.downscale_stabilization_ns,
        answer.settings.assumption,
    ) == (
        f"podscaler {__version__} (ConfigMap kube-system/podscaler-history)",
        0,
        "",
    )
    assert answer.explanation.summary.startswith("default/web goes from 2 to 1")


async def test_settings_of_another_installation_do_not_count(world: ApiServerWorld) -> None:
    """Where another field manager wrote the status last, what one published says nothing about it."""
    await world.create_system_namespace()
    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    client = Client(await http_transport.connect(config, user_agent="podscaler"), CLOCK)
    await effective_settings.publish(client, ControllerSettings(), CLOCK)
    await client.close()
    await written_by(world, "podscaler-21929f77")
    answer = await explained(world)
    assert answer.settings is not None
    assert (answer.settings.is_assumed, answer.settings.origin) == (True, "podscaler-21929f77 has default settings")


async def test_the_arguments_of_the_built_in_controller_are_read(world: ApiServerWorld) -> None:
    """Where kube-controller-manager wrote the status, the flags of its pod count."""
    await world.create_system_namespace()
    container = {"name": "c", "image": "i", "command": [BUILT_IN, "--horizontal-pod-autoscaler-tolerance=0.5"]}
    meta = {"name": "kcm", "namespace": "kube-system", "labels": {"component": BUILT_IN}}
    await world.opened.registry.create("pods", {"metadata": meta, "spec": {"containers": [container]}})
    await written_by(world, BUILT_IN)
    world.metrics.cpu = "700m"
    answer = await explained(world, history=NoHistory())
    assert answer.settings is not None
    assert (answer.settings.decision.tolerance, answer.settings.assumption) == (0.5, "")
    assert answer.explanation.summary.endswith("which is within tolerance.")


async def test_settings_that_are_not_visible_are_said_to_be_assumed(world: ApiServerWorld) -> None:
    """The built-in controller of a cluster that does not show its pod."""
    await world.create_system_namespace()
    await written_by(world, BUILT_IN)
    answer = await explained(world)
    assert answer.settings is not None
    assert answer.settings.assumption == (
        "Assumes that kube-controller-manager has default settings, as they are not visible: give the flags that it "
        "was started with."
    )


async def test_a_status_that_says_something_else_is_named(world: ApiServerWorld) -> None:
    """The metric works here, and the controller said that it did not: both are told."""
    failed = {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics"}
    hpa = world.hpa()
    hpa["status"] |= {"desiredReplicas": 2, "conditions": [failed | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    await world.opened.registry.update(HPAS, hpa, subresource="status")
    answer = await explained(world)
    assert answer.manager is not None
    assert answer.manager.differences == (
        "the status says ScalingActive False (FailedGetResourceMetric: no metrics), and what is computed here is True "
        "(ValidMetricFound)",
    )


async def test_a_status_that_says_the_same_is_not_mentioned(world: ApiServerWorld) -> None:
    """A controller at work comes to the same conclusion."""
    await world.start_controller()
    await eventually(lambda: world.condition("ScalingActive") == "ValidMetricFound")
    answer = await explained(world, history=NoHistory())
    assert answer.manager is not None
    assert answer.manager.differences == ()


async def test_all_autoscalers_in_one_line_each(world: ApiServerWorld) -> None:
    """One that cannot be explained does not keep the others from it."""
    await world.opened.registry.create("namespaces", {"metadata": {"name": "api"}})
    lost = {"metadata": {"name": "lost", "namespace": "api"}, "apiVersion": "autoscaling/v2", "spec": SPEC}
    await world.opened.registry.create(HPAS, lost)
    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    found = await explain_cluster.summarize_all(
        config, ExplainRequest(), AssumedController(ControllerSettings(), NoHistory()), CLOCK
    )
    assumed = (
        "Assumes that its controller has default settings, as they are not visible: give the flags that it was started "
        "with."
    )
    assert found == [
        (
            "api/lost",
            'api/lost can do nothing: the scale of its target cannot be read: deployments.apps "web" not found.',
            assumed,
        ),
        (
            "default/web",
            "default/web stays at 2: cpu is at 50 % of requests, target 50 %, which is within tolerance.",
            assumed,
        ),
    ]


async def requests_of_all(world: ApiServerWorld, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the explanation of all autoscalers asks for."""
    asked: list[str] = []
    request = http_transport.HttpTransport.request

    async def noted(transport: http_transport.HttpTransport, sent: transports.Request) -> transports.Response:
        asked.append(sent.path)
        return await request(transport, sent)

    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    with monkeypatch.context() as patched:
        patched.setattr(http_transport.HttpTransport, "request", noted)
        await explain_cluster.summarize_all(
            config, ExplainRequest(), AssumedController(ControllerSettings(), NoHistory()), CLOCK
        )
    return asked


async def add_autoscalers(world: ApiServerWorld, numbers: range) -> None:
    """Autoscalers of the namespace, each with a deployment of its own."""
    for number in numbers:
        name = f"web{number}"
        template = TEMPLATE | {"metadata": {"labels": {"app": name}}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
        await world.opened.registry.create("deployments.apps", named(name, spec=spec))
        target = SPEC["scaleTargetRef"] | {"name": name}
        hpa = named(name, spec=SPEC | {"scaleTargetRef": target}) | {"apiVersion": "autoscaling/v2"}
        await world.opened.registry.create(HPAS, hpa)


async def test_all_autoscalers_cost_requests_in_proportion(
    world: ApiServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of a namespace's scales is read once for its neighbours and once for itself, its pods once in all."""
    await add_autoscalers(world, range(1, 5))
    five = await requests_of_all(world, monkeypatch)
    await add_autoscalers(world, range(5, 10))
    ten = await requests_of_all(world, monkeypatch)

    def counted(asked: list[str]) -> dict[str, int]:
        return {end: sum(path.endswith(end) for path in asked) for end in ("/scale", "/v1/namespaces/default/pods")}

    assert [counted(five), counted(ten)] == [
        {"/scale": 10, "/v1/namespaces/default/pods": 1},
        {"/scale": 20, "/v1/namespaces/default/pods": 1},
    ]


async def test_all_autoscalers_pass_no_observer(world: ApiServerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many namespaces there are, requests go to the transport as it is: there is no controller."""
    for number in range(3):
        await world.opened.registry.create("namespaces", {"metadata": {"name": f"n{number}"}})
        hpa = {"metadata": {"name": "web", "namespace": f"n{number}"}, "apiVersion": "autoscaling/v2", "spec": SPEC}
        await world.opened.registry.create(HPAS, hpa)
    wrapped: list[object] = []
    wrap_transport = Client.wrap_transport

    def noted(client: Client, around: Callable[[transports.Transport], transports.Transport]) -> None:
        wrapped.append(around)
        wrap_transport(client, around)

    monkeypatch.setattr(Client, "wrap_transport", noted)
    await requests_of_all(world, monkeypatch)
    assert wrapped == []


async def test_credentials_that_are_not_accepted(world: ApiServerWorld) -> None:
    """One sentence names the server, where the credentials come from, and what may be wrong with them."""
    kubeconfig = world.folder / "kubeconfig"
    text = await asyncio.to_thread(kubeconfig.read_text)
    await asyncio.to_thread(kubeconfig.write_text, text.replace(TOKEN, "another"))
    with pytest.raises(UsageError) as caught:
        await explained(world)
    assert str(caught.value) == (
        f"the API server https://127.0.0.1:{world.port} does not accept the credentials of "
        f'context "podscaler" of {kubeconfig}: Unauthorized; '
        "they may have expired, or belong to another cluster"
    )


async def written_by(world: ApiServerWorld, manager: str) -> None:
    """Have that field manager write the status of the autoscaler."""
    config = await asyncio.to_thread(locate.find_config, str(world.folder / "kubeconfig"))
    client = Client(await http_transport.connect(config, user_agent=manager), CLOCK)
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web/status"
    body = json.dumps(world.hpa() | {"apiVersion": "autoscaling/v2", "status": {"desiredReplicas": 2}}).encode()
    try:
        await client.put(path, body, subject="horizontalpodautoscalers")
    finally:
        await client.close()
