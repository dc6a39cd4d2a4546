"""JSON merge patch, by the examples of RFC 7386 and the corners that objects have."""

from typing import Any

import pytest

from podscaler.controlplane.apiserver.handlers import json_patch


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="a scalar is replaced"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="a new member is added"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="null removes"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a list becomes a scalar"),
        pytest.param({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}, id="a scalar becomes a list"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="objects merge"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="lists are replaced as a whole"),
        pytest.param(["a", "b"], ["c", "d"], ["c", "d"], id="the document may be a list"),
        pytest.param({"a": "foo"}, None, None, id="the document may become null"),
        pytest.param({"e": None}, {"a": 1}, {"e": None, "a": 1}, id="nulls of the target stay"),
        pytest.param([1, 2], {"a": "b", "c": None}, {"a": "b"}, id="an object replaces a list"),
        pytest.param({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="nulls in new objects vanish"),
    ],
)
def test_merge(target: Any, patch: Any, expected: Any) -> None:
    """The result is what RFC 7386 says, for each of its appendix's examples."""
    assert json_patch.apply_merge_patch(target, patch) == expected


def test_merge_leaves_its_arguments_alone() -> None:
    """Neither the target nor the patch is changed."""
    target, patch = {"a": {"b": 1}}, {"a": {"b": None, "c": 2}}
    json_patch.apply_merge_patch(target, patch)
    assert (target, patch) == ({"a": {"b": 1}}, {"a": {"b": None, "c": 2}})


def test_merged_objects_are_in_the_order_of_names() -> None:
    """An API error quotes the outcome as upstream does: what was merged sorted, what was left alone as it was."""
    target = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "x", "labels": {}},
        "spec": {"b": 1},
    }
    merged = json_patch.apply_merge_patch(target, {"spec": {"a": 2}})
    assert list(merged) == ["apiVersion", "kind", "metadata", "spec"]
    assert (list(merged["metadata"]), list(merged["spec"])) == (["name", "labels"], ["a", "b"])
