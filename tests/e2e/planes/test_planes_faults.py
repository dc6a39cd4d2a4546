"""What goes wrong in between, with the same result on both control planes: nothing stays wrong."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from planes import await_ready
from stage import HPAS, Scene, workload
from up_process import eventually

pytestmark = pytest.mark.e2e

AUTOSCALERS = 40
NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


@contextmanager
def meddling(scene: Scene) -> Iterator[list[int]]:
    """Somebody writes the autoscaler's status and its target all the time; how often it succeeded."""
    ended = threading.Event()
    written: list[int] = []

    def meddle() -> None:
        while not ended.wait(0.05):
            count = len(written)
            status = {"status": {"currentReplicas": count % 7, "desiredReplicas": count % 5}}
            scene.api.patch(f"{scene.path(HPAS, 'web')}/status", status)
            scene.api.patch(scene.path("deployments", "web"), {"metadata": {"annotations": {"turn": str(count)}}})
            written.append(count)
        scene.api.close()

    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        yield written
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
def test_others_write_in_between(scene: Scene) -> None:
    """Conflicts delay nothing for good: the count follows the load, and in the end the status is the controller's."""
    scene.deploy()
    scene.use(300)
    scene.autoscale(behavior=NO_WINDOW)
    with meddling(scene) as written:
        scene.await_replicas(3)
        scene.use(500)
        scene.await_replicas(5)
        eventually(lambda: len(written) > 3)
    eventually(scene.counts, until=lambda found: found == (5, 5))


@pytest.mark.slow
def test_deletion_and_recreation(scene: Scene) -> None:
    """A new autoscaler of the same name begins anew: what was recommended to the old one is forgotten."""
    scene.deploy()
    scene.use(500)
    scene.autoscale(behavior={"scaleDown": {"stabilizationWindowSeconds": 3600}})
    scene.await_replicas(5)
    scene.await_running(5)
    scene.use(200)
    scene.await_condition("AbleToScale", "True", "ScaleDownStabilized")
    scene.api.delete(scene.path(HPAS, "web"))
    assert scene.replicas() == 5
    scene.autoscale(behavior={"scaleDown": {"stabilizationWindowSeconds": 2}})
    scene.await_replicas(2)


def test_a_target_is_deleted_and_recreated(scene: Scene) -> None:
    """The autoscaler finds the new workload of the same name and its pods."""
    scene.deploy()
    scene.use(300)
    scene.autoscale(behavior=NO_WINDOW)
    scene.await_replicas(3)
    scene.api.delete(scene.path("deployments", "web"), {"propagationPolicy": "Background"})
    scene.await_running(0)
    scene.await_condition("AbleToScale", "False", "FailedGetScale")
    scene.deploy()
    scene.await_replicas(3)


def test_the_api_server_restarts(scene: Scene) -> None:
    """After a crash of the API server the controller goes on by itself, with nothing lost."""
    scene.deploy()
    scene.use(300)
    scene.autoscale(behavior=NO_WINDOW)
    scene.await_replicas(3)
    scene.stage.plane.kill_server()
    scene.use(500)
    scene.stage.plane.start_server()
    await_ready(scene.api)
    scene.await_replicas(5)
    scene.await_running(5)
    eventually(scene.counts, until=lambda found: found == (5, 5))


@pytest.mark.slow
def test_the_log_of_an_outage(scene: Scene) -> None:
    """The lines that a crash of the API server leaves are about it, histories and watches: none for each autoscaler."""
    scene.stage.replace_controller()  # one that saw an outage seconds ago would not report another one at once
    names = [f"web{number}" for number in range(AUTOSCALERS)]
    for name in names:
        external = {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": "1"}}
        scene.value(name, 1000)
        scene.api.create(scene.path("deployments"), workload(name, 1))
        scene.autoscale({"type": "External", "external": external}, name=name)
    eventually(lambda: values(scene), until=lambda found: found == ["1"] * AUTOSCALERS)
    begun = len(scene.stage.log.read_text())
    with scene.stage.gate.shut():
        scene.stage.plane.kill_server()
        time.sleep(2)
        for name in names:
            scene.value(name, 1050)
        scene.stage.plane.start_server()
        await_ready(scene.api)
    eventually(lambda: values(scene), until=lambda found: found == ["1050m"] * AUTOSCALERS)
    scene.sync_times(AUTOSCALERS)
    lines = scene.stage.log.read_text()[begun:].splitlines()
    failed = [int(found[1]) for line in lines if (found := re.search(r"in which (\d+) syncs failed", line))]
    assert [each >= AUTOSCALERS for each in failed] == [True]
    assert [line for line in lines if scene.name in line] == []
    assert len(lines) < AUTOSCALERS / 2, lines


def values(scene: Scene) -> list[str]:
    """What the statuses tell of the first metric."""
    statuses = [each.get("status", {}) for each in scene.api.get(scene.path(HPAS))["items"]]
    found = [(status.get("currentMetrics") or [{}])[0].get("external", {}) for status in statuses]
    return [each.get("current", {}).get("averageValue", "") for each in found]


@pytest.mark.slow
def test_watches_are_cut(scene: Scene) -> None:
    """Changes that happened while no watch was there are seen afterwards."""
    scene.deploy()
    scene.use(300)
    scene.autoscale(behavior=NO_WINDOW)
    scene.await_replicas(3)
    for turn in range(3):
        eventually(scene.stage.gate.cut)
        scene.api.patch(scene.path(HPAS, "web"), {"spec": {"minReplicas": 4 + turn}})
    scene.await_replicas(6)
    scene.deploy("late")
    scene.use(200, app="late")
    scene.autoscale(name="late")
    scene.await_replicas(2, "late")


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(429, id="too many requests"),
        pytest.param(503, id="unavailable", marks=pytest.mark.slow),
    ],
)
def test_the_api_server_refuses_for_a_while(scene: Scene, refusal: int) -> None:
    """What it said with Retry-After is heeded, and work goes on when it answers again."""
    scene.deploy()
    scene.use(300)
    scene.autoscale(behavior=NO_WINDOW)
    scene.await_settled(3)
    scene.stage.gate.refusal = refusal
    try:
        scene.use(500)
        time.sleep(2)
        assert scene.replicas() == 3
    finally:
        scene.stage.gate.refusal = 0
    scene.await_replicas(5)


@pytest.mark.slow
def test_a_slow_api_server(scene: Scene) -> None:
    """With half a second for each answer the count still follows the load."""
    scene.deploy()
    scene.use(300)
    scene.stage.gate.delay_s = 0.5
    try:
        scene.autoscale(behavior=NO_WINDOW)
        scene.await_replicas(3)
    finally:
        scene.stage.gate.delay_s = 0.0


@pytest.mark.slow
def test_metrics_are_out(scene: Scene) -> None:
    """The count stays, status and an event say why, and when metrics are back it follows the load again."""
    scene.deploy()
    scene.use(300)
    scene.autoscale(behavior=NO_WINDOW)
    scene.await_settled(3)
    scene.stage.metrics.is_out = True
    try:
        scene.use(100)
        scene.await_condition("ScalingActive", "False", "FailedGetResourceMetric")
        scene.sync_times(2)
        assert scene.replicas() == 3
        reasons = eventually(lambda: [reason for reason, _ in scene.events() if reason.startswith("FailedGet")])
        assert set(reasons) == {"FailedGetResourceMetric"}
    finally:
        scene.stage.metrics.is_out = False
    scene.await_condition("ScalingActive", "True", "ValidMetricFound")
    scene.await_replicas(1)
