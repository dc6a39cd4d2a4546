"""What a pod requests, and what is said where it does not.

Source: docs/spec/decision.md 6.2 (Requests).
"""

import pytest

from podscaler.core.calculation import pod_groups
from podscaler.core.calculation.calculation_types import MetricError
from podscaler.core.model.emulation import V1_38
from podscaler.core.model.observation import ContainerRequests, Pod, PodLevelRequests
from podscaler.core.model.settings import DEFAULT, Gates, Settings
from podscaler.testing.decisions import pod

TWO = Pod(
    "a",
    containers=(ContainerRequests("app", {"cpu": 100, "memory": 5}), ContainerRequests("log", {"cpu": 20})),
    requests_milli={"cpu": 120},
)
LEVEL = Pod("a", requests_milli={"cpu": 1}, pod_level=PodLevelRequests({"cpu": 530}, {"cpu": 500}))


@pytest.mark.parametrize(
    ("facts", "resource", "container", "settings", "request_milli"),
    [
        (TWO, "cpu", "", DEFAULT, 120),
        (TWO, "cpu", "log", DEFAULT, 20),
        (TWO, "memory", "app", DEFAULT, 5),
        (Pod("empty"), "cpu", "", DEFAULT, 0),
        (pod(cpu=0), "cpu", "", DEFAULT, 0),
        (LEVEL, "cpu", "", DEFAULT, 530),
        (LEVEL, "cpu", "", Settings(emulation=V1_38), 500),
        (LEVEL, "cpu", "", Settings(gates=Gates(pod_level_resources=False)), 1),
    ],
    ids=["sum", "container", "other resource", "no containers", "zero", "pod level", "1.38: no overhead", "gate off"],
)
def test_request(facts: Pod, resource: str, container: str, settings: Settings, request_milli: int) -> None:
    """The request of the whole pod, of one container, or of the pod itself."""
    assert pod_groups.request_milli(facts, resource, container, settings) == request_milli


@pytest.mark.parametrize(
    ("facts", "resource", "container", "message"),
    [
        (TWO, "memory", "", "missing request for memory in container log of Pod a"),
        (TWO, "memory", "log", "missing request for memory in container log of Pod a"),
        (TWO, "cpu", "web", "container web not found in Pod a"),
        (LEVEL, "memory", "", "missing pod-level request for memory in Pod a"),
    ],
)
def test_missing(facts: Pod, resource: str, container: str, message: str) -> None:
    """What is missing is named with its container and pod."""
    with pytest.raises(MetricError) as caught:
        pod_groups.request_milli(facts, resource, container, DEFAULT)
    assert str(caught.value) == message
