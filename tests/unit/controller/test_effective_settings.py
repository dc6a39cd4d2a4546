"""The settings that a controller works with, found from outside."""

import asyncio
import logging
from typing import Any

import pytest
from msgspec.structs import replace

from podscaler import __version__
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.leaderelection.fence import FencedTransport
from podscaler.controller.options import effective_settings
from podscaler.controller.options.effective_settings import EffectiveSettings
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model import settings as core_settings
from podscaler.core.model.emulation import V1_37
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Response
from podscaler.testing.clock import VirtualClock
from podscaler.testing.cluster import FakeCluster
from podscaler.testing.transport import ScriptedTransport, json_answer

TOLERANT = {"horizontal-pod-autoscaler-tolerance": 0.3}
IN_MEMORY = ControllerSettings(history_namespace=None)
SETTINGS = ControllerSettings(downscale_stabilization_ns=15 * NANOSECONDS, sync_period_ns=2 * NANOSECONDS)
MAPS = "/api/v1/namespaces/kube-system/configmaps"
MAP = f"{MAPS}/podscaler-history"
PODS = "/api/v1/namespaces/kube-system/pods"
FORBIDDEN = json_answer({"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden"}, 403)
UNAVAILABLE = json_answer({"kind": "Status", "status": "Failure", "message": "later"}, 500)


async def published(cluster: FakeCluster, clock: VirtualClock, *processes: ControllerSettings) -> Client:
    """A client of a cluster in which controllers with these settings began to decide, one after the other."""
    client = Client(cluster, clock)
    for settings in processes:
        await effective_settings.publish(client, settings, clock)
    return client


async def test_what_was_published_is_found() -> None:
    """The settings of decisions come back as they were, with the version and the place that they came from."""
    found = await effective_settings.find_published(await published(FakeCluster(), VirtualClock(), SETTINGS))
    assert found is not None
    assert (found.decision, found.origin) == (
        SETTINGS.decision,
        f"podscaler {__version__} (ConfigMap kube-system/podscaler-history)",
    )
    assert found.flags["horizontal-pod-autoscaler-sync-period"] == "2s"


async def test_a_controller_that_keeps_nothing_publishes_nothing() -> None:
    """With histories in memory nothing is written."""
    cluster = FakeCluster()
    await published(cluster, VirtualClock(), IN_MEMORY)
    assert {request.method for request in cluster.requests} == {"GET"}


async def test_a_controller_that_keeps_nothing_removes_what_an_earlier_process_published() -> None:
    """Its settings are others; nothing else of the ConfigMap changes."""
    cluster, clock = FakeCluster(), VirtualClock()
    client = await published(cluster, clock, SETTINGS)
    cluster.config_maps["podscaler-history"]["data"]["aaaa"] = "a heartbeat"
    await effective_settings.publish(client, IN_MEMORY, clock)
    assert cluster.config_maps["podscaler-history"]["data"] == {"aaaa": "a heartbeat"}


@pytest.mark.parametrize("text", ['{"version":"1","manager":"another","emulate":"1.37","flags":{}}', "{"])
async def test_what_others_published_is_not_removed(text: str) -> None:
    """The settings of another installation, and what cannot be read, stay."""
    cluster, clock = FakeCluster(), VirtualClock()
    client = await published(cluster, clock, SETTINGS)
    cluster.config_maps["podscaler-history"]["data"]["settings"] = text
    await effective_settings.publish(client, IN_MEMORY, clock)
    assert cluster.config_maps["podscaler-history"]["data"] == {"settings": text}


async def test_what_was_published_is_removed_where_it_was_published() -> None:
    """`--history-namespace` names the place with histories in memory too."""
    transport, clock = ScriptedTransport(), VirtualClock()
    place = "/api/v1/namespaces/scaling/configmaps/podscaler-history"
    transport.on("GET", place, json_answer({"metadata": {"labels": {"podscaler.dev/history": "v1"}}}))
    settings = ControllerSettings(history_namespace=None, settings_namespace="scaling")
    await effective_settings.publish(Client(transport, clock), settings, clock)
    assert transport.asked() == [place]


