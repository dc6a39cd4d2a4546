"""Autoscalers, targets and loads that come, change and go all the time, on both control planes.

CHURN_S says for how long: 20 seconds here, ten minutes in `make soak`.
"""

import os
import time
from random import Random

import pytest
from stage import HPAS, Scene, autoscaler, workload
from up_process import eventually

pytestmark = pytest.mark.e2e

CHURN_S = float(os.environ.get("CHURN_S", "20"))
APPS = tuple(f"app{number}" for number in range(8))
PAUSE_S = 0.1
NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


class Churn:
    """Turns of fortune, one at a time; it remembers what must come of them.

    Args:
        scene: where they happen.
        random: chooses.
    """

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene = scene
        self._random = random
        self._scaled: set[str] = set()
        self._deployed: set[str] = set()
        self._load: dict[str, int] = {}
        self.turns = 0

    def turn(self) -> None:
        """One change of one app."""
        app = self._random.choice(APPS)
        self._random.choice((self.load, self.load, self.toggle_autoscaler, self.toggle_target, self.edit))(app)
        self.turns += 1

    def load(self, app: str) -> None:
        """Another load, for one to six pods."""
        self._load[app] = self._random.randint(1, 6)
        self._scene.use(self._load[app] * 100, app=app)

    def toggle_autoscaler(self, app: str) -> None:
        """Make it if it is not there, delete it otherwise."""
        if app in self._scaled:
            self._scaled.discard(app)
            self._scene.api.delete(self._scene.path(HPAS, app))
        else:
            self._scaled.add(app)
            self._scene.api.create(self._scene.path(HPAS), autoscaler(name=app, behavior=NO_WINDOW))

    def toggle_target(self, app: str) -> None:
        """The same with the workload."""
        if app in self._deployed:
            self._deployed.discard(app)
            self._scene.api.delete(self._scene.path("deployments", app), {"propagationPolicy": "Background"})
        else:
            self._deployed.add(app)
            self._scene.api.create(self._scene.path("deployments"), workload(app, 1))

    def edit(self, app: str) -> None:
        """Other bounds, which do not matter in the end."""
        if app in self._scaled:
            spec = {"minReplicas": 1, "maxReplicas": self._random.randint(6, 10)}
            self._scene.api.patch(self._scene.path(HPAS, app), {"spec": spec})

    def settle(self) -> dict[str, int]:
        """Have all of them there with a load; the replicas that must come of it."""
        for app in APPS:
            self.load(app)
            if app not in self._deployed:
                self.toggle_target(app)
            if app not in self._scaled:
                self.toggle_autoscaler(app)
        return dict(self._load)


@pytest.mark.slow
def test_churn(scene: Scene) -> None:
    """When it ends every app has the replicas that its load needs, and every status says so."""
    churn = Churn(scene, Random(6))
    deadline_s = time.monotonic() + CHURN_S
    while time.monotonic() < deadline_s or churn.turns <= CHURN_S:
        churn.turn()
        time.sleep(PAUSE_S)
    wanted = churn.settle()

    def reached() -> dict[str, tuple[int, int]]:
        found = scene.api.get(scene.path(HPAS))["items"]
        statuses = {each["metadata"]["name"]: each.get("status", {}) for each in found}
        return {app: (scene.replicas(app), statuses[app].get("currentReplicas", -1)) for app in APPS}

    expected = {app: (count, count) for app, count in wanted.items()}
    eventually(reached, until=lambda found: found == expected, every_s=0.5)
