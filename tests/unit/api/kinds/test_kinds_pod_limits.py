"""What LimitRanges give to pods, and what they refuse."""

from typing import Any

import pytest

from podscaler.api.kinds.pods import pod_limits


def _range(**item: Any) -> dict[str, Any]:
    return {"spec": {"limits": [{"type": "Container", **item}]}}


def _pod(requests: dict[str, str], limits: dict[str, str], **spec: Any) -> dict[str, Any]:
    resources = {"requests": requests, "limits": limits}
    return {"metadata": {}, "spec": {"containers": [{"name": "a", "resources": resources}], **spec}}


def test_containers_get_what_they_do_not_name() -> None:
    """Requests and limits are added, and the annotation says which."""
    pod = _pod({"cpu": "1"}, {}, initContainers=[{"name": "i"}])
    pod_limits.complete(pod, _range(default={"cpu": "2", "memory": "2Gi"}, defaultRequest={"cpu": "500m"}))
    limits = {"cpu": "2", "memory": "2Gi"}
    assert pod["spec"] == {
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": limits}}],
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "500m"}, "limits": limits}}],
    }
    assert pod["metadata"]["annotations"] == {
        pod_limits.ANNOTATION: "LimitRanger plugin set: cpu, memory limit for container a; "
        "cpu request for init container i; cpu, memory limit for init container i"
    }


def test_a_complete_pod_stays_as_it_is() -> None:
    """Nothing is written where nothing is missing."""
    pod = _pod({"cpu": "1"}, {"cpu": "1"})
    pod_limits.complete(pod, _range(default={"cpu": "2"}, defaultRequest={"cpu": "2"}))
    assert pod == _pod({"cpu": "1"}, {"cpu": "1"})


@pytest.mark.parametrize(
    ("item", "requests", "limits", "expected"),
    [
        pytest.param({"min": {"cpu": "1"}, "max": {"cpu": "3"}}, {"cpu": "1"}, {"cpu": "3"}, [], id="within"),
        pytest.param(
            {"min": {"cpu": "1"}}, {}, {}, ["minimum cpu usage per Container is 1.  No request is specified"], id="none"
        ),
        pytest.param(
            {"min": {"cpu": "1"}},
            {"cpu": "500m"},
            {},
            ["minimum cpu usage per Container is 1, but request is 500m"],
            id="request too small",
        ),
        pytest.param(
            {"max": {"memory": "1Gi"}},
            {"memory": "2Gi"},
            {"memory": "2Gi"},
            ["maximum memory usage per Container is 1Gi, but limit is 2Gi"],
            id="limit too large",
        ),
        pytest.param(
            {"max": {"cpu": "1"}},
            {"cpu": "2"},
            {"cpu": "1"},
            ["maximum cpu usage per Container is 1, but request is 2"],
            id="request too large",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "1"},
            {"cpu": "3"},
            ["cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"],
            id="ratio",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "1"},
            {},
            ["cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"],
            id="no limit for a ratio",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "1"}},
            {"cpu": "1"},
            {"cpu": "2"},
            ["maximum cpu usage per Pod is 1, but limit is 2"],
            id="of the whole pod",
        ),
        pytest.param({"type": "PersistentVolumeClaim", "max": {"storage": "1"}}, {}, {}, [], id="not of pods"),
    ],
)
def test_faults(item: dict[str, Any], requests: dict[str, str], limits: dict[str, str], expected: list[str]) -> None:
    """Bounds and ratios are judged in upstream's words."""
    assert pod_limits.violations(_pod(requests, limits), _range(**item)) == expected


def test_a_pod_is_the_sum_of_its_containers() -> None:
    """Sidecars count with the containers, other init containers only where one of them is larger."""
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}
    large = {"name": "l", "resources": {"limits": {"cpu": "5"}}}
    pod = _pod({}, {"cpu": "1"}, initContainers=[sidecar])
    limit_range = _range(type="Pod", max={"cpu": "1"})
    assert pod_limits.violations(pod, limit_range) == ["maximum cpu usage per Pod is 1, but limit is 2"]
    pod["spec"]["initContainers"].append(large)
    assert pod_limits.violations(pod, limit_range) == ["maximum cpu usage per Pod is 1, but limit is 5"]
