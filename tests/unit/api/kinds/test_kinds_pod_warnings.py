"""What a client is told about a pod spec besides the answer."""

import pytest

from podscaler.api.kinds.pods import pod_warnings
from podscaler.api.resource.resources import Object


def container(**fields: object) -> Object:
    """A pod spec with one container."""
    return {"containers": [{"name": "a", "image": "i:1", **fields}]}


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param(container(), [], id="nothing to say"),
        pytest.param(
            container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
            id="a variable set twice",
        ),
        pytest.param(
            container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]), [], id="a variable continued"
        ),
        pytest.param(
            container(ports=[{"containerPort": 80, "hostPort": 8080}, {"containerPort": 80}]),
            ["spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]"],
            id="a port of the host, and not",
        ),
        pytest.param(
            {**container(), "imagePullSecrets": [{"name": "s"}, {"name": "s"}]},
            ['spec.imagePullSecrets[1].name: duplicate name "s"'],
            id="a secret twice",
        ),
    ],
)
def test_pods(spec: Object, warnings: list[str]) -> None:
    """In upstream's words."""
    assert pod_warnings.of_pod({"spec": spec}, None) == warnings


def test_a_template_is_told_of_when_it_changes() -> None:
    """A workload that is written with the spec that it has is written in silence."""
    spec = {"template": {"spec": container(resources={"limits": {"memory": "0.5"}})}}
    old, new = ({"metadata": {"generation": number}, "spec": spec} for number in (1, 2))
    assert pod_warnings.of_template(old, old) == []
    assert pod_warnings.of_template(new, old) == [
        'spec.template.spec.containers[0].resources.limits[memory]: fractional byte value "500m" is invalid, '
        "must be an integer"
    ]
