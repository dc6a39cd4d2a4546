"""Which request is meant, and which missing one is told first.

Source: docs/spec/decision.md 6.2 (Requests), from the pod's manifest to the number.
"""

from typing import Any

import msgspec
import pytest

from podscaler.api.typed import pods
from podscaler.core.calculation.calculation_types import MetricError
from podscaler.core.calculation.pod_groups import request_milli
from podscaler.core.model import api_conversion
from podscaler.core.model.settings import DEFAULT, Gates, Settings

NO_POD_LEVEL = Settings(gates=Gates(pod_level_resources=False))


def container(name: str, restart: str | None = None, **amounts: str) -> dict[str, Any]:
    """A container that requests these amounts."""
    return {"name": name, "resources": {"requests": amounts}, "restartPolicy": restart}


def asked(spec: dict[str, Any], container_name: str = "", settings: Settings = DEFAULT) -> int:
    """The CPU that a pod `a` of this spec requests."""
    wire = msgspec.convert({"metadata": {"name": "a"}, "spec": spec}, pods.Pod)
    return request_milli(api_conversion.pod(wire), "cpu", container_name, settings)


MANY: dict[str, Any] = {
    "initContainers": [container("setup", cpu="9"), container("proxy", "Always", cpu="50m")],
    "containers": [container("app", cpu="100m"), container("log", cpu="20m")],
}
LEVEL: dict[str, Any] = MANY | {"resources": {"requests": {"cpu": "500m"}}, "overhead": {"cpu": "30m"}}


@pytest.mark.parametrize(
    ("spec", "container_name", "settings", "milli"),
    [
        (MANY, "", DEFAULT, 170),
        (MANY, "log", DEFAULT, 20),
        (MANY, "proxy", DEFAULT, 50),
        (MANY | {"overhead": {"cpu": "30m"}}, "", DEFAULT, 170),
        (LEVEL, "", DEFAULT, 530),
        (LEVEL, "app", DEFAULT, 100),
        (LEVEL, "", NO_POD_LEVEL, 170),
        ({"containers": [container("app", cpu="0.1m"), container("log", cpu="0.1m")]}, "", DEFAULT, 2),
        ({"containers": [container("app", cpu="0")]}, "", DEFAULT, 0),
        ({"containers": []}, "", DEFAULT, 0),
    ],
    ids=[
        "regular and restartable init containers",
        "one container",
        "one restartable init container",
        "overhead does not count",
        "stated for the pod, with overhead",
        "one container of a pod with its own requests",
        "the gate off",
        "each container is rounded up",
        "zero is a request",
        "no containers",
    ],
)
def test_request(spec: dict[str, Any], container_name: str, settings: Settings, milli: int) -> None:
    """Requests are summed over the containers that go on running, unless the pod or the metric says otherwise."""
    assert asked(spec, container_name, settings) == milli


@pytest.mark.parametrize(
    ("spec", "container_name", "message"),
    [
        (
            {"containers": [container("app", memory="1"), container("log")]},
            "",
            "missing request for cpu in container app of Pod a",
        ),
        (
            {"containers": [container("app", cpu="1")], "initContainers": [container("proxy", "Always")]},
            "",
            "missing request for cpu in container proxy of Pod a",
        ),
        (
            {"containers": [container("app")], "initContainers": [container("proxy", "Always")]},
            "",
            "missing request for cpu in container app of Pod a",
        ),
        (MANY, "setup", "container setup not found in Pod a"),
        (
            {"containers": [], "resources": {"requests": {"memory": "1"}}},
            "",
            "missing pod-level request for cpu in Pod a",
        ),
    ],
    ids=[
        "the first of several",
        "a restartable init container",
        "regular containers come first",
        "an ordinary init container is none",
        "stated for the pod, but not this one",
    ],
)
def test_missing(spec: dict[str, Any], container_name: str, message: str) -> None:
    """The first container without a request is told; regular ones come before restartable init containers."""
    with pytest.raises(MetricError) as caught:
        asked(spec, container_name)
    assert str(caught.value) == message
