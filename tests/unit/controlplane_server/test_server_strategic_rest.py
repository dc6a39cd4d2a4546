"""What API errors show of a strategic merge: the patch without what the merge took out of it."""

from typing import Any

import pytest

from podscaler.controlplane.apiserver.handlers import strategic_merge
from podscaler.controlplane.apiserver.handlers.strategic_merge import MessageSchema

_POD = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}], "nodeSelector": {"x": "y"}}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"spec": {"replicas": "x"}}, {"spec": {"replicas": "x"}}, id="what has no directives stays"),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}], "x": 1}},
            {"spec": {"x": 1}},
            id="an ordered list goes with its order",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "$setElementOrder/ports": [], "ports": []}, {"name": "b"}]}},
            {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}},
            id="within elements that are merged",
        ),
        pytest.param(
            {"spec": {"$retainKeys": ["containers"], "volumes": None}}, {"spec": {"volumes": None}}, id="kept keys go"
        ),
        pytest.param(
            {"spec": {"affinity": {"a": None, "b": [{"c": None}]}}},
            {"spec": {"affinity": {"b": [{}]}}},
            id="nulls of what is new go",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"$patch": "replace", "a": "b"}}},
            {"spec": {"nodeSelector": {"a": "b"}}},
            id="an order to replace goes",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"$patch": "delete"}}},
            {"spec": {"nodeSelector": {"$patch": "delete"}}},
            id="an order to delete stays",
        ),
    ],
)
def test_rest(patch: Any, expected: Any) -> None:
    """Lists that are ordered, kept keys and nulls of new values are gone; everything else is as it was sent."""
    assert strategic_merge.patch_in_errors(_POD, patch, MessageSchema("core/v1.Pod")) == expected
