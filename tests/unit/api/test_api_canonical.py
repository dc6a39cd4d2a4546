"""The stored form of objects; the recorded vectors compare it with Go's for many more."""

import pytest

from podscaler.api.schema import canonical


@pytest.mark.parametrize(
    ("message", "obj", "stored"),
    [
        ("core/v1.Service", {}, {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        (
            "apps/v1.Deployment",
            {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "a"}], "tolerations": []}}}},
            {
                "kind": "Deployment",
                "metadata": {},
                "spec": {
                    "selector": None,
                    "template": {"metadata": {}, "spec": {"containers": [{"name": "a", "resources": {}}]}},
                    "strategy": {},
                },
                "status": {},
            },
        ),
        (
            "autoscaling/v2.HorizontalPodAutoscaler",
            {"metadata": {"labels": {}}, "spec": {"minReplicas": 0, "metrics": []}},
            {
                "metadata": {},
                "spec": {"scaleTargetRef": {"kind": "", "name": ""}, "minReplicas": 0, "maxReplicas": 0},
                "status": {"desiredReplicas": 0, "currentMetrics": None},
            },
        ),
        (
            "metrics/v1beta1.PodMetrics",
            {"containers": [{"name": "a", "usage": {"cpu": "1m"}}]},
            {
                "metadata": {},
                "timestamp": None,
                "window": "0s",
                "containers": [{"name": "a", "usage": {"cpu": "1m"}}],
            },
        ),
    ],
    ids=["service", "deployment", "autoscaler", "pod metrics"],
)
def test_objects_are_stored_as_the_server_prints_them(message, obj, stored):
    """Empty lists and maps vanish, and what Go always writes is there."""
    assert canonical.canonical(obj, message) == stored


def test_stored_objects_stay_as_they_are():
    """The stored form of a stored object is itself."""
    stored = canonical.canonical({"spec": {"containers": [{}]}}, "core/v1.Pod")
    assert canonical.canonical(stored, "core/v1.Pod") == stored


def test_members_of_the_stored_object_are_taken_as_they_are() -> None:
    """What a write shares with what is stored needs no work; what only equals it gets its form like everything."""
    stored = canonical.canonical({"spec": {"replicas": 1}}, "apps/v1.Deployment")
    found = canonical.canonical({**stored, "status": {"conditions": []}}, "apps/v1.Deployment", stored=stored)
    assert found == stored
    assert found["spec"] is stored["spec"]
