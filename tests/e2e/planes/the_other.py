"""The built-in controller beside ours: the real one on the real control plane, an imitation on the embedded one."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stage import HPAS, Scene, built_in
from up_process import Object

from podscaler.api.machinery import instants
from podscaler.base.clock import SystemClock

BUILT_IN = "kube-controller-manager"
"""The field manager of its writes."""
TOLERANCE = 0.01
REQUESTED_MILLI = 200
TARGET_PCT = 50
CONDITIONS = {
    "AbleToScale": ("True", "ReadyForNewScale"),
    "ScalingActive": ("True", "ValidMetricFound"),
    "ScalingLimited": ("False", "DesiredWithinRange"),
}


@contextmanager
def the_other(scene: Scene, *, period_s: int) -> Iterator[None]:
    """Works until the block ends, with a tolerance of a hundredth, on the autoscaler `web` among others."""
    if scene.stage.plane.name == "embedded":
        with _imitated(scene, period_s):
            yield
        return
    flags = (
        f"--horizontal-pod-autoscaler-sync-period={period_s}s",
        f"--horizontal-pod-autoscaler-tolerance={TOLERANCE}",
    )
    process = scene.stage.spawn(*flags, program=built_in())
    try:
        yield
        assert process.poll() is None, "it ended by itself"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _imitated(scene: Scene, period_s: int) -> Iterator[None]:
    ended = threading.Event()

    def work() -> None:
        _sync(scene)
        while not ended.wait(period_s):
            _sync(scene)
        scene.api.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _sync(scene: Scene) -> None:
    """As the built-in controller does: by the utilization, without any window; the scale first."""
    replicas, used_milli = scene.replicas(), scene.stage.metrics.usage[scene.name, "web", "app"]
    utilization_pct = used_milli * 100 // (REQUESTED_MILLI * replicas)
    ratio = utilization_pct / TARGET_PCT
    desired = replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(ratio * replicas)
    if desired != replicas:
        _write(scene, scene.path("deployments", "web/scale"), {"spec": {"replicas": desired}})
    _write(scene, scene.path(HPAS, "web/status"), {"status": _status(replicas, desired, utilization_pct)})


def _write(scene: Scene, path: str, change: Object) -> None:
    scene.api.patch(f"{path}?fieldManager={BUILT_IN}", change)


def _status(replicas: int, desired: int, utilization_pct: int) -> Object:
    now = instants.text(SystemClock().now_ns())
    current = {"averageUtilization": utilization_pct, "averageValue": f"{utilization_pct * REQUESTED_MILLI // 100}m"}
    conditions = [
        {"type": type_, "status": status, "reason": reason, "message": "-", "lastTransitionTime": now}
        for type_, (status, reason) in CONDITIONS.items()
    ]
    return {
        "observedGeneration": 1,
        "currentReplicas": replicas,
        "desiredReplicas": desired,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
        "conditions": conditions,
    }
