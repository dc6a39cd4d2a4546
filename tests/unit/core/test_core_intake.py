"""Typed pods and scales become facts.

Source: docs/spec/decision.md 6.1 (Grouping pods), 6.2 (Requests); the numbers of requests in thousandths.
"""

from typing import Any

import msgspec
import pytest

from podscaler.api.machinery import instants, meta
from podscaler.api.typed import autoscaling, pods
from podscaler.core.model import api_conversion
from podscaler.core.model.emulation import V1_38
from podscaler.core.model.observation import ContainerRequests, Failure, Pod, PodLevelRequests, Scale
from podscaler.testing.decisions import NOW, NOW_TEXT


def container(name: str = "app", restart: str | None = None, **requests: str) -> dict[str, Any]:
    """A container that asks for these resources."""
    return {"name": name, "resources": {"requests": requests}, "restartPolicy": restart}


def read(spec: dict[str, Any], **rest: Any) -> Pod:
    """The facts of a pod named a."""
    return api_conversion.pod(msgspec.convert({"metadata": {"name": "a"}, "spec": spec, **rest}, pods.Pod))


def test_full_pod() -> None:
    """Every field that decisions use is read, times as nanoseconds."""
    text = {
        "metadata": {"name": "a", "labels": {"app": "web"}, "deletionTimestamp": NOW_TEXT},
        "spec": {"containers": [container(cpu="100m", memory="1Ki")]},
        "status": {
            "phase": "Running",
            "startTime": NOW_TEXT,
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": "False", "lastTransitionTime": NOW_TEXT},
            ],
        },
    }
    requests = {"cpu": 100, "memory": 1_024_000}
    assert api_conversion.pod(msgspec.convert(text, pods.Pod)) == Pod(
        "a", {"app": "web"}, "Running", True, NOW, "False", NOW, (ContainerRequests("app", requests),), requests
    )


def test_empty_pod() -> None:
    """A pod without status has neither started nor a Ready condition; absent times are the zero time."""
    assert read({"containers": None}) == Pod("a", phase="", ready_changed_at=instants.ZERO)
    unset = read({}, status={"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]})
    assert (unset.ready, unset.ready_changed_at) == ("True", instants.ZERO)


def test_containers_that_count() -> None:
    """Regular containers come first, then restartable init containers; ordinary init containers do not count."""
    spec = {
        "initContainers": [container("setup", cpu="2"), container("proxy", "Always", cpu="50m")],
        "containers": [container("app", cpu="100.1m", memory="1"), container("log", cpu="1")],
    }
    facts = read(spec)
    assert facts.containers == (
        ContainerRequests("app", {"cpu": 101, "memory": 1000}),
        ContainerRequests("log", {"cpu": 1000}),
        ContainerRequests("proxy", {"cpu": 50}),
    )
    assert (facts.requests_milli, facts.pod_level) == ({"cpu": 1151}, None)


INITS = [
    container("one", cpu="5"),
    container("proxy", "Always", cpu="2", memory="1"),
    container("two", cpu="1", memory="7"),
    container("mesh", "Always", cpu="3"),
    container("three", cpu="1"),
]


@pytest.mark.parametrize(
    ("spec", "with_overhead", "without"),
    [
        (
            {"containers": [container(cpu="1", memory="2"), container(cpu="1")], "resources": {"cpu": "5"}},
            {"cpu": 5000, "memory": 2000},
            {"cpu": 5000, "memory": 2000},
        ),
        (
            {"containers": [container(cpu="1")], "resources": {"memory": "5"}, "overhead": {"cpu": "0.5m", "x/y": "1"}},
            {"cpu": 1001, "memory": 5000, "x/y": 1000},
            {"cpu": 1000, "memory": 5000},
        ),
        (
            {"containers": [container(cpu="4")], "initContainers": INITS, "resources": {"hugepages-2Mi": "1"}},
            {"cpu": 9000, "memory": 8000, "hugepages-2Mi": 1000},
            {"cpu": 9000, "memory": 8000, "hugepages-2Mi": 1000},
        ),
        (
            {"containers": [container(cpu="0.5m"), container(cpu="0.5m")], "resources": {"memory": "1"}},
            {"cpu": 1, "memory": 1000},
            {"cpu": 1, "memory": 1000},
        ),
    ],
    ids=["overrides", "overhead", "init containers", "rounded once"],
)
def test_pod_level_requests(spec: dict[str, Any], with_overhead: dict[str, int], without: dict[str, int]) -> None:
    """A pod's own requests replace those of its containers at their peak; overhead is added, rounding comes last."""
    facts = read(spec | {"resources": {"requests": spec["resources"]}})
    assert facts.pod_level == PodLevelRequests(with_overhead, without)


@pytest.mark.parametrize("requests", [{}, None, {"example.com/gpu": "1"}])
def test_no_pod_level_requests(requests: dict[str, str] | None) -> None:
    """Requests of the pod without cpu, memory or huge pages do not count."""
    assert read({"containers": [], "resources": {"requests": requests}}).pod_level is None


def test_version_rules_apply() -> None:
    """The emulated version decides how negative amounts are rounded."""
    wire = msgspec.convert({"spec": {"containers": [container(cpu="-1.5n")]}}, pods.Pod)
    assert [api_conversion.pod(wire).requests_milli, api_conversion.pod(wire, V1_38).requests_milli] == [
        {"cpu": 1},
        {"cpu": -1},
    ]


def test_unreadable_pod() -> None:
    """A quantity or a time that cannot be read is an error."""
    with pytest.raises(ValueError, match="quantities must match"):
        read({"containers": [container(cpu="lots")]})
    with pytest.raises(ValueError, match="is not a time"):
        read({}, status={"startTime": "soon"})


def test_scale_and_failure() -> None:
    """A Scale becomes replicas and selector, a Status the failure."""
    scale = autoscaling.Scale(spec=autoscaling.ScaleSpec(3), status=autoscaling.ScaleStatus(2, "app=web"))
    status = meta.Status(message="gone", reason="NotFound", code=404)
    assert [api_conversion.scale(scale), api_conversion.scale(status)] == [
        Scale(3, 2, "app=web"),
        Failure("gone", "NotFound", 404),
    ]