@pytest.mark.parametrize(
    ("settings", "said"),
    [(SETTINGS, "the settings are not published"), (IN_MEMORY, "that an earlier process published may still be there")],
    ids=["published", "removed"],
)
async def test_a_missing_permission_is_said_once(
    settings: ControllerSettings, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is tried again, and the controller goes on."""
    caplog.set_level(logging.INFO)
    cluster = FakeCluster()
    cluster.fail(FORBIDDEN)
    await published(cluster, VirtualClock(), settings)
    assert (len(cluster.requests), caplog.text.count(said)) == (1, 1)


async def test_a_config_map_of_somebody_else_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """It is not changed, and nothing is tried again."""
    caplog.set_level(logging.INFO)
    cluster = FakeCluster()
    foreign = {"metadata": {"name": "podscaler-history"}, "data": {"a": "b"}}
    cluster.config_maps["podscaler-history"] = foreign
    await published(cluster, VirtualClock(), SETTINGS)
    assert (foreign["data"], caplog.text.count("the ConfigMap podscaler-history is not podscaler's")) == ({"a": "b"}, 1)


async def test_failures_are_tried_again_a_few_times() -> None:
    """A server that fails is asked five times in all, with growing waits."""
    cluster, clock = FakeCluster(), VirtualClock()
    cluster.fail(UNAVAILABLE)
    publishing = asyncio.ensure_future(published(cluster, clock, SETTINGS))
    attempts = []
    for span_s in (1, 1, 4, 8, 16):
        await clock.advance(span_s)
        attempts.append(len(cluster.requests))
    assert (attempts, publishing.done()) == ([1, 2, 3, 4, 5], True)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(json_answer({"metadata": {"labels": {"podscaler.dev/history": "v1"}}, "data": {}}), id="no entry"),
        pytest.param(
            json_answer({"metadata": {"labels": {"podscaler.dev/history": "v1"}}, "data": {"settings": "{"}}),
            id="no JSON",
        ),
        pytest.param(json_answer({"metadata": {}, "data": {"settings": "{}"}}), id="somebody else's ConfigMap"),
        pytest.param(FORBIDDEN, id="not allowed"),
    ],
)
async def test_settings_that_cannot_be_read_are_none(answer: Response) -> None:
    """Whoever explains assumes the defaults then, and says so."""
    transport = ScriptedTransport()
    transport.on("GET", MAP, answer)
    assert await effective_settings.find_published(Client(transport, VirtualClock())) is None


def pod(**container: Any) -> Response:
    """A list of one pod."""
    return json_answer({"items": [{"spec": {"containers": [container]}}]})


@pytest.mark.parametrize(
    ("answer", "tolerance"),
    [
        (pod(command=["kube-controller-manager", "--horizontal-pod-autoscaler-tolerance=0.3"]), 0.3),
        (pod(command=["sh"], args=["--horizontal-pod-autoscaler-tolerance", "0.2", "--v=2"]), 0.2),
        (pod(command=["kube-controller-manager", "--leader-elect=true"]), 0.1),
    ],
    ids=["as one word", "as two words", "not given"],
)
async def test_arguments_of_the_built_in_controller(answer: Response, tolerance: float) -> None:
    """The flags about autoscalers count, in both forms; what is not given has its default."""
    transport = ScriptedTransport()
    transport.on("GET", PODS, answer)
    found = await effective_settings.find_built_in(Client(transport, VirtualClock()))
    assert found is not None
    assert found.decision == core_settings.Settings(tolerance=tolerance)


@pytest.mark.parametrize("answer", [json_answer({"items": []}), FORBIDDEN, pod(command=["a", "--feature-gates=X"])])
async def test_a_built_in_controller_that_is_not_visible(answer: Response) -> None:
    """No pod, no permission, or flags that make no sense: nothing is known."""
    transport = ScriptedTransport()
    transport.on("GET", PODS, answer)
    assert await effective_settings.find_built_in(Client(transport, VirtualClock())) is None


async def test_a_lease_that_is_lost_ends_the_publication() -> None:
    """Whoever leads next publishes; nothing is tried again, and it is no bug."""
    cluster, clock = FakeCluster(), VirtualClock()
    fenced = FencedTransport(cluster, lambda: None)
    await effective_settings.publish(Client(fenced, clock), SETTINGS, clock)
    assert cluster.config_maps == {}


FOUND = EffectiveSettings(
    core_settings.from_flags({"feature-gates": "HPAScaleToZero=false,PodLevelResources=false", **TOLERANT}, "1.38"),
    {"feature-gates": "HPAScaleToZero=false,PodLevelResources=false", **TOLERANT},
    "somewhere",
    "podscaler",
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, FOUND.decision),
        (
            {"horizontal-pod-autoscaler-downscale-stabilization": "15s"},
            replace(FOUND.decision, downscale_stabilization_ns=15 * NANOSECONDS),
        ),
        ({"emulate": "1.37"}, replace(FOUND.decision, emulation=V1_37)),
        (
            {"feature-gates": "HPAScaleToZero=true"},
            replace(FOUND.decision, gates=core_settings.Gates(pod_level_resources=False)),
        ),
    ],
    ids=["no flag", "a flag", "the version", "a gate"],
)
def test_a_flag_replaces_itself_alone(given: dict[str, Any], expected: core_settings.Settings) -> None:
    """The other settings stay as they were found; of the gates, too, those that are not named."""
    assert FOUND.decision_with(given) == expected
