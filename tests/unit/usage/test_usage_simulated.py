"""Usage of pods without a process, from annotations."""

from typing import Any

import pytest

from podscaler.controlplane.metrics.resource import simulated
from podscaler.controlplane.metrics.resource.simulated import SimulatedUsage

CORE = 1_000_000_000


def pod(annotations: dict[str, str], *containers: str) -> dict[str, Any]:
    """A simulated pod with these annotations and containers."""
    return {
        "metadata": {"annotations": annotations},
        "spec": {"runtimeClassName": "simulated", "containers": [{"name": name} for name in containers or ("app",)]},
    }


@pytest.mark.parametrize(
    ("own", "controller", "sharers", "expected"),
    [
        pytest.param({}, {}, 1, (0, 0), id="nothing stated"),
        pytest.param({"cpu": "250m"}, {}, 3, (CORE // 4, 0), id="a fixed amount for every pod"),
        pytest.param({"memory": "100Mi"}, {}, 1, (0, 104857600), id="memory"),
        pytest.param({"total-cpu": "600m"}, {}, 3, (CORE // 5, 0), id="a share of a total"),
        pytest.param({"total-cpu": "600m"}, {}, 0, (0, 0), id="no share while not ready"),
        pytest.param({}, {"total-cpu": "1"}, 4, (CORE // 4, 0), id="the controller's annotation"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, 1, (CORE, 0), id="the pod's own wins"),
        pytest.param({"cpu.app": "1", "cpu": "2"}, {}, 1, (CORE, 0), id="the container's own wins"),
        pytest.param({"cpu": "much"}, {}, 1, (0, 0), id="no quantity"),
        pytest.param({"cpu": "-1"}, {}, 1, (0, 0), id="negative"),
    ],
)
def test_usage_of_one_container(
    own: dict[str, str], controller: dict[str, str], sharers: int, expected: tuple[int, int]
) -> None:
    """Annotations state amounts or shares; what they do not state is zero."""
    prefixed = {f"podscaler.dev/simulated-{key}": value for key, value in controller.items()}
    usage = simulated.container_usage(
        pod({f"podscaler.dev/simulated-{key}": value for key, value in own.items()}),
        controller_annotations=prefixed,
        sharers=sharers,
    )
    assert usage == {"app": SimulatedUsage(*expected)}


def test_an_amount_without_a_container_is_the_first_ones() -> None:
    """A sidecar uses only what is stated for it by name."""
    annotations = {"podscaler.dev/simulated-cpu": "1", "podscaler.dev/simulated-cpu.log": "10m"}
    usage = simulated.container_usage(pod(annotations, "app", "log", "idle"), controller_annotations={}, sharers=1)
    assert usage == {
        "app": SimulatedUsage(CORE, 0),
        "log": SimulatedUsage(CORE // 100, 0),
        "idle": SimulatedUsage(0, 0),
    }


def test_invalid_annotations_are_named() -> None:
    """Only annotations that state usage are looked at, and only texts that are no quantity are faults."""
    annotations = {
        "podscaler.dev/simulated-cpu": "1x",
        "podscaler.dev/simulated-total-memory": "",
        "podscaler.dev/simulated-memory": "1Gi",
        "podscaler.dev/simulated-startup-seconds": "soon",
        "other": "1x",
    }
    faults = simulated.invalid_annotations(annotations)
    assert faults == ["podscaler.dev/simulated-cpu", "podscaler.dev/simulated-total-memory"]
