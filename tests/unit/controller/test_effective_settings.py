"""The settings that a controller works with, found from outside."""

import asyncio
import logging
from typing import Any

import pytest

from podscaler import __version__
from podscaler.clock import NANOSECONDS
from podscaler.controller import effective_settings
from podscaler.controller.leading.fence import FencedTransport
from podscaler.controller.settings import Settings
from podscaler.core import settings as core_settings
from podscaler.kube.client import Client
from podscaler.kube.transport import Answer
from podscaler.testing.clock import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer

SETTINGS = Settings(downscale_stabilization_ns=15 * NANOSECONDS, sync_period_ns=2 * NANOSECONDS)
MAPS = "/api/v1/namespaces/kube-system/configmaps"
MAP = f"{MAPS}/podscaler-history"
PODS = "/api/v1/namespaces/kube-system/pods"
FORBIDDEN = json_answer({"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden"}, 403)
UNAVAILABLE = json_answer({"kind": "Status", "status": "Failure", "message": "later"}, 500)


def published(transport: ScriptedTransport) -> Answer:
    """The ConfigMap as the last request wrote it."""
    written = transport.requests[-1].body
    assert written is not None
    labels = b'{"metadata": {"labels": {"podscaler.dev/history": "v1"}}, '
    return Answer(200, {"content-type": "application/json"}, labels + written[1:])


async def test_what_was_published_is_found() -> None:
    """The settings of decisions come back as they were, with the version and the place that they came from."""
    transport, clock = ScriptedTransport(), VirtualClock()
    transport.on("PATCH", MAP, json_answer({}))
    client = Client(transport, clock)
    await effective_settings.publish(client, SETTINGS, clock)
    transport.on("GET", MAP, published(transport))
    found = await effective_settings.find_published(client)
    assert found is not None
    assert (found.decision, found.origin) == (
        SETTINGS.decision,
        f"podscaler {__version__} (ConfigMap kube-system/podscaler-history)",
    )
    assert found.flags["horizontal-pod-autoscaler-sync-period"] == "2s"


async def test_a_controller_that_keeps_nothing_publishes_nothing() -> None:
    """With histories in memory nothing is written."""
    transport, clock = ScriptedTransport(), VirtualClock()
    await effective_settings.publish(Client(transport, clock), Settings(history_namespace=None), clock)
    assert transport.asked() == []


async def test_a_missing_permission_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is tried again, and the controller goes on."""
    caplog.set_level(logging.INFO)
    transport, clock = ScriptedTransport(), VirtualClock()
    transport.on("PATCH", MAP, FORBIDDEN)
    await effective_settings.publish(Client(transport, clock), SETTINGS, clock)
    assert (transport.asked("PATCH"), caplog.text.count("the settings are not published")) == ([MAP], 1)


async def test_failures_are_tried_again_a_few_times() -> None:
    """A server that fails is asked five times in all, with growing waits."""
    transport, clock = ScriptedTransport(), VirtualClock()
    transport.on("PATCH", MAP, UNAVAILABLE)
    publishing = asyncio.ensure_future(effective_settings.publish(Client(transport, clock), SETTINGS, clock))
    attempts = []
    for span_s in (1, 1, 4, 8, 16):
        await clock.advance(span_s)
        attempts.append(len(transport.asked("PATCH")))
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
async def test_settings_that_cannot_be_read_are_none(answer: Answer) -> None:
    """Whoever explains assumes the defaults then, and says so."""
    transport = ScriptedTransport()
    transport.on("GET", MAP, answer)
    assert await effective_settings.find_published(Client(transport, VirtualClock())) is None


def pod(**container: Any) -> Answer:
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
async def test_arguments_of_the_built_in_controller(answer: Answer, tolerance: float) -> None:
    """The flags about autoscalers count, in both forms; what is not given has its default."""
    transport = ScriptedTransport()
    transport.on("GET", PODS, answer)
    found = await effective_settings.find_built_in(Client(transport, VirtualClock()))
    assert found is not None
    assert found.decision == core_settings.Settings(tolerance=tolerance)


@pytest.mark.parametrize("answer", [json_answer({"items": []}), FORBIDDEN, pod(command=["a", "--feature-gates=X"])])
async def test_a_built_in_controller_that_is_not_visible(answer: Answer) -> None:
    """No pod, no permission, or flags that make no sense: nothing is known."""
    transport = ScriptedTransport()
    transport.on("GET", PODS, answer)
    assert await effective_settings.find_built_in(Client(transport, VirtualClock())) is None


async def test_a_lease_that_is_lost_ends_the_publication() -> None:
    """Whoever leads next publishes; nothing is tried again, and it is no bug."""
    transport, clock = ScriptedTransport(), VirtualClock()
    fenced = FencedTransport(transport, lambda: None)
    await effective_settings.publish(Client(fenced, clock), SETTINGS, clock)
    assert transport.asked() == []
