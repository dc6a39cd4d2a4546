"""Manifests that once made `podscaler lint` fail."""

from typing import Any

import pytest

from podscaler.api.text.json_text import Number
from podscaler.lint.model import reading
from podscaler.lint.model.linted_item import APIError, DocumentOrigin

POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "a"},
                "spec": {"template": {"spec": POD}},
            },
            (),
            id="a Job, whose labels hold its uid",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "LimitRange", "metadata": {}, "spec": {"limits": [{"type": "Pod"}]}},
            (),
            id="a LimitRange without a name, which is named by its uid",
        ),
        pytest.param(
            {
                "apiVersion": "autoscaling/v3",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "a"},
                "spec": {"metrics": [{"resource": {"target": {"type": 0.5}}}]},
            },
            (APIError("apiVersion", 'no kind "HorizontalPodAutoscaler" is registered for version "autoscaling/v3"'),),
            id="an autoscaler of a version that there never was",
        ),
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": Number("1e400")},
            (APIError("", "json: cannot unmarshal number 1e400 into Go value of type float64"),),
            id="a number that no float64 holds in an object of a kind that is not known",
        ),
    ],
)
def test_faults(value: Any, faults: tuple[APIError, ...]) -> None:
    """They are read as the API server would take or refuse them."""
    [item] = reading.items(value, DocumentOrigin("f.yaml", 1, b""))
    assert item.api_errors == faults
